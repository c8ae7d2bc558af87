"""A forest of private trees over disjoint parts of the data: each tree has the whole budget, and nobody is in two.

Every record is sent to one tree at random (its own draw, which does not look at the record), every tree looks at most of the
columns, and the forest averages the logarithms of the leaves' class shares.

**Guarantee.** A record is in one tree, and a tree loses at most ε (`tree`). Branches over disjoint people take the maximum:
ε, for any trees that the others were sent to. Every record's draw is independent of the table and of the other draws, so the
others are sent to the same trees equally often with and without the record, and averaging over that keeps the bound. (Nobody
may learn the draws: they go by position, so a record that leaves passes its own on to the next.)

**How many trees.** A tree on one T-th of the records has T times the noise relative to its counts; the average of T such
trees has T times the variance of one tree on all records. So more trees pay only where noise no longer matters: by default
there is one per 40,000 of N ε, and up to twice that a forest is a tree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sfumato.classifiers.base import CountingClassifier, Floats, size_step
from sfumato.classifiers.counting.tree import Node, automatic_depth, grow, leaf_shares
from sfumato.errors import InputError
from sfumato.privacy import NANO, Exact, Meter
from sfumato.records.records import Records


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateForest(CountingClassifier):
    """Private trees on disjoint parts of the data.

    Parameters
    ----------
    epsilon, schema, target, classes, source, ledger, dataset, tiers
        See `PrivateClassifier` and `CountingClassifier`.
    trees : int or "auto"
        Number of trees; by default from ε and the number of records.
    depth, criterion, rows
        As for `PrivateDecisionTree`.
    column_share : float
        Share of the columns that a tree may use.

    Examples
    --------
    >>> from sfumato.privacy import Seeded
    >>> from sfumato.tables import Categorical, Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 80, bins=8), "ill": Categorical(["no", "yes"])})
    >>> age = np.arange(4000)[:, None] % 80
    >>> ill = np.where(age[:, 0] < 40, "no", "yes")
    >>> forest = PrivateForest(epsilon=1, schema=schema, target="ill", trees=3, source=Seeded(1)).fit(age, ill)
    >>> forest.score(age, ill), forest.guarantee_.epsilon <= 1
    (1.0, True)
    """

    trees: int | str = "auto"
    depth: int | str = "auto"
    criterion: str = "auto"
    column_share: float = 0.8
    rows: int | None = None

    def _train(self, records: Exact[Records], meter: Meter) -> None:
        if not 0 < self.column_share <= 1:
            raise InputError(f"the share of the columns that a tree may use lies in (0, 1], got {self.column_share!r}")
        weighing = self._weighing
        nano, rows = size_step(records, meter, nano=self._budget(meter), rows=self.rows, weighing=weighing)
        trees = automatic_trees(nano / NANO, rows) if isinstance(self.trees, str) else int(self.trees)
        if trees < 1:
            raise InputError(f"a forest needs at least one tree, got {trees}")
        each = max(1, rows // trees)
        depth = automatic_depth(nano / NANO, each) if isinstance(self.depth, str) else int(self.depth)
        order = meter.post_processing().permutation(len(self._coding.taxonomies)).tolist()  # of columns: a public matter
        chosen = columns_of_trees(order, trees, self.column_share)
        tree_of = meter.deal(records.map(lambda r: len(r.classes)), trees)
        grown: list[Node] = []
        with meter.parallel("each record is in one tree") as branch:
            for number, columns in enumerate(chosen):
                with branch():
                    mine = records.zip(tree_of).map(partial(_of_tree, number))
                    tree = partial(grow, mine, meter, self._coding, nano=nano, rows=each, depth=depth, weighing=weighing)
                    grown.append(tree(criterion=self.criterion, columns=columns))
        self.trees_ = tuple(grown)

    def _scores(self, leaves: NDArray[np.int32]) -> Floats:
        return np.asarray(np.mean([np.log(leaf_shares(tree, leaves)) for tree in self.trees_], axis=0))


def _of_tree(number: int, dealt: tuple[Records, NDArray[np.int64]]) -> Records:
    """The records that were sent to one tree."""
    records, tree_of = dealt
    mine = tree_of == number
    weights = None if records.weights is None else records.weights[mine]
    return replace(records, leaves=records.leaves[mine], classes=records.classes[mine], weights=weights)


def columns_of_trees(order: list[int], trees: int, share: float) -> list[tuple[int, ...]]:
    """The columns each tree may use: the missing ones are dealt in turn, so that none is missing from many trees.

    A single tree has all columns: dropping one at random would leave the forest blind to it.

    >>> columns_of_trees([2, 0, 1], 3, 0.7), columns_of_trees([2, 0, 1], 1, 0.7)
    ([(0, 1), (1, 2), (0, 2)], [(0, 1, 2)])
    """
    width = len(order)
    missing = 0 if trees == 1 else width - max(1, round(share * width))
    dealt = [{order[(t * missing + i) % width] for i in range(missing)} for t in range(trees)]
    return [tuple(c for c in range(width) if c not in gone) for gone in dealt]


def automatic_trees(epsilon: float, rows: int) -> int:
    """Few trees: a deeper one on more records beats a vote of shallow ones.

    >>> [automatic_trees(e, 36_000) for e in (0.2, 1, 4)]
    [1, 1, 3]
    """
    return int(np.clip(epsilon * rows // 40_000, 1, 15))
