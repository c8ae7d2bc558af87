"""What every method has to beat: `Majority`, one noisy count per class.

**Guarantee of Majority.** A record lies in one class, so noise of rate ε on the class counts loses ε.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.classifiers.base import Floats, PrivateClassifier, log_counts
from sfumato.privacy import NANO, Exact, Meter
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

    def _train(self, records: Exact[Records], meter: Meter) -> None:
        rate, classes = self._budget(meter), self._coding.classes.size
        exact = records.map(lambda r: np.bincount(r.classes, minlength=classes))
        noisy = meter.laplace(exact, rate=rate, label="class counts")
        self.log_counts_ = log_counts(noisy, scale=NANO / rate)

    def _scores(self, leaves: NDArray[np.int32]) -> Floats:
        return np.tile(self.log_counts_, (len(leaves), 1))
