"""A private decision tree: DiffP-C4.5 (Friedman & Schuster, *Data mining with differential privacy*, KDD 2010).

A node is counted with noise; if it holds too few records for what is left to be done it becomes a leaf, otherwise its split
is chosen by the exponential mechanism among all columns: a number is cut at one of its public cut points, a category into a
node of its taxonomy and the rest (the paper splits it into all its values; in two, impurity does not reward crumbs). Leaves
publish noisy class counts, and a subtree that predicts hardly better than its
root is pruned, which costs nothing. As in the paper the children of a node hold disjoint records, so a path costs the sum
over its nodes and the tree costs its dearest path; unlike in the paper a leaf that is reached early spends what its path did
not.

What a good split is: for the last two levels by default the records that it classifies correctly, which is what the tree is
for and what one record changes least. But a split that classifies nothing better may prepare one that does, which only an
impurity sees: the root and all other levels are split by the Gini index (unless the root is the only one).

**Guarantee.** ε-differential privacy against the absence of a record, by induction over the depth:

1. A record is in one node per level. Its count loses the count's rate, its class counts lose theirs (one cell).
2. A choice at rate η loses η times the *spread* of the changes of the scores (`tree_scores`), not twice their sensitivity.
3. Which records a child sees depends on published choices and on each record alone, so children are disjoint:
`Meter.parallel`. Nobody else knows how many those are: whether a node is split is decided by its noisy count.
4. Along a path the shares add up to at most ε.
5. With budgets a record of weight w is w units (`weighing`): counts move by w, scores by w times the spread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.classifiers.base import CountingClassifier, Floats, size_step
from sfumato.classifiers.counting.tree_scores import Part, Split, Splitter, all_splits, spread_of
from sfumato.classifiers.weighing import ALIKE, Weighing
from sfumato.errors import InputError
from sfumato.privacy import NANO, Exact, Meter, Nano
from sfumato.privacy.losses import choice_rate
from sfumato.records.coding import Coding
from sfumato.records.records import Records

LAST = 2  # levels that are split for correctly classified records; set on other splits of the data than the bench's
DISJOINT = "the children of a node hold different records"


@dataclass(frozen=True, eq=False)
class Node:
    """A node: how it splits and its children, or the noisy class counts of a leaf."""

    split: Split | None
    children: tuple[Node, ...]
    counts: Floats  # noisy, clipped at 0; of an inner node the sum of its leaves
    scale: float  # of the noise of one count
    leaves: int = field(default=1)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateDecisionTree(CountingClassifier):
    """DiffP-C4.5.

    Parameters
    ----------
    epsilon, schema, target, classes, source, ledger, dataset, tiers
        See `PrivateClassifier` and `CountingClassifier`.
    depth : int or "auto"
        Largest depth; by default from ε and the number of records.
    criterion : "auto", "max", "gini" or "information"
        What a good split is: correctly classified records, the Gini index or information gain. By default the first for
        the last two levels and the second for those above them.
    rows : int, optional
        A public number of records; without it one hundredth of ε goes into estimating it.
    prune : bool
        Whether subtrees that hardly help are cut back.

    Examples
    --------
    >>> from sfumato.privacy import Seeded
    >>> from sfumato.tables import Categorical, Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 80, bins=8), "ill": Categorical(["no", "yes"])})
    >>> age = np.arange(4000)[:, None] % 80
    >>> ill = np.where(age[:, 0] < 40, "no", "yes")
    >>> tree = PrivateDecisionTree(epsilon=1, schema=schema, target="ill", source=Seeded(1)).fit(age, ill)
    >>> tree.score(age, ill), tree.guarantee_.epsilon <= 1
    (1.0, True)
    """

    depth: int | str = "auto"
    criterion: str = "auto"
    rows: int | None = None
    prune: bool = True

    def _train(self, records: Exact[Records], meter: Meter) -> None:
        weighing = self._weighing
        nano, rows = size_step(records, meter, nano=self._budget(meter), rows=self.rows, weighing=weighing)
        depth = automatic_depth(nano / NANO, rows) if isinstance(self.depth, str) else int(self.depth)
        tree = partial(grow, records, meter, self._coding, nano=nano, rows=rows, depth=depth, weighing=weighing)
        self.tree_ = tree(criterion=self.criterion, prune=self.prune)

    def _scores(self, leaves: NDArray[np.int32]) -> Floats:
        return np.log(leaf_shares(self.tree_, leaves))

    def describe(self) -> str:
        """The tree in words, one line per node."""
        return "\n".join(_lines(self.tree_, self._coding, ""))


def automatic_depth(epsilon: float, rows: int) -> int:
    """More depth than the budget carries is noise.

    >>> [automatic_depth(e, 36_000) for e in (0.05, 0.1, 0.2, 0.5, 1)]
    [2, 3, 4, 5, 6]
    """
    return int(np.clip(np.floor(np.log2(max(epsilon * rows, 1) / 300)), 1, 8))


def grow(
    records: Exact[Records],
    meter: Meter,
    coding: Coding,
    *,
    nano: Nano,
    rows: int,
    depth: int,
    criterion: str = "auto",
    prune: bool = True,
    columns: tuple[int, ...] | None = None,
    weighing: Weighing = ALIKE,
) -> Node:
    """The whole tree for a budget per unit of weight: half of it is for the leaves, the rest is shared by the levels.

    `rows` is the weight of all records.
    """
    if depth < 0:
        raise InputError(f"the depth of a tree must not be negative, got {depth}")
    above, last = ("gini", "max") if criterion == "auto" else (criterion, criterion)
    splits = tuple(all_splits(coding.taxonomies, columns))
    splitter, others = (Splitter(spread_of(c, rows), splits) for c in (above, last))
    level = nano // 2 // max(depth, 1)
    if nano - level * depth < 1 or (depth and level < 100):
        raise InputError("the budget is too small for a tree of this depth; raise epsilon or lower the depth")
    root = splitter if depth > 1 else others
    steps = _Steps(meter, others, coding.classes.size, level if depth else 0, weighing)
    node = _grow(steps, root, records.map(Part.whole), nano=nano, depth=depth)
    return _pruned(node) if prune else node


@dataclass(frozen=True, eq=False)
class _Steps:
    """What all nodes of a tree share."""

    meter: Meter
    last: Splitter  # of the last levels
    classes: int
    level: int  # what a level costs a unit of weight
    weighing: Weighing


def _grow(steps: _Steps, splitter: Splitter, part: Exact[Part], *, nano: Nano, depth: int) -> Node:
    """A node and what is under it; the last levels have their own splitter."""
    meter, groups, unit = steps.meter, steps.weighing.groups, steps.weighing.average
    count_nano = steps.level // 5
    enough = depth > 0
    if enough:
        noisy = meter.laplace(part.map(lambda p: [p.total]), rate=count_nano, weights=groups, label="records in a node")
        nano = Nano(nano - count_nano)
        # Two standard deviations of the children's counts, as the paper's stopping rule has one of a class count.
        enough = int(noisy[0]) > 4 * steps.classes * NANO / nano + 2 * NANO / count_nano
    if not enough:
        noisy = meter.laplace(part.map(Part.class_counts), rate=nano, weights=groups, label="class counts of a leaf")
        return Node(None, (), np.maximum(noisy, 0) / unit, NANO / nano / unit)
    choice, bound = Nano(steps.level - count_nano), splitter.spread.bound
    index = meter.choose(
        part.map(splitter.scores), rate=choice_rate(choice, bound), spread=bound * groups, label="split of a node"
    )
    split = splitter.candidates[index]
    under = steps.last if depth - 1 <= LAST else splitter
    children = []
    with meter.parallel(DISJOINT) as branch:
        for group in range(2):
            with branch():
                side = part.map(partial(Part.side, split=split, group=group))
                children.append(_grow(steps, under, side, nano=Nano(nano - choice), depth=depth - 1))
    return _inner(split, tuple(children))


def _inner(split: Split, children: tuple[Node, ...]) -> Node:
    counts = np.sum([c.counts for c in children], axis=0)
    # Independent noise adds up in squares.
    scale = float(np.sqrt(sum(c.scale**2 for c in children)))
    return Node(split, children, counts, scale, sum(c.leaves for c in children))


def _pruned(node: Node) -> Node:
    """Cut back a subtree unless it classifies more records than its root by more than the noise of its leaves."""
    if node.split is None:
        return node
    children = tuple(_pruned(c) for c in node.children)
    node = _inner(node.split, children)
    gain = sum(_correct(c) for c in children) - node.counts.max()
    return Node(None, (), node.counts, node.scale) if gain <= node.scale else node


def _correct(node: Node) -> float:
    return float(node.counts.max()) if node.split is None else sum(_correct(c) for c in node.children)


def leaf_shares(node: Node, leaves: NDArray[np.integer]) -> Floats:
    """Class shares of the leaf that each row falls into; unknown values follow the first branch."""
    if node.split is None:
        shares = (node.counts + node.scale) / (node.counts + node.scale).sum()
        return np.tile(shares, (len(leaves), 1))
    groups = node.split.groups(leaves[:, node.split.column])
    out = np.empty((len(leaves), node.counts.size))
    for number, child in enumerate(node.children):
        mine = groups == number
        if mine.any():
            out[mine] = leaf_shares(child, leaves[mine])
    return out


def _lines(node: Node, coding: Any, indent: str) -> list[str]:
    if node.split is None:
        return [f"{indent}{coding.classes[int(node.counts.argmax())]} (about {node.counts.sum():.0f} records)"]
    lines = []
    for number, child in enumerate(node.children):
        lines.append(f"{indent}{node.split.words(number, coding.taxonomies)}:")
        lines.extend(_lines(child, coding, indent + "  "))
    return lines
