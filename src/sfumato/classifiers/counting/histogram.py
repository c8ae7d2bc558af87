"""A classifier over a published grid: PrivPfC as an estimator.

The guarantee is the synopsis's (`grids.privpfc`: number of records, choice of the grid, counts of its cells, each a share of
ε); the classifier is trained on the published cells, which costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.classifiers.base import CountingClassifier, Floats
from sfumato.grids.publishers.one_grid import Weights
from sfumato.grids.publishers.privpfc import PrivPfC
from sfumato.grids.publishers.task import Task
from sfumato.privacy import Exact, Meter, Nano, as_epsilon
from sfumato.records.records import Records
from sfumato.tables.domains import Categorical


@dataclass(kw_only=True, eq=False, repr=False)
class HistogramClassifier(CountingClassifier):
    """A decision tree (or any scikit-learn classifier that takes weights) over the cells of a PrivPfC synopsis.

    Parameters
    ----------
    epsilon, schema, target, classes, source, tiers
        See `PrivateClassifier` and `CountingClassifier`.
    estimator : scikit-learn classifier, optional
        What is trained on the published cells.
    grids, most, split
        As for `sfumato.grids.PrivPfC`.
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

    estimator: Any = None
    grids: int | str = "auto"
    most: int | str = "auto"
    split: tuple[float, float, float] | str = "auto"
    rows: int | None = None

    def _train(self, records: Exact[Records], meter: Meter) -> None:
        from sklearn.base import clone

        name = self.target or "class"
        task = Task(self._coding.attributes, name, Categorical([str(c) for c in self._coding.classes]))
        weighing, epsilon, rows = self._weighing, self.epsilon, self.rows
        if weighing.heads is not None:
            # What the most generous people may lose; the others lose less by their weights.
            epsilon = as_epsilon(Nano(self._budget(meter) * weighing.top * meter.terms.factor))
            rows = int(weighing.heads.sum())
        publisher = PrivPfC(epsilon=epsilon, target=name, grids=self.grids, most=self.most, split=self.split, rows=rows)
        weights = Weights(weighing.groups, None if weighing.even else weighing.heads)
        self.synopsis_ = publisher.release(records, task, meter, weights=weights)
        self.trained_ = self.synopsis_.classifier(None if self.estimator is None else clone(self.estimator))

    def _scores(self, leaves: NDArray[np.int32]) -> Floats:
        return self.trained_.scores(leaves)
