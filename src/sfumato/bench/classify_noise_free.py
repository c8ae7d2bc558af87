"""The bench's upper end: a scikit-learn classifier on the coded columns without any noise. **Not private.**

`Meter.unsound` refuses it with the secure source; with a seeded one the guarantee says *not private*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.classifiers.base import Floats, PrivateClassifier
from sfumato.classifiers.linear.features import one_hot
from sfumato.privacy import Exact, Meter
from sfumato.records.records import Records
from sfumato.testing import reveal


@dataclass(kw_only=True, eq=False, repr=False)
class NoiseFree(PrivateClassifier):
    """Any scikit-learn classifier on the coded columns, without noise.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Logistic regression by default. It sees one column per leaf.
    epsilon, schema, target, classes, source
        See `PrivateClassifier`.
    """

    estimator: Any = None

    def _train(self, records: Exact[Records], meter: Meter) -> None:
        from sklearn.base import clone
        from sklearn.linear_model import LogisticRegression

        meter.unsound("NoiseFree adds no noise at all")
        rows = reveal(records)
        model = LogisticRegression(max_iter=500) if self.estimator is None else clone(self.estimator)
        self.model_ = model.fit(one_hot(rows.leaves, rows.taxonomies), rows.classes)

    def _scores(self, leaves: NDArray[np.int32]) -> Floats:
        shares = np.zeros((len(leaves), self.classes_.size))
        shares[:, self.model_.classes_] = self.model_.predict_proba(one_hot(leaves, self._coding.taxonomies))
        return np.log(np.maximum(shares, 1e-12))
