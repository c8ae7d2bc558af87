"""Which module of the package imports which, read off the source in every form that Python has for it, and rules on that."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = "sfumato"
MOST_LINES = 350
When = Literal["load", "call", "types"]

RANDOMNESS = re.compile(
    r"\bnp\.random\.(?!Generator|SeedSequence)|\bnumpy\.random\b|^\s*from numpy import .*\brandom\b"
    r"|^\s*(?:import|from) (?:random|secrets)\b",
    re.M,
)
LEFT_FOR_LATER = re.compile(r"\bTODO\b|\bFIXME\b|\bXXX\b|NotImplementedError")


@dataclass(frozen=True)
class Import:
    """One import of one of our modules: by whom, in which line, of what, and if on loading, in a call or for types only."""

    module: str
    line: int
    target: str
    when: When

    def __str__(self) -> str:
        return f"{self.module}, line {self.line}, imports {self.target}"


def sources_in(folder: Path) -> dict[str, str]:
    """The sources of the package in `folder` by the dotted names of their modules."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        name = ".".join((ROOT, *(parts[:-1] if parts[-1] == "__init__" else parts)))
        found[name] = path.read_text(encoding="utf-8")
    return found


def part_of(module: str) -> str:
    """The part of the package that a module belongs to: ``people`` for ``sfumato.people.estimate``."""
    return (module.split(".")[1:] or [ROOT])[0]


def imports_in(sources: Mapping[str, str]) -> list[Import]:
    """All imports among these modules.

    ``from sfumato import people`` names ``sfumato.people`` where that is a module and ``sfumato`` itself otherwise, through
    which everything can be reached. Only its version loads nothing.
    """
    found = []
    for module, source in sources.items():
        package = any(other.startswith(f"{module}.") for other in sources)
        for node, when in _statements(ast.parse(source).body, "load"):
            names = _names(node, module.split(".") if package else module.split(".")[:-1], sources)
            found += [Import(module, node.lineno, name, when) for name in dict.fromkeys(names) if name.split(".")[0] == ROOT]
    return found


def _names(node: ast.Import | ast.ImportFrom, folder: Sequence[str], known: Collection[str]) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    start = folder[: len(folder) - node.level + 1] if node.level else ()
    base = ".".join((*start, *([node.module] if node.module else [])))
    inner = {alias.name: f"{base}.{alias.name}" for alias in node.names if (base, alias.name) != (ROOT, "__version__")}
    return [name if name in known else base for name in inner.values()]


def _statements(nodes: Iterable[ast.AST], when: When) -> Iterator[tuple[ast.Import | ast.ImportFrom, When]]:
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, when
        elif isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            yield from _statements(node.body, "types")
            yield from _statements(node.orelse, when)
        else:
            inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and when == "load"
            yield from _statements(ast.iter_child_nodes(node), "call" if inside else when)


def upward(imports: Iterable[Import], layers: Sequence[Collection[str]]) -> list[str]:
    """Imports of a higher layer by a lower one. The package itself, which offers everything by name, is the highest."""
    height = {part: number for number, layer in enumerate(layers) for part in layer} | {ROOT: len(layers)}
    return [str(i) for i in imports if height[part_of(i.target)] > height[part_of(i.module)]]


def between_families(imports: Iterable[Import], families: Collection[str]) -> dict[str, set[str]]:
    """What the modules of each family import from other families."""
    found: dict[str, set[str]] = {}
    for i in imports:
        here, there = part_of(i.module), part_of(i.target)
        if here != there and here in families and there in families:
            found.setdefault(i.module.removeprefix(f"{ROOT}."), set()).add(i.target.removeprefix(f"{ROOT}."))
    return found


def cycle(imports: Iterable[Import]) -> list[str]:
    """Modules that import each other in a ring when they are loaded, the first again at the end; empty without a ring."""
    edges: dict[str, list[str]] = {}
    for i in imports:
        if i.when == "load":
            edges.setdefault(i.module, []).append(i.target)
    done: set[str] = set()

    def visit(module: str, way: list[str]) -> list[str]:
        if module in way:
            return [*way[way.index(module) :], module]
        if module not in done:
            for target in edges.get(module, ()):
                if ring := visit(target, [*way, module]):
                    return ring
            done.add(module)
        return []

    return next((ring for module in edges if (ring := visit(module, []))), [])


def too_long(sources: Mapping[str, str]) -> dict[str, int]:
    """Modules with more lines than can be read at one sitting, and how many."""
    lines = {module: len(source.splitlines()) for module, source in sources.items()}
    return {module: number for module, number in lines.items() if number > MOST_LINES}


# --- who may open a private table ------------------------------------------------------------------------------------

OPENERS = {"open", "Table", "Dataset", "PersonalTable", "Imported", "import_table", "coverage", "described"}
OPENERS |= {"release", "carry_out", "charge_and_run", "count_heads", "run"}
"""What opens a private table or hands one on, in whichever module of the package it stands."""

TELLING = {"described", "carry_out", "charge_and_run", "count_heads", "import_table", "PersonalTable"}
"""Those of them whose name alone tells: nobody else has a method that is called so."""

ENGINES = {"duckdb", "ibis", "pandas", "polars", "pyarrow", "pyspark", "adbc_driver_manager", "openpyxl", "fsspec"}
_LOWER = ("tables", "releases", "demo", "testing", "bench", "audit")


def openers_in(source: str) -> list[str]:
    """Every way in a source to a private table: an import, an attribute, a name in quotes.

    A module of the lower layers as such (``import sfumato.tables``) is one too: everything can be reached through it.
    """
    found, dynamic = [], {"getattr", "import_module", "__import__", "attrgetter", "methodcaller", "exec", "eval"}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.split(".")[0] in ENGINES or _lower(a.name) or a.name == ROOT]
        elif isinstance(node, ast.ImportFrom):
            found += _imported(node)
        elif isinstance(node, ast.Attribute) and node.attr in TELLING:
            found.append(f".{node.attr}")
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in dynamic:
            texts = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
            found += [t for t in texts if _lower(t) or t in TELLING or t.split(".")[0] in ENGINES or "runner" in t]
    return found


def _imported(node: ast.ImportFrom) -> list[str]:
    base = node.module or ""
    if base.split(".")[0] in ENGINES or node.level > 1:  # dots that lead out of a package hide where they lead to
        return [base or "." * node.level]
    names = [alias.name for alias in node.names]
    if base == ROOT:
        return [name for name in names if name not in ("__version__", "errors")]
    if not _lower(base):
        return []
    whole = base.count(".") == 1 and base != f"{ROOT}.tables"  # `from sfumato.releases import batch`
    return [f"{base}.{name}" for name in names if whole or name in OPENERS or name == "*"]


def _lower(name: str) -> bool:
    return any(name == f"{ROOT}.{part}" or name.startswith(f"{ROOT}.{part}.") for part in _LOWER)
