"""Naive Bayes from one-way class counts: each column asked once.

For every column the counts of (group, class) at one level of its taxonomy are published with noise; a row's score for a
class is the log of its share plus the log-likelihood of each of its groups. The level is the finest whose cells hold, on
average, a few times the noise: a function of ε, the number of records and the schema.

**Guarantee.** A record lies in one cell of each table, so noise of rate ε/d on each of d tables loses ε in total (and one
hundredth less where the number of records is estimated first). Levels, smoothing and prediction are public functions of
that.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.classifiers.base import Floats, PrivateClassifier, size_step
from sfumato.errors import InputError
from sfumato.grids.counting import Records
from sfumato.grids.levels import Levels
from sfumato.privacy import NANO, Epsilon, Meter, Source
from sfumato.tables.schema import Schema

CELLS = 0.05  # of N ε cells in a table: twenty times the noise per cell if records were spread evenly


class PrivateNaiveBayes(PrivateClassifier):
    """Naive Bayes over one-way class counts.

    Parameters
    ----------
    epsilon, schema, target, classes, source
        See `PrivateClassifier`.
    rows : int, optional
        A public number of records; without it one hundredth of ε goes into estimating it.
    temper : float
        Power of the likelihood: below 1, columns that repeat each other are believed less. 1 is naive Bayes as in books.

    Examples
    --------
    >>> from sfumato.privacy import Seeded
    >>> from sfumato.tables import Categorical, Numeric
    >>> schema = Schema({"age": Numeric(0, 80, bins=8), "ill": Categorical(["no", "yes"])})
    >>> age = np.arange(4000)[:, None] % 80
    >>> ill = np.where(age[:, 0] < 40, "no", "yes")
    >>> PrivateNaiveBayes(epsilon=1, schema=schema, target="ill", source=Seeded(1)).fit(age, ill).score(age, ill)
    1.0
    """

    def __init__(
        self,
        *,
        epsilon: Epsilon = 1.0,
        schema: Schema | None = None,
        target: str | None = None,
        classes: Any = None,
        rows: int | None = None,
        temper: float = 0.5,
        source: Source | None = None,
    ) -> None:
        super().__init__(epsilon=epsilon, schema=schema, target=target, classes=classes, source=source)
        self.rows = rows
        self.temper = temper

    def _train(self, records: Records, meter: Meter) -> None:
        nano, rows = size_step(records, meter, nano=self._budget(meter), rows=self.rows)
        rate = nano // len(records.taxonomies)
        if rate < 1:
            raise InputError("the budget is too small for this many columns; raise epsilon")
        scale = NANO / rate
        self.levels_ = tuple(finest_level(t, most=max(2, int(CELLS * rows / scale))) for t in records.taxonomies)
        tables = []
        for j, (taxonomy, level) in enumerate(zip(records.taxonomies, self.levels_, strict=True)):
            exact = partial(records.table, ((j, level),))
            noisy = meter.laplace(exact, rate=rate, label=f"counts of {taxonomy.name}")
            tables.append(np.maximum(noisy.reshape(len(records.class_labels), -1), 0))
        totals = np.mean([t.sum(axis=1) for t in tables], axis=0) + scale
        self.log_prior_ = np.log(totals / totals.sum())
        # A group that the noise drowns is drawn towards its share over all classes: it then says nothing.
        self.log_likelihood_ = tuple(_likelihood(t, scale) for t in tables)

    def _scores(self, leaves: NDArray[np.int32]) -> Floats:
        total = np.tile(self.log_prior_, (len(leaves), 1))
        for j, (level, table) in enumerate(zip(self.levels_, self.log_likelihood_, strict=True)):
            known = leaves[:, j] >= 0
            group = self._coding.taxonomies[j].maps[level][np.maximum(leaves[:, j], 0)]
            total += np.where(known, table[:, group] * self.temper, 0.0).T
        return total


def _likelihood(table: NDArray[np.int64], scale: float) -> Floats:
    group = table.sum(axis=0) + scale
    smooth = table + 2 * scale * group / group.sum() * table.shape[1] ** 0.5
    return np.asarray(np.log(smooth / smooth.sum(axis=1, keepdims=True)))


def finest_level(taxonomy: Levels, *, most: int) -> int:
    """The finest level with at most `most` nodes; at least the first below the root where there is one."""
    fits = [level for level, size in enumerate(taxonomy.sizes) if size <= most]
    return min(max(fits[-1], 1), taxonomy.height - 1)
