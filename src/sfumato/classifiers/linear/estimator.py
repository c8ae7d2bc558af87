"""What the linear models share: public features, one ε or everybody's own, and what `fit` may look at.

Features are numbers with public bounds, or a table with a public schema as for the other classifiers. The schema is usually
much better: its columns become indicators (`features.Indicators`), as fine as the sum of all budgets carries, whose rows are
so short that Laplace noise per coordinate beats spherical noise (`objective`).

**Guarantee.** That of `objective`, which needs ‖x‖ <= 1 (and ‖x‖₁ <= S) of every row. A row becomes features by itself, by
what is public; a value, a number or a class that is not known adds nothing. With one ε the number of rows is not public: a
hundredth of ε counts it with noise, unless `rows` states it, and nothing else depends on it, so a row that adds nothing is
a row that is absent. With budgets the roster says how many rows there are. Where a person may own k rows, every row pays a
k-th: without the person k rows are absent, one after the other, and the losses of k steps add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_is_fitted

from sfumato.classifiers.fits import CountedFits
from sfumato.classifiers.learning import Learner
from sfumato.classifiers.linear.features import Indicators
from sfumato.classifiers.linear.inputs import check_table, flat_labels, label_codes, number_rows, plain, stated_width
from sfumato.classifiers.linear.objective import calibrate, minimise
from sfumato.classifiers.linear.personal import PERSONAL, Fitted, Training, train
from sfumato.classifiers.linear.proportion import Tiers, most_often
from sfumato.classifiers.linear.scaling import Scaling, signed_rows
from sfumato.errors import InputError
from sfumato.ledger import Ledger
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

ENSEMBLES = ("average", "vote")
LABELS_ARE_PUBLIC = "the set of class labels is public"
WIDTH_IS_PUBLIC = "the number of columns is public: that of the first row of a list"


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinear(Learner, CountedFits, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
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
    budgeting: str = "weighted"
    threshold: Epsilon | None = None
    parts: int | None = None
    ensemble: Literal["average", "vote"] = "average"
    tiers: Tiers = "as granted"
    neighbours: Literal["absence", "replacement"] = "absence"
    rows: int | None = None
    source: Source | None = None
    ledger: Ledger | str | Path | None = None
    dataset: str | None = None

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
        self._check_settings()
        table, codes = self._coded(X, y) if self.schema is not None else self._numbers(X, y)
        terms = Terms(neighbours=self.neighbours)
        roster: PersonBudgets | None = None
        groups: NDArray[np.int64] | None = None
        if budgets is None:
            terms = terms.up_to(Charge(positive_nano(self.epsilon)))
        else:
            nano = self._roster(budgets, len(X))
            roster = PersonBudgets.from_nano(nano)
            terms, groups = terms.up_to(None, budgets=roster), np.searchsorted(roster.levels, nano)
        meter = Meter.under(terms, source=self.source or SECURE)
        if self.classes is None and self.schema is None:
            meter.assume(LABELS_ARE_PUBLIC)
        if self.schema is None and not hasattr(X, "shape") and stated_width(self.bounds) is None:
            meter.assume(WIDTH_IS_PUBLIC)
        with self._charged(meter):
            self._train(table, codes, meter, roster, groups)
        self._count_fit(X, self.guarantee_.nano, private=meter.private)
        return self

    def _learn(self, records: Exact[Any], meter: Meter, budgets: PersonBudgets | None) -> None:
        """From coded records; with budgets from pairs of records and the person group of each."""
        self._check_settings()
        if budgets is not None and self.budgeting == "sampling" and meter.rows_per_person > 1:
            raise InputError("budgeting='sampling' draws person by person: it needs one row per person")
        rows = records if budgets is None else records[0]
        leaves, codes = rows.map(lambda r: r.leaves), rows.map(lambda r: np.asarray(r.classes, dtype=np.int64))
        self._train(leaves, codes, meter, budgets, None if budgets is None else records[1])

    # --- training ----------------------------------------------------------------------------------------------------

    def _check_settings(self) -> None:
        if not (np.isfinite(self.regularization) and self.regularization > 0):
            raise InputError(f"regularization must be a positive number, got {self.regularization!r}")
        if self.budgeting not in PERSONAL:
            raise InputError(f"unknown budgeting {self.budgeting!r}; known: {', '.join(PERSONAL)}")
        if self.ensemble not in ENSEMBLES:
            raise InputError(f"unknown ensemble {self.ensemble!r}; known: {', '.join(ENSEMBLES)}")
        most_often(self.tiers)  # refuses what it does not know

    def _train(
        self,
        table: Exact[Any],
        codes: Exact[NDArray[np.int64]],
        meter: Meter,
        roster: PersonBudgets | None,
        groups: NDArray[np.int64] | Exact[NDArray[np.int64]] | None,
    ) -> None:
        """The models of all problems, from rows (leaves or numbers) and class numbers."""
        parts = self._problems * meter.rows_per_person  # what a row of one problem has of a budget
        if roster is None or groups is None:
            left, count = self._counted(codes, meter)
            self._features: Any = self._describe(left / NANO * count / parts)
            fitted = [self._alike(signed, meter, Nano(left // parts), count) for signed in self._signed(table, codes)]
        else:
            self._features = self._describe(float(np.dot(roster.levels, roster.counts)) / NANO / parts)
            fitted = [self._personal(signed, meter, roster, groups, parts) for signed in self._signed(table, codes)]
        self._models = np.stack([f.models for f in fitted])  # problem, part, coefficient
        self._weights = np.stack([f.weights for f in fitted])
        self._average()
        self.meter_ = meter
        self.guarantee_ = meter.guarantee()
        self.parameters_ = fitted[0].parameters
        self.n_iter_ = 1

    def _average(self) -> None:
        """Coefficients as people read them, from the models of all parts."""
        each = zip(self._models, self._weights, strict=True)
        self.coef_, self.intercept_ = self._features.unscaled(np.stack([average_models(m, w) for m, w in each]))

    @property
    def _problems(self) -> int:
        """One for two classes; otherwise each class against the rest."""
        return 1 if self.classes_.size == 2 else int(self.classes_.size)

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
            moves=2 if meter.neighbours == "replacement" else 1,
            regularization=float(self.regularization),
            length=self._features.length,
            rows=count,
        )
        objective = signed.map(lambda z: Objective(self._loss, z, np.ones(z.shape[0]), at.penalty))
        model = meter.optimum(objective, minimise, by=at.by, label="objective perturbation")
        return Fitted(model[None, :], np.ones(1), {"penalty": at.penalty})

    def _personal(
        self,
        signed: Exact[Any],
        meter: Meter,
        roster: PersonBudgets,
        groups: NDArray[np.int64] | Exact[NDArray[np.int64]],
        parts: int,
    ) -> Fitted:
        """By everybody's own ε."""
        size, length, penalty = self._features.dimension, self._features.length, float(self.regularization)
        t = Training(self._loss, signed, size, groups, roster, penalty, parts, length, self.tiers)
        threshold = None if self.threshold is None else Nano(positive_nano(self.threshold, "threshold") // parts)
        return train(t, meter, mechanism=self.budgeting, threshold=threshold, parts=self.parts)

    def decision_function(self, X: Any) -> Floats:
        """Signed scores of the rows of `X`; models of several parts are averaged by their precision."""
        return self._decided(self._rows(X))

    def _decided(self, rows: Any) -> Floats:
        scores = rows @ np.stack([average_models(m, w) for m, w in zip(self._models, self._weights, strict=True)], axis=1)
        return np.asarray(scores[:, 0] if self.classes_.size == 2 else scores)

    def predict(self, X: Any) -> NDArray[Any]:
        """Class labels of the rows of `X`, from the averaged scores or (``ensemble='vote'``) by majority of the parts."""
        return self._labels(self._rows(X))

    def _labels(self, rows: Any) -> NDArray[Any]:
        if self.ensemble == "vote":
            scores = np.stack([rows @ self._models[:, part].T for part in range(self._models.shape[1])])
            labels = (scores[:, :, 0] > 0).astype(int) if self.classes_.size == 2 else scores.argmax(axis=2)
            return np.asarray(self.classes_[majority_vote(labels)])
        scores = self._decided(rows)
        return np.asarray(self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)])

    def _coded_labels(self, leaves: NDArray[np.int32]) -> NDArray[Any]:
        return self._labels(self._features.rows(leaves))

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
