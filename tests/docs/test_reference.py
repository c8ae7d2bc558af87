"""Every public name is in the reference and has a docstring that says what it needs to.

Public is what stands in `__all__` of `sfumato` and its packages. Each name has a summary; a function has `Parameters` for
its arguments and `Returns` for its result; a class has its arguments under `Parameters`, or under `Attributes` where they
are kept as they are. Public methods have a summary and name their arguments, in `Parameters` or in the text in backticks.
"""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import griffe
import pytest

import sfumato

NOT_PUBLIC = {
    "cli": "described by `sfumato --help`",
    "demo": "what `sfumato demo` writes",
    "distribution": "the version, and the check that only one distribution is installed",
    "extras": "messages about packages that are not installed",
    "palette": "the colours of the pictures",
    "service": "used through HTTP and `sfumato.client`: docs/service.md",
    "registry_homes": "which family answers what, for the registry",
}
PUBLIC = ["sfumato", *(f"sfumato.{m.name}" for m in pkgutil.iter_modules(sfumato.__path__) if m.name not in NOT_PUBLIC)]
SOURCES = Path(sfumato.__file__).parents[1]
_NOTHING = (None, "None", "NoReturn", "Never")


@pytest.fixture(scope="module")
def tree() -> Any:
    """The sources as the reference reads them."""
    return griffe.load("sfumato", search_paths=[SOURCES], docstring_parser="numpy", resolve_aliases=True)


@pytest.mark.parametrize("package", PUBLIC)
def test_every_public_name_is_in_the_reference(package: str, site: Path) -> None:
    module = import_module(package)
    names = getattr(module, "__all__", None)
    assert names is not None, f"{package} has no __all__: say there what is public"
    pages = [page.read_text(encoding="utf-8") for page in (site / "reference").rglob("index.html")]
    shown = {anchor for page in pages for anchor in re.findall(r'id="(sfumato[\w.]*)"', page)}
    missing = sorted(f"{package}.{n}" for n in names if not shown & _paths(module, n) and f"{package}.{n}" not in PUBLIC)
    assert package in shown, f"no page of docs/reference has `::: {package}`"
    assert not missing, "the reference leaves out (have they a docstring?):\n" + "\n".join(missing)


def _paths(module: ModuleType, name: str) -> set[str]:
    """Where the reference may have a name: in its package, or (if a submodule has its name) where it is defined."""
    thing = getattr(module, name)
    return {f"{module.__name__}.{name}", f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', '')}"}


@pytest.mark.parametrize("package", PUBLIC)
def test_public_names_say_what_they_need(package: str, tree: Any) -> None:
    module = import_module(package)
    names = getattr(module, "__all__", None)
    assert names is not None, f"{package} has no __all__: say there what is public"
    elsewhere = {n for p in PUBLIC[1:] for n in getattr(import_module(p), "__all__", ())} if package == "sfumato" else set()
    own = [name for name in names if name not in elsewhere]  # what `sfumato` takes from its packages is checked there
    said = [line for name in own for line in offences(found(tree, module, name), f"{package}.{name}")]
    assert not said, f"{len(said)} offences\n" + "\n".join(said)


def test_a_docstring_that_says_too_little_is_caught() -> None:
    text = '''
def silent(x): ...
def brief(x: int, *, y: int) -> int:
    """A summary."""
def whole(x: int) -> int:
    """A summary.

    Parameters
    ----------
    x : int

    Returns
    -------
    int
    """
class Box:
    """A box."""
    def __init__(self, size: int) -> None: ...
    def put(self, thing: str) -> None:
        """Put it in."""
    def take(self, thing: str) -> str:
        """Take `thing` out."""
'''
    sources = griffe.visit("m", filepath=Path("m.py"), code=text)
    caught = {name: list(offences(sources[name], name)) for name in ("silent", "brief", "whole", "Box")}
    assert caught == {
        "silent": ["silent: no summary"],
        "brief": ["brief: no Parameters for x, y", "brief: no Returns"],
        "whole": [],
        "Box": ["Box: no Parameters or Attributes for size", "Box.put: does not name thing"],
    }


def found(tree: Any, module: Any, name: str) -> Any:
    """The source of a public name; a name that a submodule shares is looked up where it was defined."""
    here = tree[module.__name__.removeprefix("sfumato.")][name] if module is not sfumato else tree[name]
    here = here.final_target if here.is_alias else here
    thing = getattr(module, name)
    if here.is_module and hasattr(thing, "__qualname__"):
        return tree[f"{thing.__module__}.{thing.__qualname__}".removeprefix("sfumato.")]
    return here


def offences(thing: Any, label: str) -> list[str]:
    """What the docstring of a public name leaves out."""
    sections = _sections(thing)
    if "text" not in sections:
        return [f"{label}: no summary"]
    if thing.is_function:
        missing = _undocumented(thing, sections, "parameters", "other parameters")
        said = [f"{label}: no Parameters for {', '.join(missing)}"] if missing else []
        return said + ([f"{label}: no Returns"] if _answers(thing) and not {"returns", "yields"} & set(sections) else [])
    if not thing.is_class:
        return []
    missing = _undocumented(thing, sections, "parameters", "attributes")
    said = [f"{label}: no Parameters or Attributes for {', '.join(missing)}"] if missing else []
    kept = {entry.name for entry in sections.get("attributes", [])}
    methods = [m for n, m in thing.members.items() if not n.startswith("_") and not m.is_alias and n not in kept]
    return said + [line for m in methods for line in _method_offences(m, f"{label}.{m.name}")]


def _method_offences(method: Any, label: str) -> list[str]:
    if not method.is_function and "property" not in method.labels:
        return []
    above = [base.members[method.name] for base in method.parent.mro() if method.name in base.members]
    if method.docstring is None and any(m.docstring is not None for m in above):
        return []  # it does what the class above says
    sections = _sections(method)
    if "text" not in sections:
        return [f"{label}: no summary"]
    if not method.is_function:
        return []
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", method.docstring.value))))
    missing = [n for n in _undocumented(method, sections, "parameters", "other parameters") if n not in named]
    return [f"{label}: does not name {', '.join(missing)}"] if missing else []


def _sections(thing: Any) -> dict[str, Any]:
    return {} if thing.docstring is None else {s.kind.value: s.value for s in thing.docstring.parse("numpy", warnings=False)}


def _undocumented(thing: Any, sections: dict[str, Any], *kinds: str) -> list[str]:
    have = {n.strip().lstrip("*") for kind in kinds for entry in sections.get(kind, []) for n in entry.name.split(",")}
    return [p.name for p in thing.parameters if p.name not in {"self", "cls"} | have and not p.name.startswith("_")]


def _answers(thing: Any) -> bool:
    return thing.returns is not None and str(thing.returns) not in _NOTHING
