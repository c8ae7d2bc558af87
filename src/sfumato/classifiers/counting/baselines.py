"""What every method has to beat: `Majority`, one noisy count per class.

**Guarantee of Majority.** A record lies in one class, so noise of rate ε on the class counts loses ε; with budgets it
loses its weight times the rate (`weighing`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.classifiers.base import CountingClassifier, Floats, log_counts
from sfumato.privacy import NANO, Exact, Meter, Nano
from sfumato.records.records import Records


class Majority(CountingClassifier):
    """Predicts the most frequent class for everybody.

    Parameters
    ----------
    epsilon, schema, target, classes, source, ledger, dataset, tiers
        See `PrivateClassifier` and `CountingClassifier`.

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
        self._count(records, meter, self._budget(meter))

    def _count(self, records: Exact[Records], meter: Meter, rate: Nano) -> None:
        """Count the classes; `rate` is what a unit of weight may cost."""
        noisy = meter.laplace(
            records.map(lambda r: r.table(())), rate=rate, weights=self._weighing.groups, label="class counts"
        )
        self.log_counts_ = log_counts(noisy, scale=NANO / rate)

    def _scores(self, leaves: NDArray[np.int32]) -> Floats:
        return np.tile(self.log_counts_, (len(leaves), 1))
