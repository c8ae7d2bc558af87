"""The functional mechanism: publish a noisy polynomial objective, then minimise it (Zhang et al., PVLDB 2012).

Linear regression on a label ±1 has the objective ``fᵀ(Σ x xᵀ) f - 2 (Σ y x)ᵀ f``; logistic regression is replaced by its
Taylor polynomial of degree two at 0, ``(1/8) fᵀ(Σ x xᵀ) f - (1/2)(Σ y x)ᵀ f``. Both are known once the matrix ``A = Σ x xᵀ``
and the vector ``b = Σ y x`` are, and these get the noise. A noisy A need not be positive definite; then the objective has no
minimum, so the penalty is raised to the size of the noise and negative directions are dropped (the paper's regularisation
and spectral trimming), which is post-processing.

**Guarantee.** ε-differential privacy against the absence of a record.

- Rows are rounded to integers: ``x`` becomes ``z = trunc(S x)``, so sums are exact. One record adds ``z_i z_j`` (i <= j) to
A's
  upper triangle, ``±z`` to b.
- Its loss at rates r_A, r_b is ``r_A Σ_{i<=j} |z_i z_j| + r_b Σ|z_i| <= r_A (‖z‖₁² + ‖z‖₂²)/2 + r_b ‖z‖₁``.
- The features of column c put at most one entry of size at most s = S/sqrt(columns + 1) into the row, so with m = columns +
1
  entries ``‖z‖₁ <= m s`` and ``‖z‖₂² <= m s²``, whatever the number of indicators. (The paper's 2(d + 1)² counts every
  feature and forgets none; counting what one row can really hold is what makes indicators affordable.)
- The bounds are public integers, and the Meter is given exactly that weight.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.classifiers.base import Floats, PrivateClassifier
from sfumato.classifiers.linear.features import design
from sfumato.errors import InputError
from sfumato.privacy import NANO, Exact, Meter
from sfumato.records.records import Records

LATTICE = 64  # size of one entry of a row after rounding; finer would leave no whole nano-ε per unit
_BLOCK = 1 << 16


@dataclass(kw_only=True, eq=False, repr=False)
class FunctionalMechanism(PrivateClassifier):
    """Linear or logistic regression by the functional mechanism; several classes one against the rest.

    Parameters
    ----------
    epsilon, schema, target, classes, source, ledger, dataset
        See `PrivateClassifier`.
    loss : "logistic" or "linear"
    groups : int
        Categories with more values are taken at a coarser level of their taxonomy.

    Examples
    --------
    >>> from sfumato.privacy import Seeded
    >>> from sfumato.tables import Categorical, Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 80, bins=8), "ill": Categorical(["no", "yes"])})
    >>> age = np.arange(4000)[:, None] % 80
    >>> ill = np.where(age[:, 0] < 40, "no", "yes")
    >>> model = FunctionalMechanism(epsilon=1, schema=schema, target="ill", source=Seeded(1)).fit(age, ill)
    >>> model.score(age, ill) > 0.9, model.guarantee_.epsilon <= 1
    (True, True)
    """

    loss: str = "logistic"
    groups: int = 8

    def _train(self, records: Exact[Records], meter: Meter) -> None:
        if self.loss not in ("logistic", "linear"):
            raise InputError(f"loss must be 'logistic' or 'linear', got {self.loss!r}")
        nano = self._budget(meter)
        entries = len(self._coding.taxonomies) + 1
        count = len(self._coding.class_labels)
        problems = 1 if count == 2 else count
        sums = records.map(partial(objective_sums, classes=(1,) if problems == 1 else range(problems), groups=self.groups))
        # The matrix is the same for all classes: half of the budget, the vectors share the other half.
        moved = LATTICE**2 * (entries**2 + entries) // 2
        matrix_rate, vector_rate = nano // 2 // moved, nano // 2 // (entries * LATTICE * problems)
        if min(matrix_rate, vector_rate) < 1:
            raise InputError("the budget is too small for this many columns; raise epsilon or drop columns")
        # The weight is a bound on the sum of all changes that one record makes, so it is paid once ("one" coordinate).
        noisy = meter.laplace(
            sums[0],
            rate=matrix_rate,
            weights=moved,
            touches="one",
            label="matrix of the objective",
        )
        size = int((np.sqrt(8 * noisy.size + 1) - 1) / 2)
        A = np.zeros((size, size))
        A[np.triu_indices(size)] = noisy / LATTICE**2
        A = A + np.triu(A, 1).T
        models = []
        for c in range(problems):
            b = meter.laplace(sums[1][c], rate=vector_rate, weights=entries * LATTICE, label="vector of the objective")
            models.append(_minimum(A, b / LATTICE, self.loss, noise=NANO / matrix_rate / LATTICE**2))
        self.coef_ = np.stack(models)

    def _scores(self, leaves: NDArray[np.int32]) -> Floats:
        rows = design(leaves, self._coding.taxonomies, groups=self.groups) * np.sqrt(len(self._coding.taxonomies) + 1)
        scores = rows @ self.coef_.T
        return np.hstack([-scores, scores]) / 2 if scores.shape[1] == 1 else scores


def integer_rows(features: Floats, columns: int) -> Floats:
    """Rows whose entries are whole numbers of size at most `LATTICE`, rounded towards 0.

    They are kept as float64, which adds up whole numbers below 2**53 exactly, in any order: enough for 2**40 rows.
    """
    return np.asarray(np.trunc(features * (np.sqrt(columns + 1) * LATTICE)))


def objective_sums(records: Records, classes: Iterable[int], groups: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Upper triangle of ``Σ z zᵀ`` and, for each of the classes against the rest, ``Σ ±z``; in blocks, for the memory."""
    signs = np.stack([np.where(records.classes == c, 1.0, -1.0) for c in classes])
    matrix: Any = 0.0
    vectors: Any = 0.0
    for start in range(0, max(1, len(records.classes)), _BLOCK):
        block = slice(start, start + _BLOCK)
        rows = integer_rows(design(records.leaves[block], records.taxonomies, groups=groups), len(records.taxonomies))
        matrix = matrix + rows.T @ rows
        vectors = vectors + signs[:, block] @ rows
    return whole(matrix[np.triu_indices(len(matrix))]), whole(vectors)


def whole(sums: Floats) -> NDArray[np.int64]:
    """Exact sums as integers."""
    return np.asarray(sums).astype(np.int64)


def _minimum(A: Floats, b: Floats, loss: str, *, noise: float) -> Floats:
    """Minimum of the noisy polynomial: a penalty as large as the noise matrix, and no negative directions."""
    values, vectors = np.linalg.eigh(A)
    penalty = noise * np.sqrt(2.0 * len(b)) * 2
    held = np.maximum(values, 0.0) + penalty
    solution = vectors @ ((vectors.T @ b) / held)
    return np.asarray(solution * (2.0 if loss == "logistic" else 1.0))
