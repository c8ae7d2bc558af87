"""What a `where` is made of: comparisons of single columns, joined by and, or, not. Everything here is public.

A comparison looks at the *cleaned* value of its column (see the column's domain). With a missing value, that is one
outside the domain, no comparison is true, and neither is its negation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

Op: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]
OPPOSITE: dict[Op, Op] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
KEYWORDS = {"and", "or", "not", "in", "between", "is", "missing", "true", "false"}


@dataclass(frozen=True)
class Compare:
    """A column against a literal."""

    column: str
    op: Op
    value: str | int | float

    def __str__(self) -> str:
        return f"{quoted_name(self.column)} {self.op} {literal_text(self.value)}"


@dataclass(frozen=True)
class InCells:
    """A column in some of its cells (the code after the listed cells is the other cell).

    Its negation holds for the other *listed* cells only, as with any comparison of a missing value.
    """

    column: str
    codes: tuple[int, ...]
    labels: tuple[str, ...]

    def __str__(self) -> str:
        return f"{quoted_name(self.column)} in ({', '.join(self.labels)})"


@dataclass(frozen=True)
class Missing:
    """A column whose value is outside its domain."""

    column: str

    def __str__(self) -> str:
        return f"{quoted_name(self.column)} is missing"


@dataclass(frozen=True)
class Not:
    """The opposite of a part."""

    part: Predicate

    def __str__(self) -> str:
        return f"not ({self.part})"


@dataclass(frozen=True)
class Both:
    """All parts at once; without parts, everyone."""

    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " and ".join(f"({p})" for p in self.parts) if self.parts else "everyone"


@dataclass(frozen=True)
class Either:
    """At least one of the parts; without parts, nobody."""

    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " or ".join(f"({p})" for p in self.parts)


Atom: TypeAlias = Compare | InCells | Missing
Predicate: TypeAlias = Compare | InCells | Missing | Not | Both | Either


def atoms(predicate: Predicate) -> Iterator[Atom]:
    """The comparisons of a predicate, from left to right."""
    todo: list[Predicate] = [predicate]  # not by recursion: whoever builds a predicate decides how deep it is
    while todo:
        part = todo.pop()
        if isinstance(part, Not):
            todo.append(part.part)
        elif isinstance(part, Both | Either):
            todo.extend(reversed(part.parts))
        else:
            yield part


def columns_of(predicate: Predicate) -> set[str]:
    """The columns a predicate looks at."""
    return {atom.column for atom in atoms(predicate)}


def terms(predicate: Predicate) -> int:
    """Number of comparisons in a predicate; a list of categories is one.

    >>> terms(Both((Compare("age", ">=", 18), Not(Compare("age", "<", 65)), Missing("sex"))))
    3
    """
    return sum(1 for _ in atoms(predicate))


def depth(predicate: Predicate) -> int:
    """How many parts lie inside one another.

    >>> depth(Not(Both((Missing("sex"),))))
    2
    """
    deepest, todo = 0, [(predicate, 0)]
    while todo:
        part, level = todo.pop()
        deepest = max(deepest, level)
        if isinstance(part, Not):
            todo.append((part.part, level + 1))
        elif isinstance(part, Both | Either):
            todo.extend((p, level + 1) for p in part.parts)
    return deepest


def quoted_name(name: str) -> str:
    """A column name as the `where` language reads it."""
    if re.fullmatch(r"[^\W\d]\w*", name) and name.lower() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def literal_text(value: str | float) -> str:
    """A literal as the `where` language reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)
