"""A classifier over a published grid: PrivPfC or one of its rivals as an estimator.

The guarantee is the synopsis's (`grids.privpfc` and its neighbours: each step a share of ε, through the Meter); the
classifier is trained on the published cells, which costs nothing. What it says of a cell is worked out once, for every cell:
the table of those scores is the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.classifiers.base import CountingClassifier, Floats
from sfumato.errors import InputError
from sfumato.grids.published.classifier import GridClassifier, without_unknown_columns
from sfumato.grids.published.cuts import cell_codes, codes_of
from sfumato.grids.published.joint import Joint
from sfumato.grids.published.network import Network
from sfumato.grids.published.synopsis import Synopsis
from sfumato.grids.publishers.base import Publisher
from sfumato.grids.publishers.diffgen import DiffGen
from sfumato.grids.publishers.one_grid import Weights
from sfumato.grids.publishers.pph import PPH
from sfumato.grids.publishers.privpfc import PrivPfC
from sfumato.grids.publishers.task import Task
from sfumato.grids.publishers.uniform import UniformGrid
from sfumato.privacy import Exact, Meter, Nano, as_epsilon
from sfumato.records.records import Records
from sfumato.tables.domains import Categorical

PUBLISHERS: Mapping[str, type[Publisher]] = {kind.mechanism: kind for kind in (PrivPfC, DiffGen, PPH, UniformGrid)}


@dataclass(frozen=True, eq=False)
class CellScores:
    """What a classifier says of every cell of a grid.

    Attributes
    ----------
    synopsis : Synopsis
        The grid and its counts.
    table : float array, cells by classes, or None
        Logarithms of class weights; None where the grid knows one class only, or no columns.
    fallback : int
        The number of the most frequent class.
    """

    synopsis: Synopsis
    table: Floats | None
    fallback: int

    @classmethod
    def of(cls, trained: GridClassifier) -> CellScores:
        """Of a classifier that was trained on the cells."""
        return cls(trained.synopsis, trained.cell_scores(), trained.fallback)

    def scores(self, leaves: NDArray[np.integer]) -> Floats:
        """Logarithms of class weights for rows given by the leaves of all attributes, -1 where a value has no cell."""
        cuts = self.synopsis.cuts
        if self.table is None:
            scores = np.zeros((len(leaves), len(self.synopsis.class_labels)))
            scores[:, self.fallback] = 1.0
            return scores
        known = np.maximum(leaves, 0)
        scores = self.table[cell_codes(cuts, known)]
        lost, weights = without_unknown_columns(self.synopsis, leaves, codes_of(cuts, known))
        scores[lost] = np.log(weights / weights.sum(axis=1, keepdims=True))
        return np.asarray(scores)


@dataclass(kw_only=True, eq=False, repr=False)
class HistogramClassifier(CountingClassifier):
    """A decision tree (or any scikit-learn classifier that takes weights) over the cells of a published grid.

    Parameters
    ----------
    epsilon, schema, target, classes, source, ledger, dataset, tiers
        See `PrivateClassifier` and `CountingClassifier`.
    estimator : scikit-learn classifier, optional
        What is trained on the published cells.
    publisher : "privpfc", "diffgen", "pph" or "uniform-grid"
        Who publishes the grid.
    settings : mapping, optional
        Parameters of the publisher by name, as a plan gives them.
    grids, most, split
        As for `sfumato.grids.PrivPfC`, where that is the publisher.
    rows : int, optional
        A public number of records.

    Examples
    --------
    >>> from sfumato.privacy import Seeded
    >>> from sfumato.tables import Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 80, bins=8), "ill": Categorical(["no", "yes"])})
    >>> age = np.arange(4000)[:, None] % 80
    >>> ill = np.where(age[:, 0] < 40, "no", "yes")
    >>> model = HistogramClassifier(epsilon=1, schema=schema, target="ill", source=Seeded(1)).fit(age, ill)
    >>> model.score(age, ill), model.synopsis_.grid.startswith("age")
    (1.0, True)
    """

    takes_counts: ClassVar[bool] = True

    estimator: Any = None
    publisher: str = "privpfc"
    settings: Mapping[str, Any] | None = field(default=None)
    grids: int | str = "auto"
    most: int | str = "auto"
    split: tuple[float, float, float] | str = "auto"
    rows: int | None = None

    def _train(self, records: Exact[Records], meter: Meter) -> None:
        from sklearn.base import clone

        name = self.target or "class"
        task = Task(self._coding.attributes, name, Categorical(self.class_names()))
        weighing, publisher = self._weighing, self._publisher(name, meter)
        published: Synopsis | Network | Joint
        if isinstance(publisher, PrivPfC):
            weights = Weights(weighing.groups, None if weighing.even else weighing.heads)
            published = publisher.release(records, task, meter, weights=weights)
        elif weighing.personal:
            raise InputError(f"{self.publisher} cannot draw on personal budgets; give one epsilon for all, or take privpfc")
        else:
            published = publisher.release(records, task, meter)
        if not isinstance(published, Synopsis):
            raise InputError(f"{self.publisher} publishes no grid to train on")
        self.synopsis_ = published
        self.trained_ = self.synopsis_.classifier(None if self.estimator is None else clone(self.estimator))
        self.cells_ = CellScores.of(self.trained_)

    def _publisher(self, target: str, meter: Meter) -> Publisher:
        if self.publisher not in PUBLISHERS:
            raise InputError(f"unknown publisher {self.publisher!r}; known: {', '.join(PUBLISHERS)}")
        own: dict[str, Any] = {}
        if self.publisher == "privpfc":  # a model has no use for the columns outside
            own = {"grids": self.grids, "most": self.most, "split": self.split, "cleaning": "clip", "others": 0.0}
        settings = {**own, **(self.settings or {})}
        weighing, epsilon, rows = self._weighing, self.epsilon, self.rows
        if weighing.heads is not None:
            # What the most generous people may lose; the others lose less by their weights.
            epsilon = as_epsilon(Nano(self._budget(meter) * weighing.top * meter.terms.factor))
            rows = int(weighing.heads.sum())
        return PUBLISHERS[self.publisher](epsilon=epsilon, target=target, rows=rows, **settings)

    def _scores(self, leaves: NDArray[np.int32]) -> Floats:
        return self.cells_.scores(leaves)
