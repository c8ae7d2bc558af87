"""Who may open a private value: the whole list, kept by looking for it in the source."""

import ast
from pathlib import Path

from support import architecture

SOURCES = architecture.sources_in(Path(__file__).parents[2] / "src" / "sfumato")
OPEN = "_opened_by_the_meter"
INSIDE = ("_Exact__value", "_Exact__make", "_Exact__rows", "_Exact__samples")

# A reviewer who has read these, and the functions they pass values on to, has seen every private value come out.
OPENERS = {
    "sfumato.privacy.exact": {"map", "zip"},  # from one private value to the next
    "sfumato.privacy.composition": {"_open_for_noise"},  # the Meter
    "sfumato.testing.revealing": {"reveal"},  # tests, experiments and audits
}
# Experiments on data that is public, or that was made for them.
MAY_REVEAL = {"sfumato.testing", "sfumato.bench", "sfumato.audit", "sfumato.demo"}


def functions_using(source: str, names: set[str]) -> set[str]:
    """The innermost named functions that touch one of these attributes or names."""
    found: set[str] = set()

    def walk(node: ast.AST, function: str) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        named = (isinstance(node, ast.Attribute) and node.attr in names) or (isinstance(node, ast.Name) and node.id in names)
        if named or (isinstance(node, ast.Constant) and node.value in names):
            found.add(function)
        for child in ast.iter_child_nodes(node):
            walk(child, function)

    walk(ast.parse(source), "(module)")
    return found


def test_the_search_sees_what_it_looks_for():
    assert functions_using(f"def f(e):\n    return lambda: e.{OPEN}()", {OPEN}) == {"f"}
    assert functions_using(f"getattr(e, '{OPEN}')()", {OPEN}) == {"(module)"}
    assert functions_using("from sfumato.testing import reveal\ndef g(e): return reveal(e)", {"reveal"}) == {"g"}


def test_only_the_meter_opens_a_private_value():
    found = {name: functions_using(source, {OPEN, *INSIDE}) for name, source in SOURCES.items()}
    assert {name: functions for name, functions in found.items() if functions} == OPENERS


def test_no_release_reveals_one():
    users = {name for name, source in SOURCES.items() if "reveal" in source and functions_using(source, {"reveal"})}
    outside = {name for name in users if not any(name == part or name.startswith(part + ".") for part in MAY_REVEAL)}
    assert not outside


def test_what_the_meter_opens_stays_in_the_privacy_package():
    users = {name for name, source in SOURCES.items() if functions_using(source, {"_open_for_noise"})}
    assert users == {"sfumato.privacy.meter", "sfumato.privacy.items"}
