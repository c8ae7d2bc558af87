"""What every method has to beat, and what none can: `Majority` (one noisy count per class) and `NoiseFree` (not private).

**Guarantee of Majority.** A record lies in one class, so noise of rate ε on the class counts loses ε.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.classifiers.base import Floats, PrivateClassifier, log_counts
from sfumato.classifiers.linear.features import one_hot
from sfumato.privacy import NANO, Meter
from sfumato.records.records import Records


class Majority(PrivateClassifier):
    """Predicts the most frequent class for everybody.

    Parameters
    ----------
    epsilon, schema, target, classes, source
        See `PrivateClassifier`.

    Examples
    --------
    >>> from sfumato.privacy import Seeded
    >>> from sfumato.tables import Categorical, Schema
    >>> schema = Schema({"sex": Categorical(["F", "M"]), "ill": Categorical(["no", "yes"])})
    >>> model = Majority(epsilon=1, schema=schema, target="ill", source=Seeded(1))
    >>> model.fit([["F"]] * 100, ["no"] * 80 + ["yes"] * 20).predict([["M"]]).tolist()
    ['no']
    """

    def _train(self, records: Records, meter: Meter) -> None:
        rate = self._budget(meter)
        noisy = meter.laplace(
            lambda: np.bincount(records.classes, minlength=len(records.class_labels)), rate=rate, label="class counts"
        )
        self.log_counts_ = log_counts(noisy, scale=NANO / rate)

    def _scores(self, leaves: NDArray[np.int32]) -> Floats:
        return np.tile(self.log_counts_, (len(leaves), 1))


@dataclass(kw_only=True, eq=False, repr=False)
class NoiseFree(PrivateClassifier):
    """Any scikit-learn classifier on the coded columns, without noise: the bench's upper end. **Not private.**

    Fitting with the secure source is refused; with a seeded one the guarantee says *not private*.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Logistic regression by default. It sees one column per leaf.
    epsilon, schema, target, classes, source
        See `PrivateClassifier`.
    """

    estimator: Any = None

    def _train(self, records: Records, meter: Meter) -> None:
        from sklearn.base import clone
        from sklearn.linear_model import LogisticRegression

        meter.unsound("NoiseFree adds no noise at all")
        model = LogisticRegression(max_iter=500) if self.estimator is None else clone(self.estimator)
        self.model_ = model.fit(one_hot(records.leaves, records.taxonomies), records.classes)

    def _scores(self, leaves: NDArray[np.int32]) -> Floats:
        scores = np.full((len(leaves), self.classes_.size), -1.0)
        found = self.model_.predict(one_hot(leaves, self._coding.taxonomies))
        scores[np.arange(len(leaves)), found] = 1.0
        return scores
