"""Output perturbation: fit a regularised logistic regression, then add noise to its coefficients.

Chaudhuri, Monteleoni & Sarwate, *Differentially private empirical risk minimization*, JMLR 2011, Algorithm 1.

**Guarantee.** The objective ``Σ l(y x·f) + λ/2 ‖f‖²`` is λ-strongly convex and one record adds a gradient of norm at most
``|l'| ‖x‖ <= 1``, so the minimum moves by at most 1/λ. Noise of density ∝ exp(-β‖b‖) then loses β/λ; β = ε λ. Several
classes are fitted one against the rest with an equal share each. Features come from public domains and have norm at most
one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.classifiers.base import Floats, PrivateClassifier
from sfumato.classifiers.linear.features import design
from sfumato.classifiers.linear.objective import minimise, rounded
from sfumato.errors import InputError
from sfumato.privacy import NANO, Meter
from sfumato.records.records import Records


@dataclass(kw_only=True, eq=False, repr=False)
class OutputPerturbation(PrivateClassifier):
    """Logistic regression with noise on the coefficients.

    Parameters
    ----------
    epsilon, schema, target, classes, source
        See `PrivateClassifier`.
    noise : float
        Expected length of the noise vector in coefficients; it decides the penalty: ``λ = dimension / (ε noise)``.
    groups : int
        Categories with more values are taken at a coarser level of their taxonomy.

    Examples
    --------
    >>> from sfumato.privacy import Seeded
    >>> from sfumato.tables import Categorical, Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 80, bins=8), "ill": Categorical(["no", "yes"])})
    >>> age = np.arange(4000)[:, None] % 80
    >>> ill = np.where(age[:, 0] < 40, "no", "yes")
    >>> OutputPerturbation(epsilon=1, schema=schema, target="ill", source=Seeded(1)).fit(age, ill).score(age, ill) > 0.9
    True
    """

    noise: float = 1.0
    groups: int = 8

    def _train(self, records: Records, meter: Meter) -> None:
        if not self.noise > 0:
            raise InputError(f"the length of the noise must be positive, got {self.noise!r}")
        count = len(records.class_labels)
        problems = 1 if count == 2 else count
        nano = self._budget(meter) // problems
        rows = design(records.leaves, records.taxonomies, groups=self.groups)
        penalty = max(1.0, rows.shape[1] * NANO / nano / self.noise)
        models = []
        for c in range(problems):
            sign = np.where(records.classes == (1 if problems == 1 else c), 1.0, -1.0)
            # The Meter multiplies by the rows of a person itself; its argument is for one row.
            added = meter.output_noise(
                rows.shape[1], beta=float(nano / NANO * penalty) * (1 - 1e-9), sensitivity=1 / penalty, label="coefficients"
            )
            exact = minimise(
                "logistic", rows * sign[:, None], np.ones(len(rows)), penalty=penalty, noise=np.zeros(rows.shape[1])
            )
            models.append(rounded(exact + added, NANO / nano / penalty))
        self.coef_ = np.stack(models)

    def _scores(self, leaves: NDArray[np.int32]) -> Floats:
        scores = design(leaves, self._coding.taxonomies, groups=self.groups) @ self.coef_.T
        return np.hstack([-scores, scores]) / 2 if scores.shape[1] == 1 else scores
