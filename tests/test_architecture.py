"""Rules of the house, checked on the source: arrows go down, noise lives in one place, no stubs."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "sfumato"
LAYER = {
    "errors": 0,
    "palette": 0,
    "distribution": 0,
    "extras": 0,
    "privacy": 0,
    "ledger": 1,
    "tables": 1,
    "records": 2,
    "offers": 2,
    "registry": 2,
    "results": 2,
    "people": 3,
    "histograms": 3,
}
LAYER |= {
    "attributes": 3,
    "grids": 3,
    "classifiers": 3,
    "releases": 4,
    "demo": 4,
    "testing": 4,
    "bench": 5,
    "audit": 5,
    "cli": 6,
}
FILES = sorted(SOURCE.rglob("*.py"))


def layer_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_down(path):
    here = layer_of(path)
    if here == "__init__":
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("sfumato."):
            there = node.module.split(".")[1]
            assert LAYER[there] <= LAYER[here], f"{path.name}:{node.lineno}: {here} imports {there}"


def test_the_tools_for_testing_know_privacy_alone():
    """They must fit every mechanism, so they know none."""
    known = {"errors", "privacy", "testing"}
    for path in (SOURCE / "testing").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("sfumato"):
                assert node.module.split(".")[1] in known, f"{path.name}:{node.lineno}: imports {node.module}"


def test_randomness_is_drawn_in_privacy_only():
    drawn = re.compile(
        r"\bnp\.random\.(?!Generator|SeedSequence)|\bnumpy\.random\b|^\s*(?:import|from) (?:random|secrets)\b", re.M
    )
    offenders = [
        str(p.relative_to(SOURCE))
        for p in FILES
        if layer_of(p) not in ("privacy", "bench", "audit", "demo") and drawn.search(p.read_text(encoding="utf-8"))
    ]
    assert offenders == []


def test_nothing_is_left_for_later():
    later = re.compile(r"\bTODO\b|\bFIXME\b|\bXXX\b|NotImplementedError")
    assert [p.name for p in FILES if later.search(p.read_text(encoding="utf-8"))] == []
