"""Private logistic regression and support vector machine, with one ε for all or everybody's own.

scikit-learn estimators over `objective` (one ε) and `personal` (budgets per row). What differs from their non-private
namesakes, because privacy needs it: feature bounds are public input and never read off the data, the intercept is
penalised, there are no sample weights, and more data than rows never helps (one row is one person).

Features are numbers with public bounds, or a table with a public schema as for the other classifiers. The schema is usually
much better: its columns become indicators (`features.Indicators`), as fine as the sum of all budgets carries, whose rows are
so short that Laplace noise per coordinate beats spherical noise (`objective`).

**Guarantee.** That of `objective`, which needs ‖x‖ <= 1 (and ‖x‖₁ <= S) of every row. A row becomes features by itself, by
what is public; a value, a number or a class that is not known adds nothing. With one ε the number of rows is not public: a
hundredth of ε counts it with noise, unless `rows` states it, and nothing else depends on it, so a row that adds nothing is
a row that is absent. With budgets the roster says how many rows there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_is_fitted

from sfumato.classifiers.fits import CountedFits
from sfumato.classifiers.linear.features import Indicators
from sfumato.classifiers.linear.inputs import check_table, flat_labels, label_codes, number_rows, plain, stated_width
from sfumato.classifiers.linear.objective import calibrate, minimise
from sfumato.classifiers.linear.personal import PERSONAL, Fitted, Training, train
from sfumato.classifiers.linear.proportion import Tiers, most_often
from sfumato.classifiers.linear.scaling import Scaling, signed_rows
from sfumato.errors import InputError
from sfumato.people.ensembles import average_models, majority_vote
from sfumato.privacy import (
    NANO,
    SECURE,
    Charge,
    Epsilon,
    Exact,
    Meter,
    Nano,
    NanoArray,
    PersonBudgets,
    Source,
    Terms,
    positive_nano,
)
from sfumato.privacy.objective import Floats, LossKind, Objective
from sfumato.privacy.units import nano_down_array
from sfumato.records.coding import Coding
from sfumato.records.opened import need_rows
from sfumato.tables.schema import Schema

LABELS_ARE_PUBLIC = "the set of class labels is public"
WIDTH_IS_PUBLIC = "the number of columns is public: that of the first row of a list"


@dataclass(kw_only=True, eq=False, repr=False)
class _PrivateLinear(CountedFits, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What both estimators share."""

    takes_budgets: ClassVar[bool] = True
    _loss: ClassVar[LossKind]

    epsilon: Epsilon = 1.0
    schema: Schema | None = None
    target: str | None = None
    bounds: tuple[ArrayLike, ArrayLike] | None = None
    max_norm: float | None = None
    classes: ArrayLike | None = None
    regularization: float = 1.0
    mechanism: str = "weighted"
    threshold: Epsilon | None = None
    parts: int | None = None
    ensemble: Literal["average", "vote"] = "average"
    tiers: Tiers = "as granted"
    neighbours: Literal["absence", "replacement"] = "absence"
    rows: int | None = None
    source: Source | None = None

    def fit(self, X: Any, y: Any, *, budgets: ArrayLike | None = None) -> Any:
        """Train, and set `guarantee_`.

        Parameters
        ----------
        X, y : array or data frame, and labels
            One row per person.
        budgets : numbers, optional
            Each row's own ε (public); otherwise everybody loses `epsilon`.

        Returns
        -------
        self
        """
        need_rows(X, "a classifier")
        X = plain(X)
        if y is None:
            raise InputError(f"{type(self).__name__} requires y to be passed, but the target y is None: one label per row")
        if not (np.isfinite(self.regularization) and self.regularization > 0):
            raise InputError(f"regularization must be a positive number, got {self.regularization!r}")
        if self.mechanism not in PERSONAL:
            raise InputError(f"unknown mechanism {self.mechanism!r}; known: {', '.join(PERSONAL)}")
        most_often(self.tiers)  # refuses what it does not know
        table, codes = self._coded(X, y) if self.schema is not None else self._numbers(X, y)
        problems = 1 if self.classes_.size == 2 else self.classes_.size
        terms = Terms(neighbours=self.neighbours)
        if budgets is None:
            meter = Meter.under(terms.up_to(Charge(positive_nano(self.epsilon))), source=self.source or SECURE)
            left, count = self._counted(codes, meter)
            self._features: Any = self._describe(left / NANO * count / problems)
            fitted = [self._alike(signed, meter, Nano(left // problems), count) for signed in self._signed(table, codes)]
        else:
            nano = self._roster(budgets, len(X))
            roster = PersonBudgets.from_nano(nano)
            meter = Meter.under(terms.up_to(None, budgets=roster), source=self.source or SECURE)
            self._features = self._describe(float(nano.sum()) / NANO / problems)
            groups = np.searchsorted(roster.levels, nano)
            fitted = [self._personal(signed, meter, roster, groups, problems) for signed in self._signed(table, codes)]
        if self.classes is None and self.schema is None:
            meter.assume(LABELS_ARE_PUBLIC)
        if self.schema is None and not hasattr(X, "shape") and stated_width(self.bounds) is None:
            meter.assume(WIDTH_IS_PUBLIC)
        self._models = np.stack([f.models for f in fitted])  # problem, part, coefficient
        self._weights = np.stack([f.weights for f in fitted])
        averaged = np.stack([average_models(f.models, f.weights) for f in fitted])
        self.coef_, self.intercept_ = self._features.unscaled(averaged)
        self.meter_ = meter
        self.guarantee_ = meter.guarantee()
        self.parameters_ = fitted[0].parameters
        self.n_iter_ = 1
        self._count_fit(X, self.guarantee_.nano, private=meter.private)
        return self

    # --- training ----------------------------------------------------------------------------------------------------

    def _counted(self, codes: Exact[NDArray[np.int64]], meter: Meter) -> tuple[Nano, int]:
        """What is left of the budget, and the number of rows: stated, or counted with a hundredth of the budget."""
        nano = positive_nano(self.epsilon)
        if self.rows is not None:
            if self.rows < 1:
                raise InputError(f"a public number of rows must be positive, got {self.rows}")
            return nano, int(self.rows)
        rate = max(1, meter.terms.per_row(nano // 100))
        noisy = meter.laplace(codes.map(lambda c: [np.count_nonzero(c >= 0)]), rate=rate, label="number of records")
        return Nano(nano - rate * meter.terms.factor), max(1, int(noisy[0]))

    def _describe(self, signal: float) -> Scaling | Indicators:
        """Which features the rows have, by what is public."""
        if self.schema is not None:
            return Indicators.for_signal(self._coding.taxonomies, signal)
        return Scaling.of(self.n_features_in_, self.bounds, self.max_norm)

    def _signed(self, table: Exact[Any], codes: Exact[NDArray[np.int64]]) -> list[Exact[Any]]:
        """The rows ``y x`` of each problem: one class against the rest."""
        rows = table.map(self._features.rows)
        classes = [1] if self.classes_.size == 2 else list(range(self.classes_.size))
        return [rows.zip(codes).map(partial(signed_rows, number=c)) for c in classes]

    def _alike(self, signed: Exact[Any], meter: Meter, nano: Nano, count: int) -> Fitted:
        """One model at one ε for everybody."""
        at = calibrate(
            nano,
            kind=self._loss,
            dimension=self._features.dimension,
            moves=2 if self.neighbours == "replacement" else 1,
            regularization=float(self.regularization),
            length=self._features.length,
            rows=count,
        )
        objective = signed.map(lambda z: Objective(self._loss, z, np.ones(z.shape[0]), at.penalty))
        model = meter.optimum(objective, minimise, by=at.by, label="objective perturbation")
        return Fitted(model[None, :], np.ones(1), {"penalty": at.penalty})

    def _personal(
        self, signed: Exact[Any], meter: Meter, roster: PersonBudgets, groups: NDArray[np.int64], problems: int
    ) -> Fitted:
        """By everybody's own ε."""
        size, length, penalty = self._features.dimension, self._features.length, float(self.regularization)
        t = Training(self._loss, signed, size, groups, roster, penalty, problems, length, self.tiers)
        threshold = None if self.threshold is None else Nano(positive_nano(self.threshold, "threshold") // problems)
        return train(t, meter, mechanism=self.mechanism, threshold=threshold, parts=self.parts)

    def decision_function(self, X: Any) -> Floats:
        """Signed scores of the rows of `X`; models of several parts are averaged by their precision."""
        rows = self._rows(X)
        scores = rows @ np.stack([average_models(m, w) for m, w in zip(self._models, self._weights, strict=True)], axis=1)
        return np.asarray(scores[:, 0] if self.classes_.size == 2 else scores)

    def predict(self, X: Any) -> NDArray[Any]:
        """Class labels of the rows of `X`, from the averaged scores or (``ensemble='vote'``) by majority of the parts."""
        if self.ensemble == "vote":
            rows = self._rows(X)
            scores = np.stack([rows @ self._models[:, part].T for part in range(self._models.shape[1])])
            labels = (scores[:, :, 0] > 0).astype(int) if self.classes_.size == 2 else scores.argmax(axis=2)
            return np.asarray(self.classes_[majority_vote(labels)])
        scores = self.decision_function(X)
        return np.asarray(self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)])

    # --- input -------------------------------------------------------------------------------------------------------

    def _numbers(self, X: Any, y: Any) -> tuple[Exact[Floats], Exact[NDArray[np.int64]]]:
        """Numbers and class numbers of a table without a schema."""
        check_table(self, X, reset=True, width=stated_width(self.bounds))
        Scaling.of(self.n_features_in_, self.bounds, self.max_norm)
        labels = flat_labels(y)
        _check_lengths(X, labels)
        if self.classes is None:  # then the labels are public, and the guarantee says so
            assert_all_finite(np.asarray(labels), input_name="y")
            check_classification_targets(labels)
        known = np.unique(np.asarray(labels if self.classes is None else self.classes))
        if known.size < 2:
            raise InputError(f"a classifier needs at least 2 classes, got {known.size} class; state them with classes=[...]")
        self.classes_: NDArray[Any] = known
        return Exact.reading(partial(number_rows, X, self.n_features_in_)), Exact.reading(
            partial(label_codes, labels, known)
        )

    def _coded(self, X: Any, y: Any) -> tuple[Exact[NDArray[np.int32]], Exact[NDArray[np.int64]]]:
        """Leaves and class numbers (-1 for an unknown one) of the rows by the public schema."""
        if self.bounds is not None or self.max_norm is not None:
            raise InputError("the schema states the domains of all columns: leave bounds and max_norm out")
        classes = None if self.classes is None else list(np.asarray(self.classes).tolist())
        coding = Coding.of(self.schema, target=self.target, classes=classes)
        if coding.schema.unit.person is not None:
            raise InputError("one row is one person here: give a table with one row per person and a schema without a unit")
        coding._columns(X)
        _check_lengths(X, y)
        self._coding: Coding = coding
        self.classes_ = coding.classes
        self.n_features_in_: int = len(coding.attributes)
        return Exact.reading(partial(coding.leaves, X)), Exact.reading(partial(coding.class_codes, y))

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self, "coef_")
        need_rows(X, "a classifier")
        if self.schema is not None:
            return self._features.rows(self._coding.leaves(X))
        X = plain(X)
        check_table(self, X, reset=False, width=self.n_features_in_)
        return self._features.rows(number_rows(X, self.n_features_in_))

    def _roster(self, budgets: ArrayLike, rows: int) -> NanoArray:
        nano = nano_down_array(budgets)
        if nano.shape != (rows,):
            raise InputError(f"budgets holds {nano.size} values for {rows} rows: give each row its own ε")
        return nano

    def __getstate__(self) -> dict[str, Any]:
        # A Meter holds a lock and a source of noise; what a stored model needs of it is the guarantee.
        state = dict(super().__getstate__())
        state.pop("meter_", None)
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # No value is refused: what is no number adds nothing.
        tags.input_tags.allow_nan = tags.input_tags.string = True
        tags.non_deterministic = True
        return tags


def _check_lengths(X: Any, y: Any) -> None:
    if len(X) != len(y):
        raise InputError("X and y have different lengths: one label per row is needed")


class PrivateLogisticRegression(_PrivateLinear):
    """Logistic regression by objective perturbation.

    Parameters
    ----------
    epsilon : number
        What everybody loses, if `fit` gets no budgets.
    schema, target
        Public domains of the columns and the column that holds the classes, as for the other classifiers.
    bounds : (low, high)
        Without a schema: public bounds of the features, numbers or one per feature. Values beyond are clipped.
    max_norm : float
        Instead of bounds: the largest Euclidean norm of a row; longer rows are scaled back (one-hot data).
    classes : array, optional
        The public class labels; without them the labels in y are taken and the guarantee says so.
    regularization : float
        Least penalty on the coefficients; noise may raise it.
    mechanism : "weighted", "minimum", "threshold", "sampling" or "partition"
        How `budgets` are used.
    threshold, parts
        Parameters of threshold and sampling (in ε), and of partition.
    ensemble : "average" or "vote"
        How labels of several parts are combined.
    tiers : "as granted", "in proportion" or a number
        How much more the generous may weigh than the strict in the weighted fit: as their budgets allow, not at all (for
        budgets that go with the records; more noise), or so many times. `parameters_` holds the lean and the noise.
    neighbours : "absence" or "replacement"
        What the promise compares with: the same rows without one person, or with another record in its place.
    rows : int, optional
        A public number of rows; without it a hundredth of `epsilon` counts them with noise. Not needed with budgets.
    source : Source, optional
        Random bits; secure unless given. `Seeded` is for experiments: the guarantee then says *not private*.

    Examples
    --------
    >>> X = np.sin(np.arange(8000) ** 2).reshape(4000, 2); y = (X[:, 0] > 0).astype(int)
    >>> model = PrivateLogisticRegression(epsilon=1, bounds=(-1, 1)).fit(X, y)
    >>> bool(model.score(X, y) > 0.8), str(model.guarantee_.epsilon) <= "1"
    (True, True)
    >>> model = PrivateLogisticRegression(bounds=(-1, 1)).fit(X, y, budgets=np.tile([0.1, 1.0], 2000))
    >>> bool((model.guarantee_.people <= [10**8, 10**9]).all())
    True
    """

    _loss = "logistic"

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities of the rows of `X`; one-vs-rest probabilities are scaled to add up to one."""
        scores = self.decision_function(X)
        share = 0.5 * (1 + np.tanh(scores / 2))
        if share.ndim == 1:
            return np.stack([1 - share, share], axis=1)
        share = np.maximum(share, 1e-300)
        return np.asarray(share / share.sum(axis=1, keepdims=True))


class PrivateSVM(_PrivateLinear):
    """Linear support vector machine with a Huber hinge, by objective perturbation.

    Parameters
    ----------
    epsilon, schema, target, bounds, max_norm, classes, regularization
        See `PrivateLogisticRegression`.
    mechanism, threshold, parts, ensemble, tiers, neighbours, rows, source
        See `PrivateLogisticRegression`.

    Examples
    --------
    >>> X = np.sin(np.arange(8000) ** 2).reshape(4000, 2); y = np.where(X[:, 1] > 0, "up", "down")
    >>> bool(PrivateSVM(epsilon=1, bounds=(-1, 1)).fit(X, y).score(X, y) > 0.8)
    True
    """

    _loss = "huber"
