"""`AutoClassifier`: the family and its parameters from public facts, so that nobody has to tune on private data.

What decides is the *signal* Nε, the number of records times the budget: how many units of noise fit into the table.

- Below `FAINT` nothing but the class shares can be learnt: `Majority`.
- From there on the additive model over grids, with more terms as the signal grows (`additive_settings.automatic`): one
  term is PrivPfC's grid with smoothed cells, several are a boosted model. No other model of the family does as well on all
  tables of the bench; others do better on some, but nothing public tells on which.

**Guarantee.** A fiftieth of ε goes into noisy class counts (shown in the guarantee); the choice is a function of those, of ε
and of the schema. The rest of the budget is the chosen estimator's, with its own proof; both go through one Meter, in
sequence. With budgets the signal is the sum of all budgets, and a record weighs what its person granted (`weighing`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.classifiers.base import CountingClassifier, Floats
from sfumato.classifiers.counting.additive import PrivateAdditive, class_step
from sfumato.classifiers.counting.baselines import Majority
from sfumato.privacy import NANO, Exact, Meter
from sfumato.records.records import Records

FAINT = 60


def family_for(epsilon: float, rows: int) -> str:
    """The family that suits a budget and a number of records.

    >>> family_for(0.05, 500), family_for(0.05, 36_000)
    ('Majority', 'PrivateAdditive')
    """
    return "Majority" if epsilon * rows < FAINT else "PrivateAdditive"


@dataclass(kw_only=True, eq=False, repr=False)
class AutoClassifier(CountingClassifier):
    """The best private classifier that public facts can point to.

    Parameters
    ----------
    epsilon, schema, target, classes, source, ledger, dataset, tiers
        See `PrivateClassifier` and `CountingClassifier`.
    rows : int, optional
        A public number of records; without it the noisy class counts tell it.

    Examples
    --------
    >>> from sfumato.privacy import Seeded
    >>> from sfumato.tables import Categorical, Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 80, bins=8), "ill": Categorical(["no", "yes"])})
    >>> age = np.arange(4000)[:, None] % 80
    >>> ill = np.where(age[:, 0] < 40, "no", "yes")
    >>> model = AutoClassifier(epsilon=1, schema=schema, target="ill", source=Seeded(1)).fit(age, ill)
    >>> model.score(age, ill), model.family_, model.guarantee_.epsilon <= 1
    (1.0, 'PrivateAdditive', True)
    """

    rows: int | None = None

    def _train(self, records: Exact[Records], meter: Meter) -> None:
        nano, rows, shares = class_step(records, meter, nano=self._budget(meter), rows=self.rows, weighing=self._weighing)
        self.family_ = family_for(nano / NANO, rows)
        public: dict[str, Any] = {
            "epsilon": self.epsilon,
            "schema": self.schema,
            "target": self.target,
            "classes": self.classes,
            "tiers": self.tiers,
        }
        model: Majority | PrivateAdditive
        model = Majority(**public) if self.family_ == "Majority" else PrivateAdditive(rows=rows, **public)
        model._coding, model._weighing, model.classes_ = self._coding, self._weighing, self.classes_
        if isinstance(model, Majority):
            model._count(records, meter, nano)
        else:
            model._plan(nano, rows, shares)
            model._boost(records, meter, nano=nano, rows=rows)
        self.model_: CountingClassifier = model

    def _scores(self, leaves: NDArray[np.int32]) -> Floats:
        return self.model_._scores(leaves)
