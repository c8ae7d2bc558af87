"""Tables over people with budgets of their own: every measured margin takes the same part of everybody's budget.

`affine` measures each margin with everyone's own weight (see `people.histogram`), `adaptive` with a part that is right
for any data and a keen part beside it (see `people.mechanisms.adaptive_cells`), `minimum` with the part that is right for
any data alone, at the smallest budget. Then one table is fitted to the margins, as with one ε.

**Guarantee.** Person u loses at most ε_u. *Proof.* Of the weight w_u <= ε_u that a person may enter with, margin A gets
``floor(w_u s_A)``, with public shares s_A that add up to at most 1. A row moves one cell of every margin by its weight
there, against noise of scale one, so its person loses at most ``Σ_A floor(w_u s_A) <= w_u``, times the rows they own (and
twice against replacement), by which w_u was divided before. The rest works on released figures and the public roster.

Why the fit stays right. All margins of one kind weigh people alike, up to rounding to whole nano-ε, so they are margins
of *one* weighted table; least squares reproduces a consistent table exactly, and what is true of the weighted cells (for
any data that at most so many rows are missing, or right on average if budgets are independent of the values) is true of
every margin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import BudgetError, InputError
from sfumato.histograms.bins import Bins
from sfumato.offers import GAPS
from sfumato.people.histogram import PersonalHistogram, PersonalHistogramPlan, plan_histogram
from sfumato.people.mechanisms.adaptive_cells import AdaptiveHistogramPlan, plan_adaptive_histogram
from sfumato.privacy import Charge, Meter
from sfumato.privacy.budgets import part_of
from sfumato.privacy.terms import Terms
from sfumato.registry import Mechanism
from sfumato.statistics.crosstab import Read, largest, mean_error, named, shares_of
from sfumato.statistics.crosstab_result import CrossTable
from sfumato.statistics.margin_fit import effects, margin_of
from sfumato.statistics.margin_plan import PARTS, Columns, Precision

Ints = NDArray[np.int64]
Part = PersonalHistogramPlan | AdaptiveHistogramPlan


@dataclass(frozen=True, eq=False)
class PersonalTablePlan:
    """A histogram over people for every measured margin.

    Attributes
    ----------
    terms : Terms
    bins : Bins
    asked : tuple of columns
    parts : mapping of columns to plan
        How each measured margin is measured.
    mechanism : str
    """

    terms: Terms
    bins: Bins
    asked: tuple[Columns, ...]
    parts: Mapping[Columns, Part]
    mechanism: str

    @property
    def charge(self) -> Charge:
        """What each person group loses by all measured margins."""
        return Charge.of_people(np.sum([_people(part) for part in self.parts.values()], axis=0))

    @property
    def weightings(self) -> tuple[Ints, ...]:
        """The weights that `run` asks for."""
        return tuple(weights for part in self.parts.values() for weights in part.weightings)

    @cached_property
    def precision(self) -> Precision:
        """How the margins are combined: by their noise alone."""
        return self._where(lambda part: part.expected_rmse**2 if _adapts(part) else 2 * _scale(part) ** 2)

    def _where(self, variance: Callable[[Part], float]) -> Precision:
        return Precision(self.bins.shape, {a: variance(part) for a, part in self.parts.items()})

    @property
    def _any(self) -> Part:
        return next(iter(self.parts.values()))

    def _spread(self, margin: Columns) -> float:
        """Variance that unequal weights add to a cell of a margin, people being spread evenly; 0 where none is assumed."""
        part = self._any
        if _adapts(part):
            return 0.0
        share, n = 1 / max(1, int(np.prod([self.bins.shape[i] for i in margin]))), part.budgets.people
        return float(n**2 * share * (1 - share) * part.imbalance + 2 * share**2 * np.square(_heads(part)).sum())

    def errors(self) -> dict[Columns, float]:
        """Error of a cell of every margin asked, if budgets are independent of the values."""
        return {s: float(np.sqrt(self.precision.variance(s) + self._spread(s))) for s in self.asked}

    @property
    def expected_rmse(self) -> float:
        """Root of the mean over the margins asked of the squared error of a cell."""
        return mean_error(self.errors())

    def error_at(self, gap: float) -> float:
        """The same where the stricter people and the rest differ; see `people.gaps`."""
        part = self._any
        if isinstance(part, PersonalHistogramPlan):
            return float(np.hypot(self.expected_rmse, gap * part.bias_of_gap))
        return self._if({a: p.error_at(gap) for a, p in self.parts.items()})

    @property
    def worst_rmse(self) -> float:
        """Over all data."""
        part = self._any
        if isinstance(part, PersonalHistogramPlan):
            return float(np.hypot(self.expected_rmse, part.bias_bound))
        # Each is an estimate of its own: the worst pattern is at least as bad as any that was looked at.
        return max(self._if({a: p.worst_rmse for a, p in self.parts.items()}), *(self.error_at(gap) for gap in GAPS))

    def _if(self, errors: Mapping[Columns, float]) -> float:
        squares = {a: e**2 for a, e in errors.items()}
        return mean_error({s: float(np.sqrt(self.precision.variance_if(s, squares))) for s in self.asked})

    @property
    def bias_bound(self) -> float:
        """The most that a cell of any margin can be off on average."""
        return self._any.bias_bound

    @property
    def assumes_independence(self) -> bool:
        """Whether the figures rest on it."""
        return self._any.assumes_independence

    def run(self, read: Read, meter: Meter) -> CrossTable:
        """Measure every margin as its part says, fit one table to what came out."""
        made: dict[Columns, PersonalHistogram] = {}
        for margin, part in self.parts.items():
            made[margin] = part.run(lambda weights, margin=margin: read(weights, margin), meter)  # type: ignore[misc]
        shape, first = self.bins.shape, self._any
        tops = largest(self.asked)

        def fitted(
            values: Mapping[Columns, NDArray[np.float64]], precision: Precision
        ) -> dict[Columns, NDArray[np.float64]]:
            found = effects({a: v.reshape([shape[i] for i in a]) for a, v in values.items()}, precision)
            return {s: margin_of(found, shape, s) for s in tops}

        scales = {a: _scale(part) for a, part in self.parts.items()}
        centres = None
        if _adapts(first):
            safe = {a: h.any_data.values for a, h in made.items() if h.any_data is not None}
            centres = fitted(safe, self._where(lambda part: 2 * _scale(part) ** 2))
        said = dict.fromkeys(w for h in made.values() for w in h.warnings)
        return CrossTable(
            counts=fitted({a: h.flat for a, h in made.items()}, self.precision),
            bins=self.bins,
            asked=self.asked,
            guarantee=meter.guarantee(),
            mechanism=self.mechanism,
            scales=scales,
            parameters={"shares": self._shares(), **made[next(iter(made))].parameters},
            expected_rmse=self.expected_rmse,
            warnings=tuple(said),
            centres=centres,
            people=first.budgets.people,
            imbalance=0.0 if _adapts(first) else first.imbalance,
            missing=first.unseen if isinstance(first, AdaptiveHistogramPlan) else 0.0,
            heads=_heads(first),
        )

    def _shares(self) -> dict[str, float]:
        people = {a: _people(part) for a, part in self.parts.items()}
        top = float(np.max(np.sum(list(people.values()), axis=0)))
        return {named(self.bins, a): round(float(np.max(p)) / top, 4) for a, p in people.items()}


def _people(part: Part) -> Ints:
    found = part.charge.people
    assert found is not None
    return found


def _adapts(part: Part) -> bool:
    return isinstance(part, AdaptiveHistogramPlan)


def _scale(part: Part) -> float:
    """Of the noise that the interval rests on, in rows."""
    return part.safe_scale if isinstance(part, AdaptiveHistogramPlan) else part.noise_scale


def _heads(part: Part) -> tuple[float, ...]:
    if isinstance(part, AdaptiveHistogramPlan):
        return part._heads(part.safe / part.full)
    return part.head_scales


def plan_personal_table(terms: Terms, bins: Bins, asked: tuple[Columns, ...], *, mechanism: str) -> PersonalTablePlan:
    """The plan of `affine`, `adaptive` or `minimum`.

    Parameters
    ----------
    terms : Terms
        With everyone's budget.
    bins : Bins
        The columns with their cells.
    asked : tuple of columns
        The margins that matter, by position.
    mechanism : str

    Returns
    -------
    PersonalTablePlan
    """
    shares = shares_of("margins", bins, asked)
    whole: Part
    middle = bins if bins.size <= 10**6 else Bins((bins.axes[0],))  # what caps are planned for; any will do
    if mechanism == "affine":
        whole = plan_histogram(terms, middle)
    else:
        whole = plan_adaptive_histogram(terms, middle)
    budgets = whole.budgets

    def cut(weights: Ints, parts: int) -> Ints:
        found = part_of(weights, Fraction(parts, PARTS))
        if int(found.max()) < 1:
            raise BudgetError(
                f"no budget of this roster buys one row in {len(shares)} margins; raise the budgets or ask for fewer margins"
            )
        return found

    def part(margin: Columns, parts: int) -> Part:
        cells = Bins(tuple(bins.axes[i] for i in margin)) if margin else Bins.numbered(1)
        if isinstance(whole, PersonalHistogramPlan):
            return PersonalHistogramPlan(terms, cells, cut(whole.weights, parts))
        safe, keen, full = whole.safe, whole.keen, whole.full
        if mechanism == "minimum":
            full = int(budgets.levels[0]) // terms.factor
            safe, keen = np.minimum(budgets.levels // terms.factor, full), None
        held = max(1, full * parts // PARTS)
        kept = None if keen is None else cut(keen, parts)
        return AdaptiveHistogramPlan(terms, cells, np.minimum(cut(safe, parts), held), kept, held, mechanism)

    if mechanism not in ("affine", "adaptive", "minimum"):
        raise InputError(f"no mechanism {mechanism!r} for a table over people with budgets of their own")
    return PersonalTablePlan(terms, bins, asked, {a: part(a, parts) for a, parts in shares.items()}, mechanism)


def plan_affine(terms: Terms, bins: Bins, asked: Sequence[Columns]) -> PersonalTablePlan:
    """`affine`."""
    return plan_personal_table(terms, bins, tuple(asked), mechanism="affine")


def plan_adaptive(terms: Terms, bins: Bins, asked: Sequence[Columns]) -> PersonalTablePlan:
    """`adaptive`."""
    return plan_personal_table(terms, bins, tuple(asked), mechanism="adaptive")


def plan_minimum(terms: Terms, bins: Bins, asked: Sequence[Columns]) -> PersonalTablePlan:
    """`minimum`."""
    return plan_personal_table(terms, bins, tuple(asked), mechanism="minimum")


MECHANISMS = tuple(
    Mechanism(name, ("table",), make, summary, needs=("personal budgets",))
    for name, make, summary in (
        ("adaptive", plan_adaptive, "margins that are right for any data, drawn to keen ones as far as both agree"),
        ("affine", plan_affine, "everybody at their own budget up to a cap in every measured margin, and one fitted table"),
        ("minimum", plan_minimum, "everybody at the smallest budget in every measured margin; right for any data"),
    )
)
