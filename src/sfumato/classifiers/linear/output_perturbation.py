"""Output perturbation: fit a regularised logistic regression, then add noise to its coefficients.

Chaudhuri, Monteleoni & Sarwate, *Differentially private empirical risk minimization*, JMLR 2011, Algorithm 1.

**Guarantee.** The objective ``Σ l(y x·f) + λ/2 ‖f‖²`` is λ-strongly convex and one record adds a gradient of norm at most
``|l'| ‖x‖ <= 1``, so the minimum moves by at most 1/λ, and what is computed of it by ``(1 + 2γ)/λ`` (`privacy.optimum`).
Noise of density ∝ exp(-β‖b‖) then loses β times that; β = ε λ/(1 + 2γ). Several classes are fitted one against the rest with
an equal share each. Features come from public domains and have norm at most one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.classifiers.base import Floats, PrivateClassifier
from sfumato.classifiers.linear.features import design
from sfumato.classifiers.linear.objective import minimise
from sfumato.classifiers.linear.scaling import signed_rows
from sfumato.errors import InputError
from sfumato.privacy import NANO, Exact, Meter
from sfumato.privacy.objective import Objective
from sfumato.privacy.optimum import Perturbation
from sfumato.records.records import Records

ENOUGH = 1 << 27  # rows for which the minimum is found finely enough; more of them cost a few millionths of ε


@dataclass(kw_only=True, eq=False, repr=False)
class OutputPerturbation(PrivateClassifier):
    """Logistic regression with noise on the coefficients.

    Parameters
    ----------
    epsilon, schema, target, classes, source, ledger, dataset
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

    def _train(self, records: Exact[Records], meter: Meter) -> None:
        if not self.noise > 0:
            raise InputError(f"the length of the noise must be positive, got {self.noise!r}")
        taxonomies, count = self._coding.taxonomies, len(self._coding.class_labels)
        problems = 1 if count == 2 else count
        nano = self._budget(meter) // problems
        dimension = design(np.empty((0, len(taxonomies)), dtype=np.int32), taxonomies, groups=self.groups).shape[1]
        penalty = max(1.0, dimension * NANO / nano / self.noise)
        by = Perturbation("logistic", dimension, penalty, nano / NANO * penalty, on="output", rows=ENOUGH)
        by = replace(by, beta=by.beta / (1 + 2 * by.within) * (1 - 1e-9))
        rows = records.map(lambda r: (design(r.leaves, taxonomies, groups=self.groups), r.classes))

        def objective(c: int) -> Exact[Objective]:
            def signed(table: tuple[Floats, NDArray[np.integer]]) -> Objective:
                return Objective("logistic", signed_rows(table, c), np.ones(len(table[1])), penalty)

            return rows.map(signed)

        classes = [1] if problems == 1 else range(problems)
        self.coef_ = np.stack([meter.optimum(objective(c), minimise, by=by, label="coefficients") for c in classes])

    def _scores(self, leaves: NDArray[np.int32]) -> Floats:
        scores = design(leaves, self._coding.taxonomies, groups=self.groups) @ self.coef_.T
        return np.hstack([-scores, scores]) / 2 if scores.shape[1] == 1 else scores
