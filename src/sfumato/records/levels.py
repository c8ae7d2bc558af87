"""Taxonomies as levels: what a grid is made of.

A predictor's taxonomy is a tree over its public domain; each level of the tree partitions the domain, coarsest first
(level 0 is the whole domain, the last level has one node per leaf). Su, Cao, Li & Lyu 2018 (PrivPfC), Section 4, count
levels from 1; here the root is level 0, so "level 0" reads as "not in the grid".

Leaves are kept in tree order, so that the nodes of every level are runs of consecutive leaves: rolling a table up to a
coarser level is then one `np.add.reduceat`. Everything in this file is public.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SchemaError


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of one attribute.

    Parameters
    ----------
    name : str
        The column.
    labels : tuple of tuples of str
        Node names per level, coarsest first, leaves last.
    starts : tuple of int arrays
        Per level, the first leaf of each node.
    edges : float array, optional
        For a number: the leaves are the intervals between consecutive edges.

    Examples
    --------
    The two taxonomies of Figure 1 in the paper and the grid ⟨2, 3⟩ of its Example 1 (levels 1 and 2 here):

    >>> relationship = Levels.tree("relationship", {"In-family": ["Husband", "Wife", "Own-child"], "Not-in-family": [],
    ...                                             "Other-relative": [], "Unmarried": []})
    >>> education = Levels.numeric("education_num", [1, 6, 11, 16, 21], labels=["1-5", "6-10", "11-15", "16-20"])
    >>> relationship.sizes, education.sizes
    ((1, 4, 6), (1, 2, 4))
    >>> relationship.labels[1]
    ('In-family', 'Not-in-family', 'Other-relative', 'Unmarried')
    >>> education.labels[2]
    ('1-5', '6-10', '11-15', '16-20')
    >>> relationship.sizes[1] * education.sizes[2], relationship.height * education.height
    (16, 9)
    """

    name: str
    labels: tuple[tuple[str, ...], ...]
    starts: tuple[NDArray[np.int64], ...]
    edges: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if not self.starts or self.starts[0].size != 1:
            raise SchemaError(f"the taxonomy of {self.name!r} needs a root that covers the whole domain")
        for level, (names, first) in enumerate(zip(self.labels, self.starts, strict=True)):
            if len(names) != first.size or first[0] != 0 or (np.diff(first) <= 0).any():
                raise SchemaError(f"level {level} of the taxonomy of {self.name!r} does not partition its leaves")
            if level and not np.isin(self.starts[level - 1], first).all():
                raise SchemaError(f"level {level} of the taxonomy of {self.name!r} does not refine the level above")
        if self.edges is not None and (self.edges.size != self.leaves + 1 or (np.diff(self.edges) <= 0).any()):
            raise SchemaError(f"{self.name!r} needs {self.leaves + 1} increasing edges for {self.leaves} intervals")

    @classmethod
    def numeric(
        cls, name: str, edges: Sequence[float] | NDArray[np.float64], *, labels: Sequence[str] | None = None
    ) -> Levels:
        """Intervals of the column `name` between public `edges`, merged in pairs up to the root; `labels` name them.

        >>> Levels.numeric("age", [15, 35, 55, 75, 95]).labels[1]
        ('15 to 55', '55 to 95')
        """
        cuts = np.asarray(edges, dtype=np.float64)
        if cuts.ndim != 1 or cuts.size < 2:
            raise SchemaError(f"{name!r} needs at least two edges")
        starts = [np.arange(cuts.size - 1)]
        while starts[-1].size > 1:
            starts.append(starts[-1][::2])
        names = [tuple(_interval(cuts, first)) for first in starts]
        if labels is not None:
            names[0] = tuple(labels)
        return cls(name, tuple(names[::-1]), tuple(starts[::-1]), edges=cuts)

    @classmethod
    def flat(cls, name: str, values: Sequence[Any]) -> Levels:
        """A category `name` without a tree over its `values`: everything, or each value by itself.

        >>> Levels.flat("sex", ["Female", "Male"]).sizes
        (1, 2)
        """
        return cls.tree(name, list(values))

    @classmethod
    def tree(cls, name: str, tree: Mapping[str, Any] | Sequence[Any]) -> Levels:
        """The levels of `tree`, nested mappings (node -> children) and lists of leaves, over the column `name`.

        A node without children is a leaf; above the last level it stands for itself on the levels below. Levels that repeat
        the one above are dropped.
        """
        paths = list(_paths(tree, ()))
        if not paths:
            raise SchemaError(f"the taxonomy of {name!r} has no leaves")
        leaves = [path[-1] for path in paths]
        if len(set(leaves)) < len(leaves):
            twice = next(leaf for leaf in leaves if leaves.count(leaf) > 1)
            raise SchemaError(f"the taxonomy of {name!r} has the leaf {twice!r} twice")
        labels: list[tuple[str, ...]] = []
        starts: list[NDArray[np.int64]] = []
        for depth in range(max(map(len, paths)) + 1):
            prefixes = [path[:depth] for path in paths]
            first = np.array([i for i, prefix in enumerate(prefixes) if i == 0 or prefix != prefixes[i - 1]])
            if not starts or first.size > starts[-1].size:
                starts.append(first)
                labels.append(tuple(prefixes[i][-1] if depth else "any" for i in first))
            else:
                labels[-1] = tuple(prefixes[i][-1] if depth else "any" for i in first) if first.size > 1 else labels[-1]
        if len(starts) == 1:
            labels[0] = ("any",)
        return cls(name, tuple(labels), tuple(starts))

    @property
    def height(self) -> int:
        """Number of levels, the root included."""
        return len(self.starts)

    @property
    def leaves(self) -> int:
        """Number of leaves."""
        return len(self.labels[-1])

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Nodes per level."""
        return tuple(len(names) for names in self.labels)

    @cached_property
    def maps(self) -> tuple[NDArray[np.int64], ...]:
        """Per level, the node of each leaf."""
        return tuple(np.searchsorted(first, np.arange(self.leaves), side="right") - 1 for first in self.starts)

    def within(self, level: int, finer: int) -> NDArray[np.int64]:
        """For `np.add.reduceat`: where the nodes of `level` start among those of the level `finer`."""
        return np.searchsorted(self.starts[finer], self.starts[level])

    def leaf_range(self, level: int, node: int) -> tuple[int, int]:
        """First leaf of the node number `node` of `level`, and the first leaf after it."""
        first = self.starts[level]
        return int(first[node]), int(first[node + 1]) if node + 1 < first.size else self.leaves


def _paths(tree: Mapping[str, Any] | Sequence[Any], above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(tree, Mapping):
        for node, children in tree.items():
            if children:
                yield from _paths(children, (*above, str(node)))
            else:
                yield (*above, str(node))
    else:
        for leaf in tree:
            if isinstance(leaf, Mapping):
                yield from _paths(leaf, above)
            else:
                yield (*above, str(leaf))


def _interval(cuts: NDArray[np.float64], first: NDArray[np.int64]) -> Iterator[str]:
    ends = [*first[1:].tolist(), cuts.size - 1]
    for start, end in zip(first.tolist(), ends, strict=True):
        yield f"{cuts[start]:g} to {cuts[end]:g}"
