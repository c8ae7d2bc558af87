"""Private logistic regression and support vector machine, with one ε for all or everybody's own.

scikit-learn estimators over `objective` (one ε) and `personal` (budgets per row). What differs from their non-private
namesakes, because privacy needs it: feature bounds are public input and never read off the data, the intercept is
penalised, there are no sample weights, and more data than rows never helps (one row is one person).

Features are numbers with public bounds, or a table with a public schema as for the other classifiers. The schema is usually
much better: its columns become indicators (`features.Indicators`), as fine as the public sum of all budgets carries, whose
rows are so short that Laplace noise per coordinate beats spherical noise (`objective`).

**Guarantee.** That of `objective`, which needs ‖x‖ <= 1 (and ‖x‖₁ <= S) of every row. A row becomes features by itself, by
the public schema and roster (without budgets: the number of rows) alone; a value or a class that the schema does not know
adds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.classifiers.linear.features import Indicators
from sfumato.classifiers.linear.objective import Floats, Loss
from sfumato.classifiers.linear.personal import PERSONAL, Training, train
from sfumato.errors import InputError
from sfumato.people.ensembles import average_models, majority_vote
from sfumato.privacy import NANO, SECURE, Epsilon, Meter, Nano, NanoArray, PersonBudgets, Source, positive_nano
from sfumato.privacy.terms import Terms
from sfumato.privacy.units import nano_down_array
from sfumato.records.coding import Coding
from sfumato.records.opened import need_rows
from sfumato.tables.schema import Schema

_INSIDE = 1 - 1e-12  # keeps rounding from pushing a row beyond norm one
LABELS_ARE_PUBLIC = "the set of class labels is public"
ROWS_ARE_PUBLIC = "the number of rows is public"


@dataclass(kw_only=True, eq=False, repr=False)
class _PrivateLinear(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What both estimators share."""

    _loss: ClassVar[Loss]

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
    neighbours: Literal["absence", "replacement"] = "absence"
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
        rows: Any
        if self.schema is None:
            features, labels = validate_data(self, X, y, dtype=np.float64)
            check_classification_targets(labels)
            self.classes_, codes = self._codes(labels)
            nano = self._nano(budgets, features.shape[0])
            rows, length = self._scaled(features), np.inf
        else:
            codes, leaves = self._coded(X, y)
            nano = self._nano(budgets, codes.size)
            signal = float(nano.sum()) / NANO / (1 if self.classes_.size == 2 else self.classes_.size)
            self._indicators = Indicators.for_signal(self._coding.taxonomies, signal)
            rows, length = self._indicators.rows(leaves), self._indicators.length
        roster = PersonBudgets.from_nano(nano)
        groups = np.searchsorted(roster.levels, nano)
        meter = Meter.under(Terms(neighbours=self.neighbours, budgets=roster), source=self.source or SECURE)
        if budgets is None:  # the roster is then everybody at epsilon: all it tells is how many they are
            meter.assume(ROWS_ARE_PUBLIC)
        if self.classes is None and self.schema is None:
            meter.assume(LABELS_ARE_PUBLIC)
        problems = 1 if self.classes_.size == 2 else self.classes_.size
        threshold = None if self.threshold is None else Nano(positive_nano(self.threshold, "threshold") // problems)
        if self.mechanism not in PERSONAL:
            raise InputError(f"unknown mechanism {self.mechanism!r}; known: {', '.join(PERSONAL)}")
        mechanism = self.mechanism if budgets is not None else "minimum"
        fitted = []
        for c in range(problems):
            sign = np.where(codes < 0, 0.0, np.where(codes == (1 if problems == 1 else c), 1.0, -1.0))
            signed = rows * sign[:, None] if self.schema is None else rows.multiply(sign[:, None]).tocsr()
            t = Training(self._loss, signed, groups, roster, float(self.regularization), problems, length)
            fitted.append(train(t, meter, mechanism=mechanism, threshold=threshold, parts=self.parts))
        self._models = np.stack([f.models for f in fitted])  # problem, part, coefficient
        self._weights = np.stack([f.weights for f in fitted])
        averaged = np.stack([average_models(f.models, f.weights) for f in fitted])
        self.coef_, self.intercept_ = self._unscaled(averaged)
        self.meter_ = meter
        self.guarantee_ = meter.guarantee()
        self.parameters_ = fitted[0].parameters
        self.n_iter_ = 1
        return self

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

    def _codes(self, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        known = np.unique(y) if self.classes is None else np.unique(np.asarray(self.classes))
        if known.size < 2:
            raise InputError(f"a classifier needs at least 2 classes, got {known.size} class; state them with classes=[...]")
        place = np.minimum(np.searchsorted(known, y), known.size - 1)
        if (known[place] != y).any():
            raise InputError("y holds labels that are not among the stated classes; add them or leave those rows out")
        return known, place

    def _coded(self, X: Any, y: Any) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Class numbers (-1 for an unknown one) and leaves of the rows by the public schema."""
        if self.bounds is not None or self.max_norm is not None:
            raise InputError("the schema states the domains of all columns: leave bounds and max_norm out")
        classes = None if self.classes is None else list(np.asarray(self.classes).tolist())
        self._coding = Coding.of(self.schema, target=self.target, classes=classes)
        if self._coding.schema.unit.person is not None:
            raise InputError("one row is one person here: give a table with one row per person and a schema without a unit")
        self.classes_ = self._coding.classes
        self.n_features_in_ = len(self._coding.attributes)
        codes, leaves = self._coding.class_codes(y), self._coding.leaves(X)
        if codes.shape != (len(leaves),):
            raise InputError(f"{len(leaves)} rows but {codes.size} labels")
        if not codes.size:  # an empty table trains a model like any other: one blank record stands for it
            return np.full(1, -1), np.full((1, self.n_features_in_), -1, dtype=np.int32)
        return codes, leaves

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self, "coef_")
        need_rows(X, "a classifier")
        if self.schema is not None:
            return self._indicators.rows(self._coding.leaves(X))
        return self._scaled(validate_data(self, X, dtype=np.float64, reset=False))

    def _scaled(self, X: Floats) -> Floats:
        """Rows with an intercept column and Euclidean norm at most one, from public bounds only."""
        if (self.bounds is None) == (self.max_norm is None):
            raise InputError(
                "feature bounds must be public: give bounds=(low, high) (numbers or one per feature), or max_norm=... for "
                "the Euclidean norm of a row; they are never taken from the data"
            )
        d = X.shape[1]
        if self.bounds is not None:
            low, high = self._limits(d)
            inside = (np.clip(X, low, high) - (low + high) / 2) * (2 / (high - low))
            return np.asarray(np.hstack([inside, np.ones((X.shape[0], 1))]) * (_INSIDE / np.sqrt(d + 1)))
        norm = np.linalg.norm(X, axis=1, keepdims=True)
        shrink = 1 / np.maximum(norm, float(self.max_norm or 1.0))
        return np.asarray(np.hstack([X * shrink, np.ones((X.shape[0], 1))]) * (_INSIDE / np.sqrt(2)))

    def _limits(self, d: int) -> tuple[Floats, Floats]:
        assert self.bounds is not None
        low = np.broadcast_to(np.asarray(self.bounds[0], dtype=np.float64), (d,))
        high = np.broadcast_to(np.asarray(self.bounds[1], dtype=np.float64), (d,))
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
            raise InputError("bounds must be finite with low < high for every feature")
        return low, high

    def _unscaled(self, models: Floats) -> tuple[Floats, Floats]:
        """Coefficients in the units of X (for rows within the bounds), or of the schema's indicators."""
        d = models.shape[1] - 1
        if self.schema is not None:
            return models[:, :d] * self._indicators.unit, models[:, d] * self._indicators.constant
        if self.bounds is not None:
            low, high = self._limits(d)
            slope = models[:, :d] * (2 / (high - low)) / np.sqrt(d + 1)
            return slope, models[:, d] / np.sqrt(d + 1) - slope @ ((low + high) / 2)
        return models[:, :d] / float(self.max_norm or 1.0) / np.sqrt(2), models[:, d] / np.sqrt(2)

    def _nano(self, budgets: ArrayLike | None, rows: int) -> NanoArray:
        if budgets is None:
            return np.full(rows, positive_nano(self.epsilon), dtype=np.int64)
        nano = nano_down_array(budgets)
        if nano.shape != (rows,):
            raise InputError(f"budgets holds {nano.size} values for {rows} rows: give each row its own ε")
        return nano

    def __getstate__(self) -> dict[str, Any]:
        # A Meter holds a lock and a source of noise; what a stored model needs of it is the guarantee.
        state = dict(super().__getstate__())
        state.pop("meter_", None)
        return state


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
    neighbours : "absence" or "replacement"
        What the promise compares with: the same rows without one person, or with another record in its place.
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
    mechanism, threshold, parts, ensemble, neighbours, source
        See `PrivateLogisticRegression`.

    Examples
    --------
    >>> X = np.sin(np.arange(8000) ** 2).reshape(4000, 2); y = np.where(X[:, 1] > 0, "up", "down")
    >>> bool(PrivateSVM(epsilon=1, bounds=(-1, 1)).fit(X, y).score(X, y) > 0.8)
    True
    """

    _loss = "huber"
