"""A row shared out among a few parts: what counts, means and variances of all groups are measured with.

A value between public bounds lies at a share u of the way from the lower to the upper one. A row is shared out by the
Bernstein polynomials of u, which are not negative and add up to 1:

    degree 0, counts:      1
    degree 1, means:       1 - u,      u
    degree 2, variances:   (1 - u)²,   2 u (1 - u),   u²

so one row is *one row* in its group, as in a histogram, whatever its value. The number of rows, the sum of u and the sum of
u² follow: ``n = Σ parts``, ``Σ u = part 1`` (degree 1), ``Σ u² = part 2``, ``Σ u = part 2 + part 1 / 2`` (degree 2).

**Guarantee.** With weight w per row, noise of one unit (rate one) on every part: a person loses at most w times their rows,
twice that against replacement.

*Proof.* Let D be the lattice's steps to the power of the degree; parts are whole multiples of 1/D of a row. Weighted totals
``T_j = Σ_{i>=j} w part_i D`` are whole numbers, ``F_j = floor(T_j / D)`` is released as differences: part j is ``F_j -
F_{j+1}``, and ``F_0 = w n`` exactly. Rows that are added raise every T_j, so every F_j by ``f_j >= 0``, whole. The parts
then change by ``f_j - f_{j+1}``, in sum of sizes f_0 if all of these are >= 0. With two parts they are: ``f_1 <= f_0``
because f_1 is at most the smallest whole number above a part of f_0, which is whole. With three only ``f_1 - f_2`` may be
-1, by rounding: the sum is then ``f_0 + 2``. So for degree 2 rows enter with ``w - 2`` where w is charged. The noise of one
unit makes e^(that sum) of it; a person's rows come one after the other, and against replacement as many leave as enter. ∎

Why this and not a sum and a count at half the budget each: with Laplace scale s the sum around the middle and the number of
rows have the variance ``4 s²`` each (in half ranges and rows), where two questions at half the budget have ``8 s²``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import BudgetError
from sfumato.histograms.bins import Axis, Bins
from sfumato.people.headline import ALARM
from sfumato.people.histogram import PersonalHistogramPlan, plan_histogram
from sfumato.people.mechanisms.adaptive_cells import AdaptiveHistogramPlan, plan_adaptive_histogram
from sfumato.privacy import NANO, Charge, Exact, Meter, Nano
from sfumato.privacy.integers import as_int64
from sfumato.privacy.terms import Terms
from sfumato.tables.moments import Moments, WeighedMoments

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Sums = Callable[[Integers], Exact[Integers]]
"""Weighted parts of all groups, flat, for a weight per person group."""

_ONE: Integers = np.ones(1, dtype=np.int64)
ROUNDING = 2  # what rounding three parts may cost beside their weight


def moments_of(groups: Integers, cells: Integers, values: Integers, *, powers: int = 1) -> Moments:
    """The moments of rows that are at hand: a person group, the codes of a cell and a place on the lattice for each.

    >>> [part.tolist() for part in moments_of(np.array([0, 0]), np.array([[1], [1]]), np.array([3, 4]), powers=2)]
    [[0], [[1]], [[2, 7, 25]]]
    """
    keys = np.column_stack([groups, cells])
    found, place = np.unique(keys, axis=0, return_inverse=True)
    totals = np.zeros((len(found), powers + 1), dtype=np.int64)
    np.add.at(totals, place.reshape(-1), np.stack([values.astype(np.int64) ** p for p in range(powers + 1)], axis=1))
    return found[:, 0], found[:, 1:], totals


def by_weight(
    found: Exact[Moments] | WeighedMoments, weights: Integers, add_up: Callable[[Moments, Integers | None], Integers]
) -> Exact[Integers]:
    """What `add_up` makes of moments and weights; of none where the engine has weighed the rows already."""
    if isinstance(found, WeighedMoments):
        return found.of(weights).map(lambda moments: add_up(moments, None))
    return found.map(lambda moments: add_up(moments, weights))


def shared_out(found: Moments, weights: Integers | None, *, shape: tuple[int, ...], steps: int, degree: int) -> Integers:
    """The weighted parts of every group, one line each, from the moments of person groups and cells.

    Without `weights` rows were weighed already, with what they enter with.

    >>> moments = np.array([0, 0]), np.array([[0], [1]]), np.array([[2, 6], [1, 0]])  # 2 rows that add up to 6 of 2 x 4
    >>> shared_out(moments, np.array([100]), shape=(2,), steps=4, degree=1).tolist()
    [[50, 150], [100, 0]]
    """
    groups, cells, totals = found
    each = _ONE if weights is None else weights if degree < 2 else np.maximum(weights - ROUNDING, 0)
    most = int(each.max(initial=0)) * int(np.abs(totals).sum()) * (2 * steps if degree == 2 else 1)
    number = np.int64 if most < 2**62 else object  # Python integers where 64 bits might not do
    place = np.ravel_multi_index(tuple(cells.T), shape) if cells.shape[1] else np.zeros(len(groups), dtype=np.intp)
    summed = np.zeros((int(np.prod(shape)), degree + 1), dtype=number)
    np.add.at(summed, place, each[groups].astype(number)[:, None] * totals[:, : degree + 1].astype(number))
    reached = [summed[:, 0]]
    if degree == 1:
        reached.append(summed[:, 1] // steps)
    elif degree == 2:
        reached += [(2 * steps * summed[:, 1] - summed[:, 2]) // steps**2, summed[:, 2] // steps**2]
    reached.append(np.zeros_like(summed[:, 0]))
    return as_int64(np.stack([a - b for a, b in pairwise(reached)], axis=1))


def signed(found: Moments, weights: Integers | None, *, shape: tuple[int, ...], base: int, reach: int) -> Integers:
    """The weighted sum of every group in multiples of the largest size of a value, `reach` lattice units; one part.

    A row adds ``base`` plus its place on the lattice. *Proof of its price*: it moves the sum by at most w times reach, so
    the sum over reach, rounded down, by at most w, which is whole.

    >>> moments = np.array([0]), np.array([[0]]), np.array([[2, 6]])
    >>> signed(moments, np.array([100]), shape=(1,), base=1, reach=5).tolist()
    [[160]]
    """
    groups, cells, totals = found
    weights = _ONE if weights is None else weights
    number = np.int64 if int(weights.max(initial=0)) * (int(np.abs(totals).sum()) * (1 + abs(base))) < 2**62 else object
    place = np.ravel_multi_index(tuple(cells.T), shape) if cells.shape[1] else np.zeros(len(groups), dtype=np.intp)
    value = base * totals[:, 0].astype(number) + totals[:, 1].astype(number)
    summed = np.zeros(int(np.prod(shape)), dtype=number)
    np.add.at(summed, place, weights[groups].astype(number) * value)
    return as_int64(summed // reach)[:, None]


@dataclass(frozen=True, eq=False)
class Noisy:
    """Parts of all groups with their noise, in rows. Public.

    Attributes
    ----------
    parts : float array
        The best figures, a line per group.
    scale : float
        Scale of the Laplace noise of one part in them.
    seen : float array
        The figures that hold for any data; the same where nobody's budget differs.
    seen_scale : float
        Scale of the noise in them.
    missing : float
        So many rows may be missing from them, in any set of groups.
    keen : (float array, float) or None
        Where budgets differ: the figures that hold if they have nothing to do with the values, and the scale of their error.
    bias : float
        So far a sum of parts, each times a number within a range of one, may be off on average; 0 unless somebody said that
        budgets have nothing to do with values.
    told, warnings, alarm
        For the result.
    """

    parts: Floats
    scale: float
    seen: Floats
    seen_scale: float
    missing: float = 0.0
    bias: float = 0.0
    keen: tuple[Floats, float] | None = None
    told: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    alarm: str | None = None

    @property
    def groups(self) -> int:
        """How many groups."""
        return len(self.parts)

    def if_independent(self) -> Noisy | None:
        """The same with what holds if budgets have nothing to do with the values; None where nobody's budget differs."""
        if self.keen is None:
            return None
        return replace(self, seen=self.keen[0], seen_scale=self.keen[1], missing=0.0, bias=0.0, keen=None)


class Plan(Protocol):
    """A measurement of all parts, fixed from public facts."""

    @property
    def weightings(self) -> tuple[Integers, ...]:
        """The weights that people enter with, which `run` asks for; none where one ε holds."""

    @property
    def charge(self) -> Charge:
        """What it costs everybody."""

    @property
    def scale(self) -> float:
        """Scale of the noise of one part, in rows, if budgets and values are independent."""

    @property
    def seen_scale(self) -> float:
        """The same for any data."""

    def run(self, sums: Sums, meter: Meter) -> Noisy:
        """Add the noise."""


@dataclass(frozen=True, eq=False)
class OnePlan:
    """One ε for everybody: `rate` nano-ε for one row, noise on every part."""

    rate: int
    factor: int
    parts: int
    label: str = "groups"

    @property
    def weightings(self) -> tuple[Integers, ...]:
        """None: all people are alike."""
        return ()

    @property
    def charge(self) -> Charge:
        """The rows and the neighbours of one person are in the factor."""
        return Charge(Nano(self.rate * self.factor))

    @property
    def scale(self) -> float:
        """In rows."""
        return NANO / self.rate

    @property
    def seen_scale(self) -> float:
        """In rows."""
        return self.scale

    def run(self, sums: Sums, meter: Meter) -> Noisy:
        """Whole rows are counted as they are, parts of rows in nano-ε."""
        weight, rate = (1, self.rate) if self.parts == 0 else (self.rate, 1)
        found = meter.laplace(sums(np.array([weight])), rate=rate, weights=weight, label=self.label)
        rows = found.astype(np.float64).reshape(-1, max(self.parts, 1)) / weight
        return Noisy(rows, self.scale, rows, self.scale)


@dataclass(frozen=True, eq=False)
class PersonalPlan:
    """Everybody at their own budget: the parts are the bins of a histogram over people."""

    plan: AdaptiveHistogramPlan | PersonalHistogramPlan

    @property
    def weightings(self) -> tuple[Integers, ...]:
        """The weights that `run` asks for."""
        return self.plan.weightings

    @property
    def charge(self) -> Charge:
        """What each group of people loses."""
        return self.plan.charge

    @property
    def scale(self) -> float:
        """In rows."""
        return self.plan.expected_rmse / float(np.sqrt(2))

    @property
    def seen_scale(self) -> float:
        """In rows."""
        return self.plan.safe_scale if isinstance(self.plan, AdaptiveHistogramPlan) else self.plan.noise_scale

    def run(self, sums: Sums, meter: Meter) -> Noisy:
        """The histogram of the parts, and what of it holds for any data."""
        made = self.plan.run(sums, meter)
        parts = made.counts.reshape(-1, made.bins.shape[-1])
        told = {"consent": made.mechanism, **made.parameters}
        if made.any_data is None:
            keen = None if self.plan.bias_bound == 0 else (parts, self.scale)
            about: dict[str, Any] = {"bias": self.plan.bias_bound, "keen": keen, "warnings": made.warnings}
            return Noisy(parts, self.scale, parts, self.seen_scale, told=told, **about)
        agree = made.parameters.get("bins_agree")
        scale = self.scale if agree is None or agree >= ALARM else self.seen_scale
        seen = made.any_data.values.reshape(parts.shape)
        about = {"missing": made.any_data.missing, "warnings": made.warnings, "alarm": made.alarm}
        narrow = made.if_independent
        if narrow is not None and agree is not None:
            # unequal weights add a nearly normal error; a Laplace noise of the same variance stands for both
            spread = float(np.mean(narrow.spreads(narrow.values) ** 2)) / 2
            about["keen"] = (narrow.values.reshape(parts.shape), float(np.sqrt(narrow.scale**2 + spread)))
        return Noisy(parts, scale, seen, made.any_data.scale, told=told, **about)


def plan_parts(
    terms: Terms,
    groups: Bins | None,
    parts: int,
    *,
    nano: int | None,
    independent: bool = False,
    share: Fraction | None = None,
) -> Plan:
    """The measurement of so many parts in every group: at `nano` for everybody, or at a `share` of the budgets of `terms`.

    `parts` is 0 for whole rows. With budgets that differ the parts are right for any data, unless the caller vouches that
    budgets are `independent` of the values.
    """
    part = Fraction(1) if share is None else share
    if nano is not None:
        rate = terms.per_row(int(nano * part))
        if rate < 1:
            raise BudgetError("this ε buys less than a nano-ε per row; raise `epsilon` or lower rows_per_person")
        return OnePlan(rate, terms.factor, parts)
    assert terms.budgets is not None
    held = terms if share is None else replace(terms, budgets=terms.budgets.share(part))
    axis = Axis("part", tuple(str(i) for i in range(max(parts, 1))), None, ordered=False)
    bins = Bins((*(() if groups is None else groups.axes), axis))
    return PersonalPlan((plan_histogram if independent else plan_adaptive_histogram)(held, bins))
