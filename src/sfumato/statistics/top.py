"""The k most frequent of a public list of values: by noisy counts of all of them, or one at a time by permute-and-flip.

`counts` adds two-sided geometric noise to the count of every value and lists the k largest. **Guarantee:** the rate r,
per row. *Proof.* A row has one value and moves one count by one unit, so all noisy counts together cost r however many
values there are; which are the largest is computed from them.

`flip` chooses the most frequent by permute-and-flip, takes it off the list and goes on, k times at the rate r / k.
**Guarantee:** r per row. *Proof.* A row more raises one count by one and lowers none, so the changes of all scores lie in
[0, 1]: their spread is 1, half of what a score that may move both ways would have, and a choice at the rate η costs η (see
`privacy.noise`); a person who owns several rows raises counts by at most so many in all. With replacement one count falls
while another rises, which the Meter charges twice. k choices in sequence cost k η.

Why not all k from one draw of one-sided noise: a row of a value that is not listed pushes against every value that is,
each by the whole rate, so one draw costs k η too (shift all k listed values by one unit: the bound is reached). For k = 1
`flip` has half the variance of `counts`; from k = 2 on the noise of scale k / r is more than that of scale 1 / r on every
count.

**How good a list is, for any data.** Let t be the k-th largest true count. If a listed value has a count below t - a,
some value of the true top k is not listed and was beaten by it.

- `counts`: two Laplace noises of scale b = 1/r differ by a or more with the probability (1/2 + a/4b) exp(-a/b); there are
  at most (N - k) k such pairs. Or: the largest of N - k noises and of k more add up to a, at most sqrt((N - k) k)
  exp(-a/2b). Noise in whole numbers lies closer to 0 than Laplace noise rounded to them, so one row more covers it.
- `flip`: each choice takes a value a below the best that is left with a probability of at most (N - 1)/2 exp(-a r/k),
  because the best beats it unless its own exponential noise is larger by a; k choices.

So a is known beforehand for every probability: `shortfall`. Its mean square, bounded by the same, is the expected error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sfumato.histograms.bins import Bins
from sfumato.privacy import NANO, Charge, Exact, Meter, Nano
from sfumato.privacy.terms import Terms
from sfumato.registry import Mechanism
from sfumato.statistics.top_result import TopValues

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_TAKEN = -(1 << 52)  # the score of a value that is listed already: no noise brings it back


def beaten(a: Floats, size: int, k: int) -> Floats:
    """The probability, at most, that `counts` lists a value `a` scales of noise below the k-th; see the module."""
    out = max(1, size - k)
    pairs = out * k * (0.5 + a / 4) * np.exp(-a)
    return np.asarray(np.minimum(1.0, np.minimum(pairs, np.sqrt(out * k) * np.exp(-a / 2))))


def flipped(a: Floats, size: int, k: int) -> Floats:
    """The same for `flip`, in units of 1 / η."""
    return np.asarray(np.minimum(1.0, k * (size - 1) / 2 * np.exp(-a)))


@lru_cache(maxsize=256)
def bound(missed: Callable[[Floats, int, int], Floats], size: int, k: int, confidence: float) -> float:
    """a with ``missed(a) <= 1 - confidence``: the shortfall in units of the noise.

    >>> round(bound(flipped, 100, 1, 0.95), 3)  # ln(99 / 2 / 0.05)
    6.898
    """
    grid = np.linspace(0.0, 100.0, 100_001)
    return float(grid[int(np.argmax(missed(grid, size, k) <= 1 - confidence))])


@lru_cache(maxsize=256)
def root_mean_square(missed: Callable[[Floats, int, int], Floats], size: int, k: int) -> float:
    """The root of the mean square of the shortfall, at most, in units of the noise: ``E a² = ∫ 2 a P(more than a) da``."""
    grid = np.linspace(0.0, 100.0, 20_001)
    return float(np.sqrt(np.trapezoid(2 * grid * missed(grid, size, k), grid)))


@dataclass(frozen=True, eq=False)
class TopPlan:
    """How the list is made with one ε for all.

    Attributes
    ----------
    terms : Terms
    bins : Bins
        The values.
    k : int
    rate : int
        Nano-ε per row for the list.
    count_rate : int
        Nano-ε per row for how often each listed value occurs; 0 if that is not asked.
    mechanism : "counts" or "flip"
    """

    terms: Terms
    bins: Bins
    k: int
    rate: int
    count_rate: int
    mechanism: str

    @property
    def _each(self) -> int:
        """The rate of one choice."""
        return self.rate // self.k

    @property
    def charge(self) -> Charge:
        """What a person loses."""
        used = self.rate if self.mechanism == "counts" else self._each * self.k
        return Charge(Nano((used + self.count_rate) * self.terms.factor))

    def shortfall(self, confidence: float) -> float:
        """Rows by which a listed value may be below the k-th most frequent, whatever the data."""
        return bound(self._missed, self.bins.size, self.k, confidence) * self._unit + self._whole

    @property
    def _missed(self) -> Callable[[Floats, int, int], Floats]:
        return beaten if self.mechanism == "counts" else flipped

    @property
    def _whole(self) -> int:
        """What noise in whole numbers may add to the difference of two counts."""
        return int(self.mechanism == "counts")

    @property
    def _unit(self) -> float:
        return NANO / (self.rate if self.mechanism == "counts" else self._each)

    @property
    def expected_rmse(self) -> float:
        """Root mean square of that shortfall, at most, whatever the data."""
        return root_mean_square(self._missed, self.bins.size, self.k) * self._unit + self._whole

    def run(self, counts: Exact[Ints], meter: Meter) -> TopValues:
        """Choose, then count what was chosen if asked."""
        flat = counts.map(lambda found: found.reshape(-1))
        if self.mechanism == "counts":
            noisy = meter.laplace(flat, rate=np.full(self.bins.size, self.rate), label="counts of all values")
            chosen = np.argsort(-noisy, kind="stable")[: self.k]
        else:
            chosen = self._flip(flat, meter)
        found: Floats | None = None
        if self.count_rate:
            picked = flat.map(lambda every: every[chosen])
            found = meter.laplace(picked, rate=self.count_rate, label="counts of the listed values").astype(np.float64)
        return TopValues(
            bins=self.bins,
            places=chosen.astype(np.int64),
            guarantee=meter.guarantee(),
            mechanism=self.mechanism,
            shortfalls={str(c): self.shortfall(c) for c in (0.5, 0.95, 0.99)},
            counts=found,
            scale=NANO / self.count_rate if self.count_rate else 0.0,
            parameters={"k": self.k, "values": self.bins.size},
            expected_rmse=self.expected_rmse,
        )

    def _flip(self, counts: Exact[Ints], meter: Meter) -> Ints:
        """k choices, each without what was chosen before."""
        chosen: list[int] = []
        for number in range(self.k):
            taken = np.array(chosen, dtype=np.int64)
            scores = counts.map(lambda every, taken=taken: _without(every, taken))  # type: ignore[misc]
            chosen.append(meter.choose(scores, rate=self._each, label=f"value {number + 1}"))
        return np.array(chosen, dtype=np.int64)


def _without(counts: Ints, taken: Ints) -> Ints:
    """Scores of which those listed already cannot win; counts are held below 2^52, which moves no two tables apart."""
    scores = np.clip(counts, 0, 1 << 50)
    scores[taken] = _TAKEN
    return scores


def plan_top(terms: Terms, bins: Bins, k: int, *, rate: int, counted: bool = False, mechanism: str = "counts") -> TopPlan:
    """The plan of a mechanism at so many nano-ε per row; half of them for the counts of what is listed, if `counted`.

    >>> plans = [plan_top(Terms(), Bins.numbered(50), 1, rate=10**9, mechanism=m) for m in ("flip", "counts")]
    >>> [round(plan.expected_rmse, 1) for plan in plans], [round(plan.shortfall(0.95), 1) for plan in plans]
    ([4.3, 6.5], [6.2, 8.8])
    """
    from sfumato.errors import InputError

    part = rate // 2 if counted else 0
    plan = TopPlan(terms, bins, k, rate - part, part, mechanism)
    if plan.rate < k or (counted and part < 1):
        raise InputError(f"ε is too small to be divided among {k} values; raise it, or list fewer")
    return plan


def plan_counts(terms: Terms, bins: Bins, k: int, rate: int, counted: bool) -> TopPlan:
    """`counts`."""
    return plan_top(terms, bins, k, rate=rate, counted=counted)


def plan_flip(terms: Terms, bins: Bins, k: int, rate: int, counted: bool) -> TopPlan:
    """`flip`."""
    return plan_top(terms, bins, k, rate=rate, counted=counted, mechanism="flip")


MECHANISMS = (
    Mechanism(
        "counts",
        ("top",),
        plan_counts,
        "noise on the count of every value, of which the largest are listed",
        needs=("one epsilon",),
        paper="Dwork, McSherry, Nissim & Smith 2006",
    ),
    Mechanism(
        "flip",
        ("top",),
        plan_flip,
        "one value after another by permute-and-flip, each at an equal part of ε",
        needs=("one epsilon",),
        paper="McKenna & Sheldon 2020",
    ),
)
