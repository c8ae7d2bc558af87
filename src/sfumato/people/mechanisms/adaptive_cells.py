"""Adaptive histograms: two noisy vectors over the cells, drawn to each other as far as all cells together say.

    safe V_j = (Σ min(ε_u, r) x_uj + Lap) / r,     keen R_j = n (Σ m_u x_uj + Lap) / Σ m_u,    m_u = min(ε_u - r, cap)

V is right for any data (people with less than r count in part, see below); R is precise if budgets are independent of the
values. The answer is ``R_j + s ψ_j(d / s)`` with d = V - R over *all* cells and s the scale of the safe noise: from many
cells it can be learnt whether, where and how far the two differ (`cell_shrinkage`), so that most of R's precision is kept
where they agree and the error over the cells stays that of V where they do not.

Guarantee. A row of person u sits in one cell; it moves the safe sum of that cell by min(ε_u, r) and the keen one by at most
ε_u - r, both divided by the rows a person may own (and by two where a row may be replaced by one in another cell). Every
noise has scale one, so u loses at most ε_u. All that follows is computed from the two noisy vectors and the public roster:
post-processing.

Why not one total per tier. The sum of tier totals has the noises of all tiers, of which the strictest alone, 1/ε_min, is the
noise of V at r = ε_min; so V is never noisier (three tiers .005/.1/.5: 282.8 against 283.2). Totals would leave the keen
side all of every budget instead of ε_u - r, but a noise per tier. What R loses by it is little: alone it has 1.11 times the
error of `affine` in 21 bins over these tiers.

People with a budget below r weigh less in V. The counts they lack, at most ``n - Σ min(ε_u, r)/r`` rows in any set of cells,
may be anywhere: the interval for any data is centred on half of them and has that half as its bias; the estimate takes the
keen shares for them. r makes the largest error of a cell least, as in `robust`; the lowest budget is taken if within 2%.

Intervals. The one printed first is that of V, with the exact law of its noise: it holds for any data. The narrow one is that
of R and holds if budgets are independent of the values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import BudgetError, InputError
from sfumato.histograms.bins import Bins
from sfumato.people import cell_errors
from sfumato.people.cell_shrinkage import CellShrinkage
from sfumato.people.cells import CellBracket
from sfumato.people.histogram import PersonalHistogram
from sfumato.people.mechanisms.adaptive import best_cap
from sfumato.privacy import NANO, Charge, Exact, Meter, Nano, PersonBudgets
from sfumato.privacy.terms import Terms
from sfumato.privacy.units import epsilon_text
from sfumato.registry import Mechanism

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AdaptiveHistogramPlan:
    """Weights of both histograms, from public facts. Without a keen one (all budgets alike) the safe one is the answer.

    Attributes
    ----------
    terms : Terms
    bins : Bins
    safe, keen : int64 array
        A weight per person group; no keen ones where nothing is left.
    full : int
        The weight in `safe` of people who count fully.
    """

    terms: Terms
    bins: Bins
    safe: Integers
    keen: Integers | None
    full: int
    mechanism: str = "adaptive"

    @property
    def budgets(self) -> PersonBudgets:
        """The roster."""
        assert self.terms.budgets is not None
        return self.terms.budgets

    @property
    def weightings(self) -> tuple[Integers, ...]:
        """The weights that `run` asks for."""
        return (self.safe,) if self.keen is None else (self.safe, self.keen)

    @property
    def charge(self) -> Charge:
        """What each person group loses in both."""
        both = self.safe if self.keen is None else self.safe + self.keen
        return Charge.of_people(both * self.terms.factor)

    @property
    def safe_scale(self) -> float:
        """s: scale of the safe noise of one bin, in rows."""
        return NANO / self.full

    @cached_property
    def covered(self) -> float:
        """The share of the people that the safe histogram sees: 1 unless some budgets are below r."""
        return float(np.dot(self.budgets.counts, self.safe / self.full)) / self.budgets.people

    @property
    def unseen(self) -> float:
        """Rows that may be missing from the safe histogram, whatever the data."""
        missing = 1 - self.covered
        return 0.0 if missing < 1e-9 else missing * self.budgets.people * self.terms.rows_per_person

    @property
    def bias_bound(self) -> float:
        """How far a bin may be off beside the noise, in the interval for any data."""
        return self.unseen / 2

    @cached_property
    def keen_mass(self) -> float:
        """Σ m over the people, in nano-ε."""
        assert self.keen is not None
        return float(np.dot(self.keen.astype(np.float64), self.budgets.counts))

    @cached_property
    def imbalance(self) -> float:
        """``Σ m² / (Σ m)² - 1/n`` of the keen weights."""
        assert self.keen is not None
        squares = float(np.dot(self.keen.astype(np.float64) ** 2, self.budgets.counts))
        return max(0.0, squares / self.keen_mass**2 - 1 / self.budgets.people)

    def _keen_bracket(self, counts: Floats) -> CellBracket:
        n, rows = self.budgets.people, self.terms.rows_per_person
        assert self.keen is not None
        heads = self._heads(n * self.keen / self.keen_mass)
        return CellBracket(counts, n, NANO * n / self.keen_mass, self.imbalance, rows=rows, heads=heads)

    def _heads(self, share: Floats) -> tuple[float, ...]:
        """What noisy head counts of a private roster add where people count this `share` of what they should."""
        if self.budgets.noise is None:
            return ()
        return tuple((np.abs(share - 1) * self.terms.rows_per_person * self.budgets.noise).tolist())

    def _variances(self, counts: Floats) -> Floats:
        """A² per bin, where the keen histogram has these `counts`."""
        keen = self._keen_bracket(counts)
        part = np.clip(counts / (self.budgets.people * self.terms.rows_per_person), 0.0, 1.0)
        heads = 2 * part**2 * float(np.square(keen.heads).sum())
        return np.asarray((keen.spreads(counts) ** 2 + 2 * keen.scale**2 + heads) / self.safe_scale**2)

    @cached_property
    def _even(self) -> float:
        """A² as if the people were spread evenly over the bins."""
        return float(self._variances(np.array([self.budgets.people / max(self.bins.size, 2)]))[0])

    @property
    def _reach(self) -> float:
        return self.budgets.people * self.terms.rows_per_person / self.safe_scale

    @property
    def assumes_independence(self) -> bool:
        return False

    @cached_property
    def expected_rmse(self) -> float:
        """Per bin, if budgets and values are independent and people spread evenly; see `error_at` for when they are not."""
        return self.error_at(0.0)

    def error_at(self, gap: float) -> float:
        """The expected error of a bin if a share `gap` of the keen histogram's people would have to move to other bins.

        The largest over how many bins differ: two, about the root of their number, all of them.
        """
        if self.keen is None:
            return self._error(1.0, gap)
        bins = self.bins.size
        moved = 2 * gap * self._reach
        if moved == 0:
            return self._error(cell_errors.error(bins, self._even, self._reach, 0, 0.0), 0.0)
        hits = {min(bins, 2), cell_errors.some(bins), bins}
        return max(
            self._error(cell_errors.error(bins, self._even, self._reach, hit, moved / max(hit, 2)), gap) for hit in hits
        )

    @cached_property
    def worst_rmse(self) -> float:
        """The largest expected error of a bin, over all gaps."""
        if self.keen is None:
            return self._error(1.0, 1.0)
        return self._error(cell_errors.worst(self.bins.size, self._even, self._reach), 1.0)

    def _error(self, noise: float, gap: float) -> float:
        """In counts, with what the unseen people add at most: they are given the keen shares, which are off by `gap`."""
        unseen = min(gap, 1.0) * self.unseen * np.sqrt(2 / max(self.bins.size, 2))
        return float(np.hypot(np.sqrt(2) * self.safe_scale * noise, unseen))

    def run(self, sums: Callable[[Integers], Exact[Integers]], meter: Meter) -> PersonalHistogram:
        """`sums` returns the weighted sum of every bin for a weight per person group."""
        n, size, scale = self.budgets.people, self.bins.size, self.safe_scale
        seen = self._noisy(sums, self.safe, meter, "safe") / self.full
        rows = self.terms.rows_per_person
        safe = CellBracket(seen, n, scale, missing=self.unseen, rows=rows, heads=self._heads(self.safe / self.full))
        keen, counts = safe, seen + self.unseen / size
        independent = None
        if self.keen is not None:
            found = self._noisy(sums, self.keen, meter, "keen") * (n / self.keen_mass)
            keen = self._keen_bracket(found)
            shrink = CellShrinkage(self.bins.shape, self._variances(found), self._reach)
            moved, agree = shrink((seen - self.covered * found) / scale)
            counts, independent = found + scale * moved, float(agree)
        return PersonalHistogram(
            counts=counts,
            bins=self.bins,
            guarantee=meter.guarantee(),
            mechanism=self.mechanism,
            noise=np.full(size, np.hypot(np.sqrt(2) * scale, self.bias_bound)),
            bin_losses=np.full(size, self.charge.total, dtype=np.int64),
            measurements=(),
            parameters=self._parameters(independent),
            expected_rmse=self.expected_rmse,
            warnings=self._warnings(),
            people=n,
            noise_scale=keen.scale,
            imbalance=keen.imbalance,
            any_data=safe,
            if_independent=keen,
        )

    def _noisy(self, sums: Callable[[Integers], Exact[Integers]], weights: Integers, meter: Meter, which: str) -> Floats:
        found = meter.laplace(
            sums(weights).map(lambda found: found.reshape(-1)),
            rate=np.ones(self.bins.size, dtype=np.int64),
            weights=weights,
            label=f"{which} histogram",
        )
        return found.astype(np.float64)

    def _parameters(self, independent: float | None) -> dict[str, object]:
        factor = self.terms.factor
        told: dict[str, object] = {"safe_cap": epsilon_text(Nano(self.full * factor))}
        if self.keen is None or independent is None:
            return told
        cap = epsilon_text(Nano(int(self.keen.max()) * factor))
        return {**told, "keen_cap": cap, "bins_agree": round(independent, 3)}

    def _warnings(self) -> tuple[str, ...]:
        told = []
        if self.unseen > 0.1 * self.safe_scale:
            told.append(
                f"People with a budget below ε {epsilon_text(Nano(self.full * self.terms.factor))} count in part: a bin "
                f"may be off by {self.bias_bound:,.0f} beside the noise; the interval includes it."
            )
        return tuple(told)


def plan_adaptive_histogram(held_to: Terms | PersonBudgets, bins: Bins) -> AdaptiveHistogramPlan:
    """Both histograms over a roster: r by the worst case of the safe one, the cap by the expected error of the keen one.

    A roster alone stands for one row per person.

    >>> roster = PersonBudgets.from_tiers({"strict": (0.01, 5400), "standard": (0.2, 3700), "open": (1.0, 900)})
    >>> plan = plan_adaptive_histogram(roster, Bins.numbered(20))
    >>> bool((plan.charge.people <= roster.levels).all()), plan.safe_scale
    (True, 100.0)
    """
    terms = Terms.of(held_to)
    budgets = terms.budgets
    if budgets is None:
        raise InputError("a personal histogram needs everyone's budget: terms with `budgets`")
    cap = _safe_cap(terms, budgets)
    safe = np.minimum(budgets.levels, cap) // terms.factor
    full = cap // terms.factor
    if full < 1 or int(safe.max()) < 1:
        raise BudgetError("no budget of this roster buys one row; raise the budgets or lower rows_per_person")
    left = budgets.levels // terms.factor - safe
    keen = None
    if int(np.dot(left > 0, budgets.counts > 0)):
        share = 1 / max(bins.size, 2)
        keen = np.minimum(left, best_cap(budgets, left, share * (1 - share), 2.0 * NANO**2))
    for weights in (safe, keen):
        mass = 0.0 if weights is None else float(np.dot(weights.astype(np.float64), budgets.counts))
        if mass * terms.rows_per_person >= 2.0**61:
            raise InputError("the weighted sums of this roster do not fit in 64 bits; lower the largest budgets")
    return AdaptiveHistogramPlan(terms, bins, safe, keen, int(full))


def _safe_cap(terms: Terms, budgets: PersonBudgets) -> int:
    """The r (nano-ε) with the least worst-case error of a bin: half of the unseen rows squared, and the noise."""
    e, counts = budgets.epsilons, budgets.counts.astype(np.float64)
    heads, mass = (np.concatenate([[0.0], np.cumsum(x)]) for x in (counts, counts * e))

    def worst(caps: Floats) -> Floats:
        below = np.searchsorted(e, caps)
        unseen = terms.rows_per_person * (heads[below] - mass[below] / caps)
        return np.asarray((unseen / 2) ** 2 + 2 * (terms.factor / caps) ** 2)

    caps = np.geomspace(e[0], e[-1], 400)
    best = int(np.argmin(worst(caps)))
    caps = np.concatenate([caps[:1], np.geomspace(caps[max(0, best - 1)], caps[min(caps.size - 1, best + 1)], 400)])
    errors = worst(caps)
    if errors[0] <= 1.02**2 * errors.min():  # nobody is seen in part
        return int(budgets.levels[0])
    return max(int(budgets.levels[0]), min(int(caps[int(np.argmin(errors))] * NANO), int(budgets.levels[-1])))


MECHANISM = Mechanism(
    "adaptive",
    ("histogram",),
    plan_adaptive_histogram,
    "precise if budgets and values are independent, and over all bins never much worse than what assumes nothing",
    needs=("personal budgets",),
)
