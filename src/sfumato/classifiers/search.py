"""`PrivateSearch`: parameters chosen within one ε.

A search that fits every candidate with ε and compares exact scores spends ε once per fit and publishes scores without noise.
Here all candidates are fitted on all records, each with an equal share of ε, and one is chosen by how many records it
predicts rightly.

**Guarantee.** Every fit has the guarantee of its estimator at its share; shares in sequence add up. Given the fitted models,
which are public by then, one record changes the number of right predictions of each by 0 or 1: a spread of one, so the
choice at rate r loses r (times the rows that a person may own; more of them do not count). The model that is chosen was paid
for and is not fitted again.

**What it costs.** With k candidates a fit has a k-th of what the choice leaves of ε. Giving each candidate a k-th of the
records at full ε instead (Chaudhuri, Monteleoni & Sarwate 2011, section 6) leaves the same number of records times ε, which
is what noise is measured by, but fewer records: no gain. So a search pays off only where the candidates differ by more than
the noise that k times less ε brings; the rules that the estimators have for their parameters cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sfumato.classifiers.charging import charged
from sfumato.classifiers.fits import accounted
from sfumato.classifiers.linear.inputs import flat_labels, label_codes, plain
from sfumato.classifiers.model_file import write_model
from sfumato.errors import InputError, PrivacyError
from sfumato.ledger import Ledger
from sfumato.privacy import SECURE, Charge, Epsilon, Exact, Meter, Nano, Source, Terms, as_epsilon, positive_nano
from sfumato.records.opened import need_rows
from sfumato.records.owners import owners_in, within_cap

Grid = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]]
_SET_HERE = ("epsilon", "source", "schema", "target", "classes", "neighbours", "ledger", "dataset")


def _best_has(name: str) -> Any:
    return available_if(lambda search: hasattr(getattr(search, "best_estimator_", search.estimator), name))


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateSearch(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The best of some candidates, all within one ε.

    Parameters
    ----------
    estimator : private classifier
        Whose parameters are searched; its own `epsilon` and `source` do not matter.
    grid : dict, or list of dicts
        Values to try for each parameter: all combinations, as for scikit-learn's `ParameterGrid`.
    epsilon : number
        What the whole search may cost anybody.
    choice : float
        Share of ε for the choice; the candidates have the rest in equal parts.
    source : Source, optional
        Random bits; secure unless given.
    ledger, dataset
        Where the whole search is charged, once; see `PrivateClassifier`.

    Examples
    --------
    >>> from sfumato.classifiers import PrivateSVM
    >>> from sfumato.privacy import Seeded
    >>> X = np.sin(np.arange(8000) ** 2).reshape(4000, 2); y = (X[:, 0] > 0).astype(int)
    >>> model = PrivateSVM(bounds=(-1, 1), classes=[0, 1])
    >>> search = PrivateSearch(estimator=model, grid={"regularization": [1.0, 1e5]}, epsilon=3, source=Seeded(1)).fit(X, y)
    >>> search.best_params_, search.score(X, y) > 0.8, str(search.guarantee_.epsilon) <= "3"
    ({'regularization': 1.0}, True, True)
    """

    estimator: Any = None
    grid: Grid | None = None
    epsilon: Epsilon = 1.0
    choice: float = 0.1
    source: Source | None = None
    ledger: Ledger | str | Path | None = None
    dataset: str | None = None

    def fit(self, X: Any, y: Any) -> Any:
        """Fit every candidate, choose one, and set `best_estimator_`, `best_params_`, `best_index_` and `guarantee_`.

        Parameters
        ----------
        X : data frame or array
            The rows.
        y : labels
            One per row.

        Returns
        -------
        self
        """
        need_rows(X, "a search")
        candidates, terms = self._candidates(), self._terms()
        nano = positive_nano(self.epsilon)
        for_choice = terms.per_row(int(nano * self.choice))
        each = terms.per_row((nano - for_choice * terms.factor) // len(candidates))
        if min(for_choice, each) < 1:
            raise InputError(f"epsilon {self.epsilon} is too small for {len(candidates)} candidates and a choice")
        X, labels = plain(X), flat_labels(y)
        if len(X) != len(labels):
            raise InputError("X and y have different lengths: one label per row is needed")
        meter = Meter.under(terms.up_to(Charge(nano)), source=self.source or SECURE)
        models = []
        counting = None if terms.person is None else owners_in(X, terms.person)
        with charged(self, meter) as entry:
            for number, parameters in enumerate(candidates):
                meter.charge(rate=each, label=f"fit of candidate {number + 1} of {len(candidates)}")
                models.append(self._fitted(parameters, Nano(each * terms.factor), X, y, meter))
            scores = Exact.reading(
                lambda: _right(models, X, labels, counting, terms.rows_per_person), rows_per_person=terms.rows_per_person
            )
            self.best_index_ = meter.choose(scores, rate=for_choice, spread=1, label="choice of a candidate")
        if entry is not None:
            self.ledger_entry_, self.ledger_spent_ = entry.id, entry.spent()
        self.best_estimator_, self.best_params_ = models[self.best_index_], candidates[self.best_index_]
        self.candidates_ = candidates
        self.classes_, self.n_features_in_ = self.best_estimator_.classes_, self.best_estimator_.n_features_in_
        self.guarantee_ = meter.guarantee()
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Class labels of the rows of `X`, by the chosen model."""
        check_is_fitted(self, "best_estimator_")
        return np.asarray(self.best_estimator_.predict(X))

    @_best_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities of the rows of `X`, by the chosen model."""
        check_is_fitted(self, "best_estimator_")
        return np.asarray(self.best_estimator_.predict_proba(X))

    @_best_has("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Signed scores of the rows of `X`, by the chosen model."""
        check_is_fitted(self, "best_estimator_")
        return np.asarray(self.best_estimator_.decision_function(X))

    def to_portable(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The chosen model as plain JSON and arrays, with the promise of the whole search; see `PrivateClassifier`."""
        check_is_fitted(self, "best_estimator_")
        header, arrays = self.best_estimator_.to_portable()
        return header | {"guarantee": self.guarantee_.to_dict()}, arrays

    def save(self, folder: str | Path) -> Path:
        """Write the chosen model to `folder`, with the promise of the whole search; `sfumato.load` reads it back."""
        return write_model(Path(folder), *self.to_portable())

    def _candidates(self) -> list[dict[str, Any]]:
        known = self.estimator.get_params() if hasattr(self.estimator, "get_params") else {}
        if "epsilon" not in known:
            raise InputError(
                "PrivateSearch needs a private classifier with an epsilon of its own, as estimator=PrivateSVM(...)"
            )
        found = [] if not self.grid else list(ParameterGrid(self.grid))
        if not found:
            raise InputError("PrivateSearch needs candidates: give grid={'regularization': [1.0, 10.0]}")
        for name in {name for parameters in found for name in parameters}:
            if name in _SET_HERE or name not in known:
                why = "is the same for all candidates" if name in _SET_HERE else "is not a parameter of the estimator"
                raise InputError(f"{name!r} {why}: take it out of the grid")
        if not 0 < self.choice < 1:
            raise InputError(f"the share of the choice must lie between 0 and 1, got {self.choice!r}")
        return found

    def _terms(self) -> Terms:
        schema = getattr(self.estimator, "schema", None)
        if schema is not None:
            stated: Terms = schema.terms
            return replace(stated, neighbours=getattr(self.estimator, "neighbours", stated.neighbours))
        return Terms(neighbours=getattr(self.estimator, "neighbours", "absence"))

    def _fitted(self, parameters: dict[str, Any], nano: Nano, X: Any, y: Any, meter: Meter) -> Any:
        model = clone(self.estimator).set_params(**parameters, epsilon=as_epsilon(nano), source=self.source)
        model.set_params(ledger=None, dataset=None)  # the search was charged for all of them
        with accounted():
            model.fit(X, y)
        promised = model.guarantee_
        if (
            promised.nano > nano
            or promised.neighbours != meter.neighbours
            or promised.rows_per_person > meter.rows_per_person
        ):
            raise PrivacyError(f"{type(model).__name__} promises less than the search paid for: it cannot be a candidate")
        for assumption in promised.assumptions:
            meter.assume(assumption)
        return model


def _right(models: Sequence[Any], X: Any, labels: Any, owners: Any, most: int) -> list[int]:
    """How many rows each model predicts rightly, of every person as many as count; each row by itself."""
    known = np.sort(np.asarray(models[0].classes_))
    true = label_codes(labels, known)
    counts = true >= 0 if owners is None else within_cap(owners, most, true >= 0)
    return [int(np.count_nonzero(counts & (true == label_codes(np.asarray(m.predict(X)), known)))) for m in models]
