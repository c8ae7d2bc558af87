"""Naive Bayes from one-way class counts: each column asked once.

For every column the counts of (group, class) at one level of its taxonomy are published with noise; a row's score for a
class is the log of its share plus the log-likelihood of each of its groups. The level is the finest whose cells hold, on
average, a few times the noise: a function of ε, the number of records and the schema.

Columns that repeat each other are counted as often as they do, which ruins naive Bayes where a class is rare. So the
likelihood is *tempered*, raised to a power below one; unless N ε is small, an eighth of ε chooses the power among a few
public ones by the number of records that the published tables would then classify correctly. (Scaling all scores alike
changes no decision, so this is also the choice of how much the prior weighs.)

**Guarantee.** ε-differential privacy against the absence of a record, in sequence:

1. Estimating the number of records, unless it is public, loses a hundredth of ε.
2. A record lies in one cell of each of the d tables: noise of rate r on each loses d r.
3. Given the tables, one more record adds 0 or 1 to every power's number of correct records: a spread of 1, so the choice at
rate η loses η.
4. The three shares add up to at most ε; levels, smoothing and prediction are public functions of what was published.
5. With budgets a record is several units of weight, each of which loses what is said here (`weighing`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sfumato.classifiers.base import CountingClassifier, Floats, size_step
from sfumato.errors import InputError
from sfumato.privacy import NANO, Exact, Meter, Nano
from sfumato.privacy.losses import choice_rate
from sfumato.records.levels import Levels
from sfumato.records.records import Records

POWERS = (0.7, 0.5, 0.35, 0.25, 0.18)
PLAIN = 0.35  # the power without a choice
FEW = 3_000  # N ε below which a choice would be mostly noise: no ε goes into it
CELLS = 0.05  # of N ε cells in a table: twenty times the noise per cell if records were spread evenly


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateNaiveBayes(CountingClassifier):
    """Naive Bayes over one-way class counts.

    Parameters
    ----------
    epsilon, schema, target, classes, source, ledger, dataset, tiers
        See `PrivateClassifier` and `CountingClassifier`.
    rows : int, optional
        A public number of records; without it one hundredth of ε goes into estimating it.
    temper : float or "auto"
        Power of the likelihood: below 1, columns that repeat each other are believed less. 1 is naive Bayes as in books. By
        default an eighth of ε chooses it where N ε is large enough; a number costs nothing.

    Examples
    --------
    >>> from sfumato.privacy import Seeded
    >>> from sfumato.tables import Categorical, Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 80, bins=8), "ill": Categorical(["no", "yes"])})
    >>> age = np.arange(4000)[:, None] % 80
    >>> ill = np.where(age[:, 0] < 40, "no", "yes")
    >>> PrivateNaiveBayes(epsilon=1, schema=schema, target="ill", source=Seeded(1)).fit(age, ill).score(age, ill)
    1.0
    """

    rows: int | None = None
    temper: float | str = "auto"

    def _train(self, records: Exact[Records], meter: Meter) -> None:
        if isinstance(self.temper, str) and self.temper != "auto":
            raise InputError(f"temper is a number or 'auto', got {self.temper!r}")
        nano, rows = size_step(records, meter, nano=self._budget(meter), rows=self.rows, weighing=self._weighing)
        choice = Nano(nano // 8 if isinstance(self.temper, str) and nano / NANO * rows >= FEW else 0)
        taxonomies, classes = self._coding.taxonomies, self._coding.classes.size
        rate = (nano - choice) // len(taxonomies)
        if rate < 1:
            raise InputError("the budget is too small for this many columns; raise epsilon")
        scale = NANO / rate
        self.levels_ = tuple(finest_level(t, most=max(2, int(CELLS * rows / scale))) for t in taxonomies)
        tables = []
        for j, (taxonomy, level) in enumerate(zip(taxonomies, self.levels_, strict=True)):
            exact = records.map(partial(Records.table, grid=((j, level),)))
            noisy = meter.laplace(exact, rate=rate, weights=self._weighing.groups, label=f"counts of {taxonomy.name}")
            tables.append(np.maximum(noisy.reshape(classes, -1), 0))
        totals = np.mean([t.sum(axis=1) for t in tables], axis=0) + scale
        self.log_prior_ = np.log(totals / totals.sum())
        # A group that the noise drowns is drawn towards its share over all classes: it then says nothing.
        self.log_likelihood_ = tuple(_likelihood(t, scale) for t in tables)
        if choice:
            best = meter.choose(
                records.map(self._correct),
                rate=choice_rate(choice, 1.0),
                spread=1.0 * self._weighing.groups,
                label="power of the likelihood",
            )
            self.temper_ = POWERS[best]
        else:
            self.temper_ = PLAIN if isinstance(self.temper, str) else float(self.temper)

    def _correct(self, records: Records) -> Floats:
        """The weight of the records that each power would classify correctly; one more adds 0 or its weight to each."""
        evidence = self._evidence(records.leaves)
        right = [(self.log_prior_ + p * evidence).argmax(axis=1) == records.classes for p in POWERS]
        return np.array(
            [np.dot(r, 1 if records.weights is None else records.weights).sum() for r in right], dtype=np.float64
        )

    def _scores(self, leaves: NDArray[np.int32]) -> Floats:
        return np.asarray(self.log_prior_ + self.temper_ * self._evidence(leaves))

    def _evidence(self, leaves: NDArray[np.integer]) -> Floats:
        total = np.zeros((len(leaves), self.log_prior_.size))
        for j, (level, table) in enumerate(zip(self.levels_, self.log_likelihood_, strict=True)):
            known = leaves[:, j] >= 0
            group = self._coding.taxonomies[j].maps[level][np.maximum(leaves[:, j], 0)]
            total += np.where(known, table[:, group], 0.0).T
        return total


def _likelihood(table: NDArray[np.int64], scale: float) -> Floats:
    group = table.sum(axis=0) + scale
    smooth = table + 2 * scale * group / group.sum() * table.shape[1] ** 0.5
    return np.asarray(np.log(smooth / smooth.sum(axis=1, keepdims=True)))


def finest_level(taxonomy: Levels, *, most: int) -> int:
    """The finest level with at most `most` nodes; at least the first below the root where there is one."""
    fits = [level for level, size in enumerate(taxonomy.sizes) if size <= most]
    return min(max(fits[-1], 1), taxonomy.height - 1)
