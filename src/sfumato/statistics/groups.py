"""A figure per group, three ways: separate noise, shrunk, adding up.

- `separate`: noise on every group, and nothing else. A count or sum is the noisy one, held at 0 where it cannot be negative.
  A mean is the ratio of the noisy parts, clamped to the bounds; the middle of the bounds where the noisy number of rows is
  not positive.
- `shrunk`: the same noisy numbers; every group's figure is then drawn to those of the others, as far as they agree
  (`shrinking` for means, `histograms.mechanisms.geb` for counts, `line_shrinkage` for sums).
- `adding-up`: a part of the budget goes to the totals, and all figures are made to add up by least squares (`levels`).

**Guarantee.** Every level of groups is one measurement as in `shares`: a row is in one group of it and moves its parts by
its weight in all. Levels are measured one after the other, and their prices are added up. Nothing else touches the data.

Groups are disjoint and all of them are measured, empty or not, so that which groups exist says nothing about anybody.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.histograms.mechanisms.geb import shrink
from sfumato.offers import Errors
from sfumato.people.error_law import LaplacePlusNormal
from sfumato.people.gaps import errors_of
from sfumato.privacy import NANO, Charge, Exact, Meter, Nano
from sfumato.registry import Mechanism, Parameter
from sfumato.statistics.group_question import Floats, GroupQuestion
from sfumato.statistics.groups_result import Groups, Total
from sfumato.statistics.levels import added_up, not_negative
from sfumato.statistics.line_shrinkage import shrunk_line
from sfumato.statistics.ratios import share_intervals
from sfumato.statistics.shares import Noisy, PersonalPlan, Plan
from sfumato.statistics.shrinking import shrunk_means
from sfumato.tables.moments import Moments, WeighedMoments

KINDS = ("count by", "sum by", "mean by", "proportion by")
Measure = Callable[[int, Fraction], Plan]
"""The plan that measures the groups by the first so many columns with such a share of the budget."""

TOTALS = 0.1


@dataclass(frozen=True, eq=False)
class GroupPlan:
    """A figure per group by one mechanism, fixed from public facts.

    Attributes
    ----------
    question : GroupQuestion
    mechanism : str
    plans : tuple of Plan
        For every level that is measured, the finest last.
    depths : tuple of int
        By how many columns each level is grouped.
    total : float or None
        A public figure of all groups.
    """

    question: GroupQuestion
    mechanism: str
    plans: tuple[Plan, ...]
    depths: tuple[int, ...]
    total: float | None = None

    @property
    def charge(self) -> Charge:
        """All levels in sequence."""
        charges = [plan.charge for plan in self.plans]
        people = [c.people for c in charges if c.people is not None]
        if people:
            return Charge.of_people(np.sum(people, axis=0))
        return Charge(Nano(sum(c.total for c in charges)))

    @property
    def _per_row(self) -> float | None:
        """What an error of one part of one row does to a figure; for a mean of a group of average size, if that is known."""
        q = self.question
        if q.kind in ("count", "sum"):
            return q.factor
        return None if not q.rows else q.factor / float(np.sqrt(2)) / max(1.0, q.rows / q.by.size)

    def _error(self, of_part: float) -> float | None:
        if self._per_row is None:
            return None
        most = np.inf if self.question.kind in ("count", "sum") else self.question.factor / 2
        return float(min(of_part * self._per_row, most))

    @property
    def expected_rmse(self) -> float | None:
        """That of separate noise: for counts and sums known beforehand, for means in a group of average size."""
        return self._error(float(np.sqrt(2)) * self.plans[-1].scale)

    @property
    def bias_bound(self) -> float:
        """Beside the noise, for any data."""
        plan = self.plans[-1]
        return (self._error(plan.plan.bias_bound) or 0.0) if isinstance(plan, PersonalPlan) else 0.0

    @property
    def errors(self) -> Errors | None:
        """Where budgets differ: the error by how far budgets and values go together."""
        plan = self.plans[-1]
        if not isinstance(plan, PersonalPlan) or self._per_row is None:
            return None
        found = errors_of(plan.plan)
        at = tuple(self._error(e) or 0.0 for e in found.at)
        return Errors(self._error(found.independent) or 0.0, at, self._error(found.worst) or 0.0, found.assumes)

    def run(self, found: Exact[Moments] | WeighedMoments, meter: Meter) -> Groups:
        """Measure every level, then estimate."""
        noisy = [
            plan.run(self.question.sums(found, depth), meter) for plan, depth in zip(self.plans, self.depths, strict=True)
        ]
        made = _ESTIMATES[self.mechanism](self, noisy)
        cells = noisy[-1]
        low, high = self.question.interval(cells)
        narrow = cells.if_independent()
        keen = (None, None) if narrow is None else self.question.interval(narrow)
        return Groups(
            kind=self.question.kind,
            by=self.question.by,
            low=low,
            high=high,
            low_if_independent=keen[0],
            high_if_independent=keen[1],
            guarantee=meter.guarantee(),
            mechanism=self.mechanism,
            column=self.question.column,
            parameters={**self._told(), **cells.told},
            expected_rmse=self.expected_rmse,
            warnings=cells.warnings,
            alarm=cells.alarm,
            **made,
        )

    def _told(self) -> dict[str, Any]:
        scales = {f"noise scale of {depth} columns": plan.scale for plan, depth in zip(self.plans, self.depths, strict=True)}
        q = self.question
        told: dict[str, Any] = {} if q.column is None else {"clamped": [q.low, q.high], "lattice_steps": q.steps}
        public = {} if self.total is None else {"total": self.total}
        return {**told, "noise_scale": self.plans[-1].scale, **(scales if len(self.plans) > 1 else {}), **public}


# --- estimates: what stands in the result beside the intervals for any data ------------------------------------------


def _separate(plan: GroupPlan, noisy: list[Noisy]) -> dict[str, Any]:
    cells, q = noisy[-1], plan.question
    counts = {} if q.parts < 2 else {"counts": np.maximum(cells.parts.sum(axis=1), 0.0)}
    return {"values": q.values(cells.parts), "errors": q.errors(cells), "total": _total(q, cells), **counts}


def _shrunk(plan: GroupPlan, noisy: list[Noisy]) -> dict[str, Any]:
    cells, q = noisy[-1], plan.question
    made = _separate(plan, noisy)
    if q.kind == "count":
        counts, variance = shrink(
            np.rint(cells.parts[:, 0]).astype(np.int64), np.full(cells.groups, max(1, round(NANO / cells.scale)))
        )
        return {**made, "values": counts, "errors": np.sqrt(variance)}
    if q.kind == "sum":
        raw = cells.parts[:, 0] * q.factor if q.parts == 1 else cells.parts @ np.array([q.low, q.high])
        least, most = (0.0 if q.low >= 0 else -np.inf), (0.0 if q.high <= 0 else np.inf)
        values, errors = shrunk_line(raw, cells.scale * q.factor, least=least, most=most)
        return {**made, "values": values, "errors": errors}
    # Where budgets and values go together, only the figures that assume nothing have noise of a known law to learn from.
    best = (cells.parts, cells.scale) if cells.alarm is None else (cells.seen, cells.seen_scale)
    found, width = shrunk_means(*best), q.high - q.low
    low, high = q.interval(cells)
    small = ~np.isnan(found.low)
    return {
        **made,
        "values": q.low + width * found.means,
        "errors": width * found.errors,
        "counts": found.sizes,
        "average_low": np.where(small, q.low + width * np.where(small, found.low, 0.0), low),
        "average_high": np.where(small, q.low + width * np.where(small, found.high, 1.0), high),
    }


def _adding_up(plan: GroupPlan, noisy: list[Noisy]) -> dict[str, Any]:
    q, cells = plan.question, noisy[-1]
    levels, variances = [n.parts for n in noisy], [2 * n.scale**2 for n in noisy]
    if plan.total is not None:
        levels, variances = [np.array([[plan.total / q.factor]]), *levels], [0.0, *variances]
    fitted = added_up(levels, variances)
    if q.parts != 1 or q.low >= 0:
        fitted = not_negative(fitted)
    best = fitted[-1]
    top = min(noisy, key=lambda n: n.groups * n.seen_scale**2)  # whose sum has the least noise
    total = replace(_total(q, top), value=float(_figure(q, fitted[0].sum(axis=0, keepdims=True))))
    if plan.total is not None:
        total = Total(float(plan.total), float(plan.total), float(plan.total))
    counts = {} if q.parts < 2 else {"counts": best.sum(axis=1)}
    return {"values": q.values(best), "errors": q.errors(cells), "total": total, **counts}


_ESTIMATES = {"separate": _separate, "shrunk": _shrunk, "adding-up": _adding_up}


def _figure(q: GroupQuestion, parts: Floats) -> float:
    """Of one line of parts."""
    return float(q.values(parts)[0])


def _total(q: GroupQuestion, noisy: Noisy) -> Total:
    """All groups together, from the sum of their noisy parts; its interval holds for any data."""
    parts, seen = noisy.parts.sum(axis=0, keepdims=True), noisy.seen.sum(axis=0, keepdims=True)
    # The noise of many groups together as one Laplace noise that reaches as far with 95%.
    alike = _laplace_like(noisy.groups) * noisy.seen_scale
    if q.kind in ("count", "sum"):
        low, high = q.sum_interval(seen, alike, noisy.missing, noisy.bias)
    else:
        # Sums of many noises are nearly normal: two of them reach up to 3.1% further than two such Laplace noises do.
        wide = alike if noisy.groups == 1 else 1.035 * alike
        near, far = share_intervals(seen, wide, missing=noisy.missing, bias=noisy.bias)
        low, high = (q.low + (q.high - q.low) * end for end in (near, far))
    return Total(_figure(q, parts), float(low[0]), float(high[0]))


def _laplace_like(groups: int) -> float:
    """The scale of one Laplace noise whose 95% interval holds 95% of a sum of so many noises of scale one.

    >>> _laplace_like(1), round(_laplace_like(100), 2)
    (1.0, 9.25)
    """
    if groups == 1:
        return 1.0
    law = LaplacePlusNormal((1.0,) * groups) if groups <= 64 else LaplacePlusNormal((), float(np.sqrt(2.0 * groups)))
    return max(1.0, law.halfwidth(0.95) / float(np.log(20.0)))


# --- the registry ----------------------------------------------------------------------------------------------------


def separate(question: GroupQuestion, measure: Measure) -> GroupPlan:
    """Noise on every group at the whole budget."""
    depth = len(question.by.axes)
    return GroupPlan(question, "separate", (measure(depth, Fraction(1)),), (depth,))


def shrunk(question: GroupQuestion, measure: Measure) -> GroupPlan:
    """The same noise, then empirical Bayes."""
    return replace(separate(question, measure), mechanism="shrunk")


def adding_up(
    question: GroupQuestion, measure: Measure, *, totals: float | None = None, total: float | None = None
) -> GroupPlan:
    """Totals measured as well (or one given as public), then least squares.

    Parameters
    ----------
    question : GroupQuestion
    measure : Measure
    totals : float, optional
        The share of the budget for all totals together; a tenth if left out.
    total : float, optional
        A public total of counts or sums.
    """
    if total is not None and question.kind not in ("count", "sum"):
        raise InputError(f"a public total is one of a count or a sum, not of a {question.kind}; leave `total` out")
    if total is not None and question.parts > 1:
        raise InputError("a public total needs a sum that is measured as one number: bounds that are not negative")
    share = Fraction(str(TOTALS if totals is None else totals))
    depth = len(question.by.axes)
    above = tuple(range(1 if total is not None else 0, depth))
    if not above:
        return GroupPlan(question, "adding-up", (measure(depth, Fraction(1)),), (depth,), total)
    upper = tuple(measure(d, share / len(above)) for d in above)
    return GroupPlan(question, "adding-up", (*upper, measure(depth, 1 - share)), (*above, depth), total)


MECHANISMS = (
    Mechanism(
        "shrunk",
        KINDS,
        shrunk,
        "noise on every group, then each figure drawn to those of the others as far as they agree",
        needs=("by",),
        paper="Kiefer & Wolfowitz 1956; Xie, Kou & Brown 2012",
    ),
    Mechanism(
        "separate",
        KINDS,
        separate,
        "noise on every group and nothing else",
        needs=("by",),
        paper="Dwork, McSherry, Nissim & Smith 2006",
    ),
    Mechanism(
        "adding-up",
        KINDS,
        adding_up,
        "totals are measured as well, and all figures add up to them",
        parameters=(
            Parameter("totals", "number", "share of the budget for all totals together", TOTALS, low=0.001, high=0.9),
            Parameter("total", "number", "a public total that the groups must add up to (count, sum)"),
        ),
        needs=("by",),
        paper="Hay, Rastogi, Miklau & Suciu 2010",
    ),
)
