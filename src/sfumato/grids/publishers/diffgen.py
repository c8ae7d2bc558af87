"""DiffGen: specialise one taxonomy node at a time, then publish noisy counts.

Mohammed, Chen, Fung & Yu, *Differentially private data release for data mining*, KDD 2011, with the taxonomies given
(its search for numeric split points is not needed) and the score *Max*.

Every attribute starts at its root. `steps` times, one node of a current cut is chosen and replaced by its children, for
all records at once; the score of a node v is ``Σ_{children c} max_class |records in c of the class|``.

**Guarantee.** One more record lies in at most one child of a node, and raises its largest class count by 0 or 1: every
score moves by an amount in [0, 1], spread 1, so a choice at rate η loses η. `steps` choices share `select` of the budget,
the counts get the rest (a record is in one cell), and steps in sequence add up. The limit on the number of cells
is public.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grids.published.cuts import Cut
from sfumato.grids.published.synopsis import Synopsis
from sfumato.grids.publishers.base import Publisher, noise_of
from sfumato.grids.publishers.settings import MOST_CELLS
from sfumato.grids.publishers.task import Task
from sfumato.privacy.exact import Exact
from sfumato.privacy.losses import choice_rate
from sfumato.privacy.meter import Meter
from sfumato.privacy.units import Nano
from sfumato.records.levels import Levels
from sfumato.records.records import Records, weighted_bincount
from sfumato.registry import Mechanism, Parameter

Node = tuple[int, int]  # level, place on that level


@dataclass
class _State:
    """The current cut of every attribute, as nodes of its taxonomy in order of leaves."""

    cuts: list[list[Node]]

    def cells(self) -> int:
        return int(np.prod([len(c) for c in self.cuts], dtype=np.int64))


def children(levels: Levels, node: Node) -> list[Node]:
    """The nodes below one, skipping levels on which it is not divided.

    >>> children(Levels.numeric("age", [0, 10, 20, 30, 40]), (0, 0))
    [(1, 0), (1, 1)]
    """
    level, place = node
    low, high = levels.leaf_range(level, place)
    for finer in range(level + 1, levels.height):
        inside = np.flatnonzero((levels.starts[finer] >= low) & (levels.starts[finer] < high))
        if inside.size > 1:
            return [(finer, int(i)) for i in inside]
    return []


@dataclass(kw_only=True, eq=False)
class DiffGen(Publisher):
    """Publish counts over a grid that was refined step by step.

    Parameters
    ----------
    epsilon : ε
        The budget of the whole release.
    budgets : optional
        Refused: one ε holds for all. `PrivPfC` takes what everybody granted.
    target : str
        The column to be predicted.
    steps : int
        How many groups are divided, one after the other.
    select : float
        Share of the budget for these choices; half of it in the paper.
    rows : int, optional
        A public number of records; it is not needed here and only kept with the release.
    attributes : tuple of str, optional
        Predictors to consider; by default every column but the target.
    """

    mechanism = "diffgen"

    steps: int = 10
    select: float = 0.5
    synopsis: Synopsis = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.steps < 1:
            raise InputError(f"DiffGen needs at least one step, got {self.steps}")
        if not 0 < self.select < 1:
            raise InputError(f"the share `select` lies between 0 and 1, got {self.select!r}")

    def expected(self, task: Task, factor: int = 1) -> tuple[float | None, str]:
        budget = self._budget(factor)
        choice_rate(self._each(budget), 1.0)
        return noise_of(budget - self._each(budget) * self.steps), ""

    def release(self, records: Exact[Records], task: Task, meter: Meter) -> Synopsis:
        budget = self._budget(meter.terms.factor)
        each = self._each(budget)
        state = _State([[(0, 0)] for _ in task.attributes])
        # The score of a node does not change when others are divided: it is computed once.
        score: dict[tuple[int, Node], Exact[int]] = {}
        for step in range(self.steps):
            options = self._options(state, task)
            if not options:
                break
            for j, node in options:
                if (j, node) not in score:
                    score[j, node] = records.map(partial(node_score, j=j, node=node))
            first, *others = (score[option] for option in options)
            chosen = meter.choose(
                first.zip(*others),
                rate=choice_rate(each, 1.0),
                spread=1,
                label=f"{self.mechanism}: specialisation {step + 1}",
            )
            j, node = options[chosen]
            place = state.cuts[j].index(node)
            state.cuts[j][place : place + 1] = children(task.taxonomies[j], node)
        cuts = [_cut(task, j, nodes) for j, nodes in enumerate(state.cuts) if len(nodes) > 1]
        parameters = {"steps": self.steps, "cells": state.cells()}
        return self._publish(
            records, task, meter, cuts=cuts, rate=budget - each * self.steps, size=None, parameters=parameters
        )

    def _each(self, budget: Nano) -> Nano:
        """What one choice may cost."""
        return Nano(int(budget * self.select) // self.steps)

    def _options(self, state: _State, task: Task) -> list[tuple[int, Node]]:
        cells = state.cells() * task.classes
        found = []
        for j, nodes in enumerate(state.cuts):
            for node in nodes:
                more = len(children(task.taxonomies[j], node)) - 1
                if more > 0 and cells // len(nodes) * (len(nodes) + more) <= MOST_CELLS:
                    found.append((j, node))
        return found


def node_score(records: Records, j: int, node: Node) -> int:
    """*Max*: records of the largest class of each child of a node of attribute `j`."""
    levels, classes = records.taxonomies[j], len(records.class_labels)
    starts = np.array([levels.leaf_range(*child)[0] for child in children(levels, node)])
    low, high = levels.leaf_range(*node)
    leaf = records.leaves[:, j]
    inside = (leaf >= low) & (leaf < high)
    child = np.searchsorted(starts, leaf[inside], side="right") - 1
    weights = None if records.weights is None else records.weights[inside]
    code = records.classes[inside].astype(np.int64) * starts.size + child
    return int(weighted_bincount(code, weights, classes * starts.size).reshape(classes, -1).max(axis=0).sum())


def _cut(task: Task, j: int, nodes: list[Node]) -> Cut:
    levels = task.taxonomies[j]
    starts: NDArray[np.int64] = np.array([levels.leaf_range(*node)[0] for node in nodes], dtype=np.int64)
    labels = tuple(levels.labels[level][place] for level, place in nodes)
    return Cut(j, starts, labels, levels.leaves, levels.name, levels.edges is not None)


MECHANISM = Mechanism(
    "diffgen",
    ("synthesize",),
    DiffGen,
    "taxonomy nodes divided one at a time",
    parameters=(
        Parameter("steps", "whole", "how many nodes are divided", 10, low=1, high=1000),
        Parameter("select", "number", "the share of ε for the choices of nodes", 0.5, low=0.001, high=0.999),
    ),
    needs=("one epsilon",),
    rank={"classification": 2, "general": 4},
    paper="Mohammed, Chen, Fung & Yu 2011",
)
