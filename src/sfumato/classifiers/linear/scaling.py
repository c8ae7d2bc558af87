"""Numbers with public bounds as rows of Euclidean norm at most one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError
from sfumato.privacy.coded_rows import CodedRows
from sfumato.privacy.rows import NumberRows, blocks

Floats = NDArray[np.float64]
_INSIDE = 1 - 1e-12  # keeps rounding from pushing a row beyond norm one


@dataclass(frozen=True, eq=False)
class Scaling:
    """Features divided by what is public, and an intercept.

    Every feature is brought from its bounds to [-1, 1] and the row divided by the root of their number; or the row is scaled
    back to the norm `most`. What is missing is 0, the middle.
    """

    low: Floats
    high: Floats
    most: float | None

    @classmethod
    def of(cls, d: int, bounds: tuple[ArrayLike, ArrayLike] | None, max_norm: float | None) -> Scaling:
        """For `d` features.

        >>> Scaling.of(1, (0, 10), None).rows(np.array([[5.0], [99], [np.nan]])).round(3).tolist()
        [[0.0, 0.707], [0.707, 0.707], [0.0, 0.707]]
        """
        if (bounds is None) == (max_norm is None):
            raise InputError(
                "feature bounds must be public: give bounds=(low, high) (numbers or one per feature), or max_norm=... for "
                "the Euclidean norm of a row; they are never taken from the data"
            )
        given = (-1.0, 1.0) if bounds is None else bounds
        low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), (d,)) for end in given)
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
            raise InputError("bounds must be finite with low < high for every feature")
        if max_norm is not None and not (np.isfinite(max_norm) and max_norm > 0):
            raise InputError(f"max_norm must be a positive number, got {max_norm!r}")
        return cls(low, high, None if max_norm is None else float(max_norm))

    @property
    def dimension(self) -> int:
        """The number of entries of a row."""
        return self.low.size + 1

    @property
    def length(self) -> float:
        """Rows may be long in ‖·‖₁."""
        return np.inf

    @property
    def _share(self) -> float:
        return float(_INSIDE / np.sqrt(self.dimension if self.most is None else 2))

    def rows(self, X: Floats) -> Floats:
        """Rows with an intercept and Euclidean norm at most one."""
        made = np.full((len(X), self.dimension), self._share)
        for part in blocks(len(X)):
            made[part, :-1] *= self._inside(X[part])
        return made

    def _inside(self, X: Floats) -> Floats:
        """Every number brought to [-1, 1], or every row to norm one."""
        if self.most is None:
            inside = (np.clip(X, self.low, self.high) - (self.low + self.high) / 2) * (2 / (self.high - self.low))
            return np.where(np.isnan(inside), 0.0, inside)
        inside = np.where(np.isfinite(X), X, 0.0)
        top = np.abs(inside).max(axis=1, keepdims=True, initial=1.0)  # squares of larger numbers would overflow
        inside = inside / top
        return np.asarray(inside / np.maximum(np.linalg.norm(inside, axis=1, keepdims=True), self.most / top))

    def unscaled(self, models: Floats) -> tuple[Floats, Floats]:
        """Coefficients and intercepts in the units of X, for rows within the bounds."""
        slope, constant = models[:, :-1] * self._share, models[:, -1] * self._share
        if self.most is not None:
            return slope / self.most, constant
        slope = slope * (2 / (self.high - self.low))
        return slope, np.asarray(constant - slope @ ((self.low + self.high) / 2))


def signed_rows(table: tuple[Floats | CodedRows, NDArray[np.integer]], number: int) -> NumberRows | CodedRows:
    """``y x``: plus for the class of this number, minus for another, nothing for none."""
    rows, codes = table
    sides = np.where(codes < 0, 0, np.where(codes == number, 1, -1)).astype(np.int8)
    return (NumberRows(rows) if isinstance(rows, np.ndarray) else rows).beside(sides)
