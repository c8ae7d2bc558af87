"""How far two noisy answers should be drawn to each other when nobody knows whether they ask about the same thing.

One answer is unbiased for any data but noisy, the other is precise but wrong by an unknown b if budgets and values go
together. In units of the first one's Laplace noise, what is seen is their difference, what is wanted is its true part:

    d = b + g + e,      e ~ Laplace(1),   g ~ N(0, A²),      estimate b + g by ψ(d)

g is what chance does to the precise answer. If b were known to be 0, ``E[g | d]`` would be best (nearly the precise
answer); ψ(d) = d keeps the unbiased one. No ψ is best at both ends (Armstrong, Kline & Sun, *Adapting to
misspecification*): lowering the error at b = 0 raises the largest error over all b. The best trade-offs form a frontier,
and a point of it is

    minimise over ψ:   λ risk(0) + (1 - λ) max_b risk(b)

Whatever the prior π over b, its Bayes estimator's Bayes risk ``λ risk(0) + (1-λ) Σ π risk`` is a *lower* bound of that
minimum, and the estimator's own value an upper bound: the two meet at the least favourable prior. It is approached by
multiplying π by exp(risk) step by step, until the bounds agree to `CLOSE`. Everything here is computed from public noise
levels, and ψ is applied to noisy numbers: post-processing.

Which λ? At 0.83 the largest error is below 1.33 times that of the unbiased answer for every A (`Shrinkage.worst`). Where
there is more to lose at independence than in the worst case, `balanced` raises λ until the two regrets are alike: the error
at b = 0 over the best one there, and the largest error over that of the best answer that assumes nothing. It stops where
the largest error reaches a price that the caller states. All of it is computed from public noise levels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

INDEPENDENT = 0.83  # the least λ
_MOST = 0.99  # the largest λ that is tried
_HALVINGS = 7  # of the range of λ: it is then known to a thousandth
CLOSE = 0.002  # relative distance of the two bounds at which the search ends
_MOST_STEPS = 400
_FAR = 25.0  # standard deviations of d: how large a b is looked at
_ALIKE = 20.0  # from this A on the unbiased answer is within half a percent of the best: nothing is to be gained


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """ψ as a table, and what it costs.

    Attributes
    ----------
    spread : float
        A: standard deviation of the precise answer's own error, in scales of the unbiased answer's noise.
    differences, moved : float arrays
        d and ψ(d).
    gaps, risks : float arrays
        b and the mean square error there.
    bound : float
        What no estimator can go below, of ``λ risk(0) + (1-λ) max risk``.
    weight : float
        λ.

    Examples
    --------
    >>> shrink = Shrinkage.of(0.59)
    >>> round(shrink.if_independent, 2), round(shrink.worst, 2)  # in standard deviations of the unbiased answer
    (0.61, 1.29)
    >>> shrink([0.5, 4.0, 40.0]).round(1).tolist()
    [0.2, 2.9, 40.0]
    """

    spread: float
    differences: Floats
    moved: Floats
    gaps: Floats
    risks: Floats
    bound: float
    weight: float

    @classmethod
    def of(cls, spread: float, *, weight: float = INDEPENDENT) -> Shrinkage:
        """The point of the frontier at λ = `weight` for A = `spread`."""
        return _solved(float(spread), float(weight))

    @classmethod
    def balanced(cls, spread: float, regret: Callable[[Shrinkage], float], price: Callable[[Shrinkage], float]) -> Shrinkage:
        """The point of the frontier where the regrets of both ends are alike, as far as the price allows.

        Parameters
        ----------
        spread : float
            A.
        regret : callable
            The error at b = 0 over the best one there.
        price : callable
            The largest error over that of the best answer for any data; infinity where it is too dear.
        """

        def enough(weight: float) -> bool:
            made = cls.of(spread, weight=weight)
            return regret(made) <= price(made)

        low, high = INDEPENDENT, _MOST
        if enough(low):
            return cls.of(spread, weight=low)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return cls.of(spread, weight=low)

    def __call__(self, differences: ArrayLike) -> Floats:
        """ψ of `differences`, in scales of the unbiased answer's noise."""
        d = np.asarray(differences, dtype=np.float64)
        far = 0.7 * self.differences[-1]  # the table ends somewhere; far out ψ(d) = d
        return np.where(np.abs(d) < far, np.interp(d, self.differences, self.moved), d)

    def error(self, gap: ArrayLike) -> Floats:
        """Root mean square error at b = `gap`, in standard deviations of the unbiased answer's noise."""
        b = np.abs(np.asarray(gap, dtype=np.float64))
        # Between the last b that was looked at and where ψ(d) = d for sure, the largest risk of all stands for the rest.
        found = np.where(b <= self.gaps[-1], np.interp(b, self.gaps, self.risks), self.risks.max())
        return np.asarray(np.sqrt(np.where(b < self.far, found, 2.0) / 2))

    @property
    def far(self) -> float:
        """From this b on ψ(d) = d but for a chance below 1e-5."""
        return float(0.7 * self.differences[-1] + 12 + 6 * self.spread)

    @property
    def if_independent(self) -> float:
        """The error at b = 0, in standard deviations of the unbiased answer's noise."""
        return float(np.sqrt(self.risks[0] / 2))

    @property
    def worst(self) -> float:
        """The largest error over all b, in the same unit."""
        return float(np.sqrt(self.risks.max() / 2))

    @property
    def excess(self) -> float:
        """How far this is from the frontier, as a ratio of root mean squares: 1 is on it."""
        reached = self.weight * self.risks[0] + (1 - self.weight) * self.risks.max()
        return float(np.sqrt(reached / self.bound))


class _Game:
    """Risks on a grid: rows are values of b >= 0 (ψ is odd, so -b has the same risk), columns values of d."""

    def __init__(self, spread: float) -> None:
        sd = float(np.sqrt(spread**2 + 2))
        step = float(np.clip(min(spread, 1.0) / 5, 0.03, 0.2))
        size = int(1.35 * _FAR * sd / step)
        self.d: Floats = np.arange(-size, size + 1, dtype=np.float64) * step
        density, first, second = _law(self.d, step, spread)
        # Even where ψ knew b it would not know g: the part of every risk that nothing removes.
        self.rest = float((second - first**2 / np.maximum(density, 1e-300)).sum())
        wanted = np.concatenate([[0.0], np.linspace(0.2, 6, 30) * sd, np.geomspace(6.3, _FAR, 24) * sd])
        places = np.unique(np.round(wanted / step).astype(int))
        self.b = places * step
        self.density = np.zeros((places.size, self.d.size))
        self.mean = np.zeros_like(self.density)
        for row, place in enumerate(places.tolist()):
            stop = self.d.size - place
            self.density[row, place:] = density[:stop]
            self.mean[row, place:] = first[:stop] + self.b[row] * density[:stop]
        self.square = (self.mean**2 / np.maximum(self.density, 1e-300)).sum(axis=1)

    def bayes(self, prior: Floats) -> Floats:
        """ψ for a prior over ±b."""
        density, mean = prior @ self.density, prior @ self.mean
        return np.asarray((mean - mean[::-1]) / np.maximum(density + density[::-1], 1e-300))

    def risks(self, psi: Floats) -> Floats:
        return np.asarray(self.density @ psi**2 - 2 * (self.mean @ psi) + self.square + self.rest)


@lru_cache(maxsize=256)
def _solved(spread: float, weight: float) -> Shrinkage:
    if spread > _ALIKE:
        line = np.array([-1.0, 1.0])
        return Shrinkage(spread, line, line, np.zeros(1), np.full(1, 2.0), 2.0, weight)
    game = _Game(spread)
    seen = game.b < 0.75 * game.b[-1]  # beyond it the table's end is felt
    slab = np.gradient(game.b) / np.maximum(game.b, 1.0) ** 2
    slab[0] = 0.0
    slab /= slab.sum()
    best: tuple[float, Floats, Floats] | None = None
    bound = 0.0
    for _ in range(_MOST_STEPS):
        prior = (1 - weight) * slab
        prior[0] = weight
        psi = game.bayes(prior)
        risks = game.risks(psi)
        largest = float(risks[seen].max())
        value = weight * float(risks[0]) + (1 - weight) * largest
        bound = max(bound, float(prior @ risks))
        if best is None or value < best[0]:
            best = value, psi, risks
        if best[0] <= bound * (1 + CLOSE):
            break
        slab = slab * np.exp(3 * (np.minimum(risks, largest) / largest - 1))
        slab[0] = 0.0
        slab /= slab.sum()
    assert best is not None
    return Shrinkage(spread, game.d, best[1], game.b[seen], best[2][seen], bound, weight)


def _law(d: Floats, step: float, spread: float) -> tuple[Floats, Floats, Floats]:
    """On the grid: the probability of g + e, and g's first and second moment times it. By convolution of cell masses."""
    normal = np.exp(-0.5 * (d / max(spread, step / 4)) ** 2)
    normal /= normal.sum()
    inside = np.maximum(np.abs(d) - step / 2, 0.0)
    laplace = 0.5 * (np.exp(-inside) - np.exp(-np.abs(d) - step / 2))
    laplace[d.size // 2] = -np.expm1(-step / 2)
    size = 1 << (2 * d.size - 1).bit_length()
    kernel = np.fft.rfft(laplace, size)
    middle = slice(d.size // 2, d.size // 2 + d.size)
    density, first, second = (
        np.fft.irfft(np.fft.rfft(normal * d**power, size) * kernel, size)[middle] for power in (0, 1, 2)
    )
    positive = density > 1e-14  # below it the transform's rounding is all there is
    return np.where(positive, density, 0.0), np.where(positive, first, 0.0), np.where(positive, second, 0.0)
