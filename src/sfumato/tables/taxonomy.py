"""Taxonomies: public trees over the values of a column, from "everything" at the root down to single values.

A node is either a table of named branches or a list of leaves, so a taxonomy is plain nested data and reads
the same in Python and in TOML.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sfumato.errors import SchemaError

Leaf: TypeAlias = str | int | bool


@dataclass(frozen=True)
class Taxonomy:
    """A tree over values; build it with `Taxonomy.of`.

    Parameters
    ----------
    branches : tuple of (name, Taxonomy)
        Named subtrees; empty at the lowest nodes.
    leaves : tuple
        The values below a lowest node; empty elsewhere.

    Examples
    --------
    >>> tree = Taxonomy.of({"north": ["oslo", "turku"], "south": {"coast": ["nice"], "inland": ["bern"]}})
    >>> tree.depth
    3
    >>> tree.groups(1)
    (('north', ('oslo', 'turku')), ('south', ('nice', 'bern')))
    >>> [name for name, _ in tree.groups(2)]
    ['oslo', 'turku', 'coast', 'inland']
    """

    branches: tuple[tuple[str, Taxonomy], ...] = field(default=())
    leaves: tuple[Leaf, ...] = field(default=())

    @classmethod
    def of(cls, plain: Any, *, where: str = "taxonomy") -> Taxonomy:
        """From `plain`, nested mappings whose lowest entries are lists of values; `where` names the tree in errors."""
        if isinstance(plain, Taxonomy):
            return plain
        if isinstance(plain, Mapping):
            if not plain:
                raise SchemaError(f"{where}: an empty branch; give it values or remove it")
            return cls(branches=tuple((str(k), cls.of(v, where=f"{where}.{k}")) for k, v in plain.items()))
        if isinstance(plain, Sequence) and not isinstance(plain, str | bytes):
            if not plain:
                raise SchemaError(f"{where}: an empty list; give it values or remove it")
            for value in plain:
                if not isinstance(value, str | int):
                    raise SchemaError(f"{where}: leaves must be values of the column, got {value!r}")
            return cls(leaves=tuple(plain))
        raise SchemaError(f"{where}: expected a table of branches or a list of values, got {plain!r}")

    def plain(self) -> Any:
        """The nested dictionaries and lists this tree was built from."""
        if self.branches:
            return {name: branch.plain() for name, branch in self.branches}
        return list(self.leaves)

    @property
    def values(self) -> tuple[Leaf, ...]:
        """All leaves, from left to right."""
        if self.branches:
            return tuple(leaf for _, branch in self.branches for leaf in branch.values)
        return self.leaves

    @property
    def depth(self) -> int:
        """Levels below the root: level 0 is the root, level `depth` the single values."""
        return 1 + max((branch.depth for _, branch in self.branches), default=0)

    def groups(self, level: int) -> tuple[tuple[str, tuple[Leaf, ...]], ...]:
        """The nodes `level` steps below the root, as (name, leaves); a shorter branch stays at its leaves."""
        if level == 0:
            return (("all", self.values),)
        if not self.branches:
            return tuple((str(leaf), (leaf,)) for leaf in self.leaves)
        if level == 1:
            return tuple((name, branch.values) for name, branch in self.branches)
        return tuple(group for _, branch in self.branches for group in branch.groups(level - 1))

    def check_covers(self, values: Sequence[Leaf], what: str) -> None:
        """Refuse unless the leaves are exactly `values`, each once; `what` names the column in errors."""
        # True == 1 in Python, but they are different values here.
        leaves = [(type(v), v) for v in self.values]
        wanted = {(type(v), v) for v in values}
        twice = sorted({str(v) for t, v in leaves if leaves.count((t, v)) > 1}) if len(set(leaves)) < len(leaves) else []
        if twice:
            raise SchemaError(f"{what}: the taxonomy names {twice[0]!r} twice; a value has one place in the tree")
        missing = [v for v in values if (type(v), v) not in set(leaves)]
        if missing:
            raise SchemaError(f"{what}: the taxonomy does not cover {missing[0]!r}; add it to a branch")
        unknown = [v for t, v in leaves if (t, v) not in wanted]
        if unknown:
            raise SchemaError(
                f"{what}: the taxonomy names {unknown[0]!r}, which is not a value of the column; remove it or add the value"
            )
