"""The law of an estimate's error, for honest intervals.

The error of a linear release is a sum of independent Laplace noises and a nearly normal term (people enter with unequal
weights, so the weighted mean differs from the plain one even without noise). Its characteristic function is known in
closed form, so ``P(|error| <= h)`` is a Fourier series, and the half-width is its root: no simulation, and no
normal approximation of the Laplace part, whose tails are heavier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError

_TERMS = np.arange(1, 2001, dtype=np.float64)  # the rest of the series is below 1e-5
_NARROWINGS = 5  # of the interval of a ratio
_PERIOD = 20.0  # in standard deviations: the tail beyond it is below 1e-12


class ErrorLaw(Protocol):
    """How far the answer may lie from the truth if budgets and values are independent."""

    @property
    def rmse(self) -> float:
        """Root of the mean square."""

    def halfwidth(self, confidence: float) -> float:
        """h with ``P(|error| <= h) = confidence``."""

    def to_dict(self) -> dict[str, Any]:
        """For artefacts."""


def check_confidence(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise InputError(f"confidence must lie between 0 and 1, for example 0.95; got {confidence!r}")
    return float(confidence)


@dataclass(frozen=True)
class LaplacePlusNormal:
    """Independent Laplace noises of the given scales plus one normal term.

    `heads` are scales too, of what the noise in each head count of a private roster adds. They are kept apart because two
    answers share that noise: where laws are combined they add up, group by group.

    >>> round(LaplacePlusNormal((1.0,)).halfwidth(0.95), 3)  # ln 20
    2.996
    >>> round(LaplacePlusNormal((), 1.0).halfwidth(0.95), 3)
    1.96
    """

    scales: tuple[float, ...]
    sd: float = 0.0
    heads: tuple[float, ...] = field(default=(), repr=False)

    @property
    def rmse(self) -> float:
        return float(np.sqrt(self.sd**2 + 2 * np.square((*self.scales, *self.heads)).sum()))

    def to_dict(self) -> dict[str, Any]:
        told: dict[str, Any] = {"laplace_scales": list(self.scales), "normal_sd": self.sd}
        return told | ({"head_scales": list(self.heads)} if self.heads else {})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The law that `to_dict` wrote down."""
        return cls(tuple(data["laplace_scales"]), data["normal_sd"], tuple(data.get("head_scales", ())))

    @property
    def _one_noise(self) -> bool:
        return self.sd == 0 and len(self.scales) == 1 and not any(self.heads)

    @cached_property
    def _series(self) -> NDArray[np.float64]:
        """Characteristic function at the frequencies of the series, divided by the term's number."""
        t = _TERMS * (np.pi / (_PERIOD * self.rmse))
        log_phi = -0.5 * (self.sd * t) ** 2
        every = (*self.scales, *self.heads)
        for scale, times in zip(*np.unique(every, return_counts=True), strict=True):  # a range has many alike
            log_phi -= times * np.log1p((scale * t) ** 2)
        return np.asarray(np.exp(np.maximum(log_phi, -700.0)) * (2 / np.pi) / _TERMS)

    def coverage(self, halfwidth: float) -> float:
        """``P(|error| <= halfwidth)``."""
        total = self.rmse
        if total == 0 or halfwidth >= _PERIOD * total:
            return 1.0
        if self._one_noise:
            return float(-np.expm1(-halfwidth / self.scales[0]))
        share = halfwidth / (_PERIOD * total)
        return float(np.clip(share + np.dot(self._series, np.sin(_TERMS * (np.pi * share))), 0.0, 1.0))

    def halfwidth(self, confidence: float) -> float:
        check_confidence(confidence)
        if self._one_noise:
            return float(-np.log1p(-confidence) * self.scales[0])
        if self.rmse == 0:
            return 0.0
        from scipy import optimize  # slow to import, and only intervals need it

        # In standard deviations: a third of the evaluations of a bisection, and means ask for several half-widths.
        share = optimize.brentq(lambda x: self.coverage(x * self.rmse) - confidence, 0.0, _PERIOD, xtol=1e-11)
        return float(share * self.rmse)


def added(first: tuple[float, ...], second: tuple[float, ...]) -> tuple[float, ...]:
    """Scales of noise that two answers share, at worst: group by group their sum."""
    return tuple(a + b for a, b in zip(first, second, strict=True)) if first and second else first or second


@dataclass(frozen=True)
class RatioLaw:
    """The error of a noisy sum over a noisy count (Fieller 1954).

    For the true ratio r the number ``sum - r count`` has a known law, that of ``e - r f`` with e and f the errors of the sum
    and the count, so ``|sum - r count| <= h(r)`` holds with exactly the confidence that h(r) was made for, and
    ``|r - ratio| <= h(r) / count``. h grows with |r|, which is at most `reach`: putting in the largest |r| that is left
    narrows the interval step by step, and every step is valid.

    Attributes
    ----------
    sum_of, count_of : LaplacePlusNormal
        Laws of the two errors; their normal parts may come from the same people and are added up.
    ratio, count : float
        As released; the count is above zero.
    reach : float
        The largest size of a true ratio.
    beside : float
        What else may move the ratio (rounding, bias): it is not in the half-width, but |r| may be larger by it.

    Examples
    --------
    >>> law = RatioLaw(LaplacePlusNormal((10.0,)), LaplacePlusNormal((1.0,)), ratio=2.0, count=100.0, reach=50.0)
    >>> round(law.halfwidth(0.95), 3), round(law.rmse, 3)
    (0.305, 0.144)
    """

    sum_of: LaplacePlusNormal
    count_of: LaplacePlusNormal
    ratio: float
    count: float
    reach: float
    beside: float = 0.0

    def _error(self, ratio: float) -> LaplacePlusNormal:
        """Of ``sum - r count``."""
        scaled = tuple(ratio * scale for scale in self.count_of.scales)
        heads = added(self.sum_of.heads, tuple(ratio * scale for scale in self.count_of.heads))
        return LaplacePlusNormal((*self.sum_of.scales, *scaled), self.sum_of.sd + ratio * self.count_of.sd, heads)

    @property
    def rmse(self) -> float:
        """To first order."""
        return self._error(min(abs(self.ratio), self.reach)).rmse / self.count

    def to_dict(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in ("ratio", "count", "reach", "beside")}
        return {"sum_of": self.sum_of.to_dict(), "count_of": self.count_of.to_dict(), **plain}

    def halfwidth(self, confidence: float) -> float:
        largest = self.reach
        for _ in range(_NARROWINGS):
            half = self._error(largest).halfwidth(confidence) / self.count
            left = abs(self.ratio) + half + self.beside
            if left > 0.999 * largest:
                break
            largest = left
        return half


@dataclass(frozen=True, eq=False)
class DiscreteLaw:
    """A finite law of the error: its values and their probabilities.

    >>> DiscreteLaw(np.array([-1.0, 0.0, 1.0]), np.array([0.02, 0.96, 0.02])).halfwidth(0.9)
    0.0
    """

    errors: NDArray[np.float64]
    probabilities: NDArray[np.float64]

    @property
    def rmse(self) -> float:
        return float(np.sqrt((self.probabilities * self.errors**2).sum()))

    def to_dict(self) -> dict[str, Any]:
        return {"errors": self.errors.tolist(), "probabilities": self.probabilities.tolist()}

    def halfwidth(self, confidence: float) -> float:
        check_confidence(confidence)
        size = np.abs(self.errors)
        order = np.argsort(size, kind="stable")
        reached = np.cumsum(self.probabilities[order])
        return float(size[order][min(int(np.searchsorted(reached, confidence)), size.size - 1)])


def law_from_dict(data: Mapping[str, Any]) -> ErrorLaw:
    """The law that `to_dict` wrote down.

    >>> law_from_dict(LaplacePlusNormal((2.0,), 1.0).to_dict())
    LaplacePlusNormal(scales=(2.0,), sd=1.0)
    """
    if "errors" in data:
        return DiscreteLaw(np.array(data["errors"], dtype=np.float64), np.array(data["probabilities"], dtype=np.float64))
    if "sum_of" in data:
        numbers = {name: data[name] for name in ("ratio", "count", "reach", "beside")}
        parts = LaplacePlusNormal.from_dict(data["sum_of"]), LaplacePlusNormal.from_dict(data["count_of"])
        return RatioLaw(*parts, **numbers)
    return LaplacePlusNormal.from_dict(data)
