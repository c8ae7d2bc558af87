"""What all private classifiers share: public input, a Meter with a limit, and nothing private in any attribute.

`fit` wraps the rows as an `Exact` first thing, makes a Meter under the schema's terms with `epsilon` as its limit, and hands
both to `_train`, which can look at the records through the Meter only. What a subclass keeps is what the Meter gave back. So
the guarantee of every estimator is the sum of its Meter's calls, and each file has to argue one thing only: that the calls
state the right weights and spreads. `takes_budgets` says whether `fit` takes everybody's own ε (`weighing`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.classifiers.fits import CountedFits
from sfumato.classifiers.learning import Learner
from sfumato.classifiers.linear.proportion import Tiers, most_often
from sfumato.classifiers.weighing import ALIKE, Weighing, roster_of
from sfumato.errors import InputError
from sfumato.ledger import Ledger
from sfumato.privacy import SECURE, Charge, Epsilon, Exact, Meter, Nano, PersonBudgets, Source, positive_nano
from sfumato.records.coding import Coding
from sfumato.records.opened import need_rows
from sfumato.records.records import Records
from sfumato.tables.schema import Schema

Floats = NDArray[np.float64]


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateClassifier(Learner, CountedFits, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators.

    Parameters
    ----------
    epsilon : number
        What `fit` may cost anybody.
    schema : Schema
        Public domains of the columns. An array must have its columns in this order (without the target).
    target : str, optional
        The schema's column that holds the classes; `y` is still given to `fit`.
    classes : list, optional
        Public classes, if the schema has no target column.
    source : Source, optional
        Random bits; secure unless given. `Seeded` is for experiments: the guarantee then says *not private*.
    ledger : Ledger, path or address, optional
        Where every fit is charged before a row is read (see `charging`).
    dataset : str, optional
        The name of the table in that ledger.

    Attributes
    ----------
    takes_budgets : bool
        Whether `fit` takes ``budgets=``, everybody's own ε.
    """

    takes_budgets: ClassVar[bool] = False
    _weighing = ALIKE

    epsilon: Epsilon = 1.0
    schema: Schema | None = None
    target: str | None = None
    classes: Any = None
    source: Source | None = None
    ledger: Ledger | str | Path | None = None
    dataset: str | None = None

    def fit(self, X: Any, y: Any) -> Any:
        """Train, and set `guarantee_`.

        Parameters
        ----------
        X : data frame or array
            The rows; an array has the schema's columns in order.
        y : labels
            One per row.

        Returns
        -------
        self
        """
        return self._fit(X, y, None)

    def _fit(self, X: Any, y: Any, budgets: ArrayLike | None, tiers: Tiers = "as granted") -> Any:
        need_rows(X, "a classifier")
        coding = Coding.of(self.schema, target=self.target, classes=self.classes)
        terms = coding.schema.terms
        if budgets is None:
            self._weighing, weights = ALIKE, None
            terms = terms.up_to(Charge(positive_nano(self.epsilon)))
        else:
            roster, groups = roster_of(budgets, len(X))
            self._weighing = Weighing.of(roster, tiers)
            weights = None if self._weighing.top == 1 and self._weighing.even else self._weighing.groups[groups]
            terms = terms.up_to(None, budgets=roster)
        records = coding.records(X, y, weights=weights)
        meter = Meter.under(terms, source=self.source or SECURE)
        self._coding = coding
        self.classes_ = coding.classes
        self.n_features_in_ = len(coding.attributes)
        with self._charged(meter):
            self._train(records, meter)
        self.meter_ = meter
        self.guarantee_ = meter.guarantee()
        self._count_fit(X, self.guarantee_.nano, private=meter.private)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities of the rows of `X`, one column per class."""
        check_is_fitted(self, "guarantee_")
        return self._coded_shares(self._coding.leaves(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Class labels of the rows of `X`."""
        check_is_fitted(self, "guarantee_")
        return self._coded_labels(self._coding.leaves(X))

    def _coded_shares(self, leaves: NDArray[np.int32]) -> Floats:
        scores = self._scores(leaves)
        scores = scores - scores.max(axis=1, keepdims=True)
        share = np.exp(np.maximum(scores, -700.0))
        return np.asarray(share / share.sum(axis=1, keepdims=True))

    def _coded_labels(self, leaves: NDArray[np.int32]) -> NDArray[Any]:
        return np.asarray(self.classes_[self._scores(leaves).argmax(axis=1)])

    def _learn(self, records: Exact[Any], meter: Meter, budgets: PersonBudgets | None) -> None:
        self._train(records, meter)

    def _budget(self, meter: Meter) -> Nano:
        """What the steps may cost one unit of weight: the limit divided by the rows that a person may own."""
        if self._weighing.personal:
            nano = self._weighing.rate(meter.terms.factor)
        else:
            nano = Nano(meter.terms.per_row(positive_nano(self.epsilon)))
        if nano < 1:
            given = "the smallest of the budgets" if self._weighing.personal else f"epsilon {self.epsilon}"
            raise InputError(f"{given} is too small for {meter.terms.rows_per_person} rows per person")
        return nano

    def _train(self, records: Exact[Records], meter: Meter) -> None:
        """Learn from `records` what `meter` tells; columns and classes are in `_coding`."""
        raise TypeError(f"{type(self).__name__} does not say how it trains")

    def _scores(self, leaves: NDArray[np.int32]) -> Floats:
        """Logarithms of class weights per row."""
        raise TypeError(f"{type(self).__name__} does not say how it predicts")

    def __getstate__(self) -> dict[str, Any]:
        # A Meter holds a lock and a source of noise; what a stored model needs of it is the guarantee.
        state = dict(super().__getstate__())
        state.pop("meter_", None)
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        tags.non_deterministic = True
        return tags


def log_counts(noisy: NDArray[np.integer], *, scale: float, axis: int = 0) -> Floats:
    """Logarithms of noisy counts with a prior of about their noise: what one cell says about the classes.

    >>> log_counts(np.array([[-3, 100]]), scale=2.0).round(2).tolist()
    [[0.69, 4.62]]
    """
    return np.asarray(np.log(np.maximum(noisy, 0) + scale))


@dataclass(kw_only=True, eq=False, repr=False)
class CountingClassifier(PrivateClassifier):
    """Base of the estimators whose records may weigh what their people granted (`weighing`).

    Parameters
    ----------
    epsilon, schema, target, classes, source, ledger, dataset
        See `PrivateClassifier`.
    tiers : "as granted", "in proportion" or a number
        With budgets: how much more the generous may weigh than the strict. As their budgets allow; not at all (for budgets
        that go with the records; more noise); or so many times. `parameters_` holds the lean and the noise of each.
    """

    takes_budgets: ClassVar[bool] = True

    tiers: Tiers = "as granted"

    def fit(self, X: Any, y: Any, *, budgets: ArrayLike | None = None) -> Any:
        """Train, and set `guarantee_`.

        Parameters
        ----------
        X : data frame or array
            The rows; an array has the schema's columns in order.
        y : labels
            One per row.
        budgets : numbers, optional
            Each row's own ε (public); otherwise everybody loses `epsilon`. Where a person owns several rows, the smallest of
            theirs holds for all of them.

        Returns
        -------
        self
        """
        most_often(self.tiers)  # refuses what it does not know
        made = self._fit(X, y, budgets, self.tiers)
        self.parameters_ = dict(self._weighing.about)
        return made

    def _learn(self, records: Exact[Any], meter: Meter, budgets: PersonBudgets | None) -> None:
        """From coded records; with budgets from pairs of records and the person group of each, which decides the weight."""
        most_often(self.tiers)
        self._weighing = ALIKE if budgets is None else Weighing.of(budgets, self.tiers)
        if budgets is not None:
            each = self._weighing.groups
            records = records.map(lambda both: replace(both[0], weights=each[both[1]]))
        self._train(records, meter)
        self.parameters_ = dict(self._weighing.about)


def size_step(
    records: Exact[Records], meter: Meter, *, nano: Nano, rows: int | None, weighing: Weighing = ALIKE
) -> tuple[Nano, int]:
    """What is left of the budget of a unit, and the weight of all records: public, or counted for a hundredth of ε.

    With a roster the weight is public. One record of weight one changes the count by one, so noise of rate r loses r.
    """
    if weighing.total is not None:
        return nano, weighing.total
    if rows is not None:
        if rows < 1:
            raise InputError(f"a public number of records must be positive, got {rows}")
        return nano, int(rows)
    part = max(1, nano // 100)
    noisy = meter.laplace(records.map(lambda r: [r.total]), rate=part, label="number of records")
    return Nano(nano - part), max(1, int(noisy[0]))
