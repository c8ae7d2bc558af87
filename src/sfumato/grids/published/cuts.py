"""Cuts: how a published grid divides each of its columns. Everything here is public or post-processing.

A cut of an attribute is a list of runs of leaves. A level of its taxonomy is one; DiffGen's mixed levels and
equal-width bins are others. A `ScoreCut` divides the table by what an earlier noisy grid says about a row: since that
grid is published, the score is a public function of the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.records.attributes import Attribute
from sfumato.records.levels import Levels
from sfumato.records.records import Grid


@dataclass(frozen=True, eq=False)
class Cut:
    """One attribute of a grid: which column, where its runs of leaves start, what they are called."""

    attribute: int
    starts: NDArray[np.int64]
    labels: tuple[str, ...]
    leaves: int
    name: str
    ordered: bool

    @classmethod
    def at(cls, attributes: Sequence[Attribute], j: int, level: int) -> Cut:
        """A level of a taxonomy."""
        levels = attributes[j].levels
        return cls(j, levels.starts[level], levels.labels[level], levels.leaves, levels.name, levels.edges is not None)

    @property
    def size(self) -> int:
        return len(self.labels)

    @property
    def columns(self) -> list[int]:
        """The attributes that decide where a row goes."""
        return [self.attribute]

    @cached_property
    def node_of_leaf(self) -> NDArray[np.int64]:
        return np.searchsorted(self.starts, np.arange(self.leaves), side="right") - 1

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        return np.append(self.starts[1:], self.leaves)

    def codes(self, leaves: NDArray[np.integer]) -> NDArray[np.int64]:
        """The run of every row, from the leaves of all attributes."""
        return np.asarray(self.node_of_leaf[leaves[:, self.attribute]])

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers; `cut_from_dict` reads them back."""
        return {
            "column": self.name,
            "groups": list(self.labels),
            "attribute": self.attribute,
            "starts": self.starts.tolist(),
            "leaves": self.leaves,
            "ordered": self.ordered,
        }


def cuts_of(grid: Grid, attributes: Sequence[Attribute]) -> tuple[Cut, ...]:
    """The cuts of a grid of levels."""
    return tuple(Cut.at(attributes, j, level) for j, level in grid)


def codes_of(cuts: Sequence[Cut | ScoreCut], leaves: NDArray[np.integer]) -> NDArray[np.int64]:
    """The run of every row in every cut: what a learner sees of it."""
    if not cuts:
        return np.zeros((len(leaves), 0), dtype=np.int64)
    return np.stack([cut.codes(leaves) for cut in cuts], axis=1)


def cell_codes(cuts: Sequence[Cut | ScoreCut], leaves: NDArray[np.integer]) -> NDArray[np.int64]:
    """One number per row: its cell in the grid."""
    code = np.zeros(len(leaves), dtype=np.int64)
    for cut in cuts:
        code = code * cut.size + cut.codes(leaves)
    return code


def columns_in(cuts: Sequence[Cut | ScoreCut]) -> set[int]:
    """The attributes that decide where a row goes, those behind a score included."""
    return {j for cut in cuts for j in cut.columns}


def divided_in(cuts: Sequence[Cut | ScoreCut]) -> set[int]:
    """The attributes that are divided into single leaves."""
    plain = [c for cut in cuts for c in (cut.inner if isinstance(cut, ScoreCut) else (cut,))]
    return {c.attribute for c in plain if c.size == c.leaves}


SCORE = "score of the first grid"
_THRESHOLDS = np.array([0.03, 0.08, 0.15, 0.25, 0.38, 0.5, 0.62, 0.75, 0.86, 0.95])
_STARTS = (np.array([0]), np.array([0, 6]), np.array([0, 3, 6, 9]), np.arange(11))


def score_levels() -> Levels:
    """The public taxonomy of a score: above or below one half, four groups, eleven groups.

    >>> score_levels().sizes
    (1, 2, 4, 11)
    """
    ends = [0.0, *_THRESHOLDS.tolist(), 1.0]
    labels = []
    for first in _STARTS:
        stops = [*first[1:].tolist(), 11]
        labels.append(tuple(f"{ends[a]:g} to {ends[b]:g}" for a, b in zip(first.tolist(), stops, strict=True)))
    return Levels(SCORE, tuple(labels), _STARTS, edges=np.array(ends))


@dataclass(frozen=True, eq=False)
class ScoreCut:
    """Rows by the (noisy, smoothed) class share of their cell in an earlier grid.

    With more than two classes the score is the share of the largest class of the *whole* table against all others.
    """

    inner: tuple[Cut, ...]
    bucket: NDArray[np.int64]
    noisy: NDArray[np.int64]
    level: int
    ordered: bool = True
    name: str = SCORE

    @property
    def labels(self) -> tuple[str, ...]:
        return score_levels().labels[self.level]

    @property
    def size(self) -> int:
        return len(self.labels)

    @property
    def columns(self) -> list[int]:
        """The attributes that decide where a row goes."""
        return [cut.attribute for cut in self.inner]

    @cached_property
    def node_of_cell(self) -> NDArray[np.int64]:
        return score_levels().maps[self.level][self.bucket]

    def codes(self, leaves: NDArray[np.integer]) -> NDArray[np.int64]:
        """The group of every row's score, from the leaves of all attributes."""
        return np.asarray(self.node_of_cell[cell_codes(self.inner, leaves)])

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, the first grid with its counts included; `cut_from_dict` reads them back."""
        return {
            "column": self.name,
            "groups": list(self.labels),
            "level": self.level,
            "first_grid": [cut.to_dict() for cut in self.inner],
            "first_noisy": self.noisy.tolist(),
            "score_of_cell": self.bucket.tolist(),
        }


def cut_from_dict(data: Mapping[str, Any]) -> Cut | ScoreCut:
    """The cut that `to_dict` wrote down.

    >>> side = Cut(0, np.array([0, 1]), ("left", "right"), 2, "side", False)
    >>> cut_from_dict(side.to_dict()).labels
    ('left', 'right')
    """
    if "first_grid" not in data:
        return _plain_cut(data)
    inner = tuple(_plain_cut(cut) for cut in data["first_grid"])
    bucket, noisy = (np.array(data[key], dtype=np.int64) for key in ("score_of_cell", "first_noisy"))
    return ScoreCut(inner, bucket, noisy, data["level"])


def _plain_cut(data: Mapping[str, Any]) -> Cut:
    starts = np.array(data["starts"], dtype=np.int64)
    return Cut(data["attribute"], starts, tuple(data["groups"]), data["leaves"], data["column"], data["ordered"])


def buckets(noisy: NDArray[np.int64], rate: float) -> NDArray[np.int64]:
    """The bucket of every cell: its smoothed share of the class that is not the overall favourite, in eleven steps.

    The share is drawn towards the overall one by as many records as the noise is worth (twice its scale).

    >>> buckets(np.array([[900, 50], [0, 450]]), 1.0).tolist()
    [0, 9]
    """
    counts = np.maximum(noisy.reshape(len(noisy), -1), 0).astype(np.float64)
    favourite = int(counts.sum(axis=1).argmax())
    total = counts.sum(axis=0)
    rest = total - counts[favourite]
    overall = rest.sum() / max(total.sum(), 1.0)
    strength = 2.0 / rate
    share = (rest + strength * overall) / (total + strength)
    return np.asarray(np.searchsorted(_THRESHOLDS, share))
