"""The offers for quantiles, medians, minima and maxima over a table, from public facts alone. Nothing is read or spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.histograms.bins import Bins
from sfumato.offers import Facts, Offer, Request
from sfumato.people.gaps import errors_of
from sfumato.privacy import Meter, positive_nano
from sfumato.registry import Mechanism, Parameter
from sfumato.statistics.quantile_plan import FULL, Found, QuantilePlan, plan_choice, plan_weighted
from sfumato.statistics.quantiles import Quantiles
from sfumato.statistics.ranks import Integers, as_share, rank_bound, rank_rate
from sfumato.tables.dataset import Dataset
from sfumato.tables.lattice import Lattice
from sfumato.tables.points import PointCounts

MOST_POINTS = 1 << 20  # of a lattice
MOST_CELLS = 1 << 24  # points in all groups together
MOST_GROUPS = 5_000
MOST_QUANTILES = 1_000
_REAL_STEPS = 1 << 16  # of a column that is not whole numbers
_FEW, _INTERVAL_OF_FEW, _INTERVAL = 2, 0.05, 0.2
_INTERVAL_OF_ENDS = 0.3  # what is known of the records beyond a minimum matters as much as where it is
_MOST_RISK, _RISK_UNKNOWN = 0.25, 0.01

_COLUMN = Parameter("column", "text", "the numeric column", required=True)
_BY = Parameter("by", "texts", "columns of the schema: one answer for each of their cells")
_STEPS = Parameter(
    "steps",
    "whole",
    "steps of the lattice between the column's bounds; every whole number if left out",
    low=1,
    high=MOST_POINTS - 1,
)
_SHARE = Parameter(
    "interval",
    "number",
    "the share of the price that intervals get; if left out 0.05 for one or two values, 0.3 for min and max, else 0.2",
    low=0,
    high=0.9,
)
QUANTILE_PARAMETERS = (
    _COLUMN,
    Parameter("quantiles", "numbers", "the shares of the records below, each between 0 and 1", required=True, low=0, high=1),
    _BY,
    _STEPS,
    _SHARE,
)
MEDIAN_PARAMETERS = (_COLUMN, _BY, _STEPS, _SHARE)
END_PARAMETERS = (
    _COLUMN,
    Parameter(
        "risk", "number", "the share of the records that may lie beyond; by rows and ε if left out", low=0, high=_MOST_RISK
    ),
    _STEPS,
    _SHARE,
)
_PARAMETERS = {"quantile": QUANTILE_PARAMETERS, "median": MEDIAN_PARAMETERS, "min": END_PARAMETERS, "max": END_PARAMETERS}
_KINDS = tuple(_PARAMETERS)

CHOICE = Mechanism(
    "choice",
    _KINDS,
    plan_choice,
    "points of the lattice chosen by rank, several by halving; right for any data",
    paper="Smith 2011; Kaplan, Schnapp & Stemmer 2022; McKenna & Sheldon 2020",
)
WEIGHTED = Mechanism(
    "weighted",
    _KINDS,
    plan_weighted,
    "the same with everybody at their own budget up to a cap; assumes that budgets and values are independent",
    needs=("personal budgets",),
)


@dataclass(frozen=True)
class Asked:
    """A request, checked against public facts."""

    kind: str
    column: str
    shares: tuple[float, ...]
    lattice: Lattice
    by: tuple[str, ...]
    interval: float

    @property
    def targets(self) -> tuple[Fraction, ...]:
        return tuple(as_share(q) for q in self.shares)

    @property
    def size(self) -> int:
        return self.lattice.steps + 1


def offers(request: Request, facts: Facts) -> list[Offer]:
    """The ways to answer a quantile, median, min or max, best first.

    Parameters
    ----------
    request : Request
    facts : Facts

    Returns
    -------
    list of Offer
        Each runs on a `Dataset`. The expected error is in records of rank.
    """
    asked = _asked(request, facts)
    if facts.budgets is None:
        nano = positive_nano(request.need_epsilon())
        plans = [plan_choice(facts.terms, asked.targets, asked.size, nano=nano, interval=asked.interval)]
        return [_offer(CHOICE, plan, asked, request, facts) for plan in plans]
    plan = plan_choice(facts.terms, asked.targets, asked.size, nano=None, interval=asked.interval)
    free = plan_weighted(facts.terms, asked.targets, asked.size, interval=asked.interval)
    found = [_offer(CHOICE, plan, asked, request, facts), _offer(WEIGHTED, free, asked, request, facts)]
    return found[::-1] if request.independent else found


# --- what is asked ---------------------------------------------------------------------------------------------------


def _asked(request: Request, facts: Facts) -> Asked:
    place = f"release {request.name!r}"
    given = {p.name: p.check(request.parameters.get(p.name), place) for p in _PARAMETERS[request.kind]}
    facts.check_where(request.where)
    column, by = given["column"], tuple(given.get("by") or ())
    facts.schema.lattice(column, 1)  # refuses what is not numeric
    groups = _groups(facts, by, column, place)
    lattice = _lattice(facts, column, given["steps"], groups, place)
    single = request.kind != "quantile"
    shares = _shares(given["quantiles"], place) if not single else (0.5,)
    interval = given["interval"]
    if interval is None:
        few = _INTERVAL_OF_ENDS if request.kind in ("min", "max") else _INTERVAL_OF_FEW
        interval = few if len(shares) <= _FEW else _INTERVAL
    if request.kind in ("min", "max"):
        risk = given["risk"] if given["risk"] is not None else _risk(request, facts, lattice, interval)
        if risk <= 0:
            raise InputError(f"`risk` of {place} is the share of the records that may lie beyond, above 0; got {risk!r}")
        shares = (risk if request.kind == "min" else 1 - risk,)
    return Asked(request.kind, column, shares, lattice, by, float(interval))


def _shares(given: Sequence[float], place: str) -> tuple[float, ...]:
    if not 1 <= len(given) <= MOST_QUANTILES:
        raise InputError(f"`quantiles` of {place} are between 1 and {MOST_QUANTILES:,} numbers; got {len(given):,}")
    for q in given:
        if not 0 < q < 1:
            raise InputError(
                f"`quantiles` of {place} lie strictly between 0 and 1, got {q!r}; for the ends ask for kind 'min' or 'max'"
            )
    if len({as_share(q) for q in given}) < len(given):
        raise InputError(f"`quantiles` of {place} names a share twice; name each once (to a millionth)")
    return tuple(sorted(map(float, given)))


def _groups(facts: Facts, by: tuple[str, ...], column: str, place: str) -> int:
    if not by:
        return 1
    if len(set(by)) < len(by) or column in by:
        raise InputError(f"`by` of {place} names a column twice, or {column!r} itself; name others, each once")
    groups = facts.schema.check_cells(by)
    if groups > MOST_GROUPS:
        raise InputError(f"{groups:,} groups by {', '.join(by)}; at most {MOST_GROUPS:,}: use fewer columns or coarser bins")
    return groups


def _lattice(facts: Facts, column: str, steps: int | None, groups: int, place: str) -> Lattice:
    """Every whole number where that is not too many; else as fine as is useful."""
    most = min(MOST_POINTS, MOST_CELLS // groups) - 1
    if steps is None:
        whole = facts.schema[column].whole_steps
        steps = min(_REAL_STEPS, most) if whole is None else max(1, whole // -(-max(whole, 1) // most))
    elif steps > most:
        raise InputError(f"`steps` of {place} is at most {most:,} for {groups:,} groups; got {steps:,}")
    return facts.schema.lattice(column, int(steps))


def _risk(request: Request, facts: Facts, lattice: Lattice, interval: float) -> float:
    """So many records that a choice does not miss them all, as a share of the public number of rows."""
    people = facts.rows if facts.budgets is None else facts.budgets.people * facts.schema.unit.rows_per_person
    if not people:
        return _RISK_UNKNOWN
    about = {"nano": positive_nano(request.need_epsilon())} if facts.budgets is None else {"nano": None}
    plan = plan_choice(facts.terms, (as_share(_RISK_UNKNOWN),), lattice.steps + 1, interval=interval, **about)
    if facts.budgets is not None and request.independent:
        plan = plan_weighted(facts.terms, plan.targets, plan.size, interval=interval)
    missed = rank_bound(plan.size, rank_rate(1.0, plan.steps.choice), 0.05) * plan.records
    return float(np.clip(missed / people, 1e-6, _MOST_RISK))


# --- one offer -------------------------------------------------------------------------------------------------------


def _offer(entry: Mechanism, plan: QuantilePlan, asked: Asked, request: Request, facts: Facts) -> Offer:
    note = f"{entry.summary}; the error is in records of rank, where values are spread out"
    rows = facts.rows if plan.budgets is None else plan.budgets.people
    if rows and not asked.by:
        note += f": {100 * plan.expected_rmse / rows:.2g}% of them"
    if plan.budgets is not None and plan.mechanism == "choice" and plan.bias_bound:
        note += f"; people below the cap count in part, which may add {plan.bias_bound:,.0f}"
    if request.kind in ("min", "max"):
        side = "below the minimum" if request.kind == "min" else "above the maximum"
        risk = asked.shares[0] if request.kind == "min" else 1 - asked.shares[0]
        note += f"; aims at {100 * risk:.2g}% of the records {side}"
    by = Bins.of_schema(facts.schema, asked.by) if asked.by else None

    def run(dataset: Dataset, meter: Meter) -> Quantiles:
        counts = dataset.points(
            asked.column,
            steps=asked.lattice.steps,
            by=asked.by,
            budgets=plan.budgets,
            weights=plan.weights,
            where=request.where,
        ).map(partial(_weighed, shape=() if by is None else by.shape))
        if by is None:
            found = [plan.run(counts.map(partial(_dense, size=asked.size)), meter)]
        else:
            found = []
            with meter.parallel(f"each row is in one group by {', '.join(asked.by)}") as branch:
                for group in range(by.size):
                    with branch():
                        one = counts.map(partial(_dense, size=asked.size, group=group))
                        found.append(plan.run(one, meter, whole=False))
        return _result(plan, asked, by, found, meter, facts)

    errors = None if plan.budgets is None else errors_of(plan)
    about: dict[str, Any] = {"plan": plan, "bias_bound": plan.bias_bound, "errors": errors}
    return Offer(plan.mechanism, facts.terms.up_to(plan.charge), plan.expected_rmse, note, run, **about)


def _weighed(found: PointCounts, shape: tuple[int, ...]) -> tuple[Integers, Integers, Integers]:
    """Groups in order, and with each entry its point and its weight."""
    groups = np.ravel_multi_index(tuple(found.cells.T), shape) if shape else np.zeros(found.points.size, dtype=np.int64)
    order = np.argsort(groups, kind="stable")
    return np.asarray(groups)[order], found.points[order], found.counts[order]


def _dense(entries: tuple[Integers, Integers, Integers], size: int, group: int = 0) -> Integers:
    """The weight on every point, of one group."""
    groups, points, weight = entries
    mine = slice(*np.searchsorted(groups, [group, group + 1]))
    found = np.zeros(size, dtype=np.int64)
    np.add.at(found, points[mine], weight[mine])
    return found


def _result(plan: QuantilePlan, asked: Asked, by: Bins | None, found: list[Found], meter: Meter, facts: Facts) -> Quantiles:
    cut = asked.lattice
    whole = facts.schema[asked.column].whole_steps is not None and not cut.unit.is_integer()
    rounding = cut.rounding + 0.5 * whole

    def value(points: Any) -> Any:
        exact = cut.low + np.asarray(points, dtype=np.float64) * cut.unit
        return np.round(exact) if whole else exact

    values = value([f.points for f in found])
    low, high = np.full(values.shape, cut.low), np.full(values.shape, cut.high)
    for i, one in enumerate(found):
        if one.ends is not None:
            low[i] = np.maximum(value(one.ends[:, 0]) - rounding, cut.low)
            high[i] = np.minimum(value(one.ends[:, 1]) + rounding, cut.high)
    parameters: dict[str, Any] = {"points": asked.size, "interval_share": asked.interval}
    if not cut.exact:
        parameters["rounded_to"] = cut.unit
    if plan.weights is not None:
        parameters["weights"] = {plan.terms.budgets.name(g): w / FULL for g, w in enumerate(plan.weights[:20].tolist())}  # type: ignore[union-attr]
    outside = None
    if asked.kind in ("min", "max"):
        parameters["risk"] = asked.shares[0] if asked.kind == "min" else 1 - asked.shares[0]
        around = found[0].around
        if around is not None:
            missed = 1 - 0.95
            outside = around.share_below(0, missed) if asked.kind == "min" else around.share_above(0, missed)
    return Quantiles(
        asked.kind,
        asked.column,
        asked.shares,
        values,
        low,
        high,
        meter.guarantee(),
        plan.mechanism,
        (cut.low, cut.high),
        by=by,
        expected_rmse=plan.expected_rmse,
        outside=outside,
        parameters=parameters,
        warnings=_warnings(plan, found),
        wording=facts.schema.wording(asked.column),
        heading=facts.schema.heading(asked.column),
    )


def _warnings(plan: QuantilePlan, found: list[Found]) -> tuple[str, ...]:
    told = []
    if any(one.ends is None for one in found):
        told.append("No share of the price was left for intervals: they are the public bounds of the column.")
    if plan.assumes_independence:
        told.append("Intervals hold if what people granted has nothing to do with their values.")
    elif plan.bias_bound > 0.1 * plan.expected_rmse:
        told.append(
            f"People with small budgets count in part: a rank may be off by {plan.bias_bound:,.0f}; intervals include it."
        )
    return tuple(told)
