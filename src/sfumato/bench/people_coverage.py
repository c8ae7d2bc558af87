"""How often the intervals of counts, sums, means and histograms hold the truth: ε from .01 to 100, 10 to 10 million people.

The people are simulated as a table of few distinct values and how many have each, so that ten million cost nothing. Incomes
are skewed and heaped: most are a round pay and the same allowance, so that a coarse lattice rounds them all the same way.
With one ε for all the interval must hold for any data. With tiers it must hold where budgets are independent of the values:
each run deals the values to the tiers anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.histograms import Bins, release_histogram
from sfumato.offers import AUTO, Facts, Offer, Request
from sfumato.people import Estimate, PairReader, SumReader, offers
from sfumato.people.histogram import plan_histogram
from sfumato.privacy import Exact, Meter, PersonBudgets, Seeded
from sfumato.tables import Categorical, Numeric, Schema

Integers = NDArray[np.int64]
KINDS = ("count", "sum", "shifted sum", "mean", "histogram")
EPSILONS = (0.01, 0.1, 1.0, 10.0, 100.0)
SIZES = (10, 1_000, 100_000, 10_000_000)
BUDGETS = ("one ε", "three tiers")
SCHEMA = Schema(
    {
        "income": Numeric(0, 500_000, bins=20),
        "balance": Numeric(-20_000.5, 180_000, bins=20),
        "member": Categorical(["no", "yes"]),
    }
)
_TIERS = ((0.1, 0.54), (0.5, 0.37), (1.0, 0.09))  # part of ε, share of the people
_MEMBERS = 0.3  # of all


@dataclass(frozen=True, eq=False)
class People:
    """Few distinct values, how many people have each, and how many of these are members."""

    values: NDArray[np.float64]
    heads: Integers
    members: Integers

    def dealt(self, budgets: PersonBudgets, rng: np.random.Generator) -> tuple[Integers, Integers]:
        """Everybody dealt to the person groups at random: people and members, per group and value."""
        if budgets.groups == 1:
            return self.heads[None, :], self.members[None, :]
        cells = np.concatenate([self.members, self.heads - self.members])
        left, rows = cells.copy(), []
        for size in budgets.counts.tolist()[:-1]:
            rows.append(rng.multivariate_hypergeometric(left, size, method="marginals"))
            left -= rows[-1]
        table = np.array([*rows, left])
        half = self.values.size
        return table[:, :half] + table[:, half:], table[:, :half]


def population(n: int, column: str, rng: np.random.Generator) -> People:
    """Skewed and heaped: two in three are thousands and 124.99."""
    domain: Any = SCHEMA[column]
    values = np.exp(rng.normal(np.log(28_000), 0.9, 60)) + min(0.0, domain.low)
    heaped = rng.random(values.size) < 2 / 3
    values = np.where(heaped, np.round(values, -3) + 124.99, np.round(values, 2))
    values = np.clip(values, domain.low, domain.high)
    heads = rng.multinomial(n, rng.dirichlet(np.full(values.size, 0.5)))
    return People(values, heads, rng.binomial(heads, _MEMBERS))


def roster(epsilon: float, n: int, kind: str) -> PersonBudgets | None:
    """The tiers of n people, the most generous at ε; None where one ε holds for all."""
    if kind == "one ε":
        return None
    heads = [max(1, round(share * n)) for _, share in _TIERS]
    heads[0] += n - sum(heads)
    return PersonBudgets.from_tiers({str(i): (part * epsilon, heads[i]) for i, (part, _) in enumerate(_TIERS)})


def offer_for(
    kind: str, epsilon: float, n: int, budgets: PersonBudgets | None, mechanism: str = AUTO, **parameters: Any
) -> Offer:
    """The offer for the question, as a release over a table would take it."""
    column = {"sum": "income", "shifted sum": "balance", "mean": "income"}.get(kind)
    asked = {**parameters, **({} if column is None else {"column": column})}
    where = "member = 'yes'" if kind in ("count", "mean") else None
    # People are dealt to the tiers at random: the interval to try is the one that rests on that.
    about: dict[str, Any] = {"epsilon": epsilon, "where": where, "parameters": asked, "independent": True}
    request = Request("coverage", kind.split()[-1], mechanism, **about)
    return offers(request, Facts(SCHEMA, budgets=budgets, rows=n))[0]


def on_lattice(values: NDArray[np.float64], low: float, high: float, steps: int) -> Integers:
    """The nearest points, as an engine finds them."""
    return np.minimum(np.floor((values - low) * (steps / (high - low)) + 0.5), steps).astype(np.int64)


def _asked(kind: str, people: People, offer: Offer, budgets: PersonBudgets, rng: np.random.Generator) -> tuple[Any, float]:
    """What the offer's plan reads, and the truth."""
    everybody, members = people.dealt(budgets, rng)
    plan, values = offer.plan, people.values
    if kind == "count":
        return _known(members.sum(axis=1)), float(people.members.sum())
    if kind == "sum":
        points = on_lattice(values, 0.0, plan.question.high * plan.question.unit, plan.question.high)
        return _known(_sums(everybody, points)), math.fsum(people.heads * values)
    chosen, heads = (members, people.members) if kind == "mean" else (everybody, people.heads)
    steps = plan.question.high
    points = on_lattice(values, plan.low, plan.high, 2 * steps) - steps
    truth = math.fsum(heads * values)
    reader = PairReader(_known(_sums(chosen, points)), _known(chosen.sum(axis=1)))
    return reader, truth / max(1, int(heads.sum())) if kind == "mean" else truth


def _known(sums: Iterable[int]) -> SumReader:
    return SumReader(Exact(tuple(int(total) for total in sums)))


def _sums(heads: Integers, points: Integers) -> tuple[int, ...]:
    each: list[int] = points.tolist()
    return tuple(sum(h * p for h, p in zip(row, each, strict=True)) for row in heads.tolist())


def estimates(
    kind: str, budgets: str, epsilon: float, n: int, *, runs: int, seed: int = 0, **parameters: Any
) -> Iterator[tuple[Estimate, float]]:
    """Releases of one number, each with the truth; `parameters` are those of the release (steps, mechanism)."""
    rng = np.random.default_rng([seed, KINDS.index(kind), n, int(1000 * epsilon)])
    granted = roster(epsilon, n, budgets)
    offer = offer_for(kind, epsilon, n, granted, **parameters)
    people = population(n, "balance" if kind == "shifted sum" else "income", rng)
    if kind == "mean" and not people.members.sum():
        people.members[np.argmax(people.heads)] = 1  # the mean of nobody has no truth
    for _ in range(runs):
        reader, truth = _asked(kind, people, offer, granted or PersonBudgets.from_tiers({"all": (epsilon, n)}), rng)
        meter = Meter(budgets=granted, source=Seeded(int(rng.integers(2**62))))
        yield offer.plan.run(reader, meter), truth


def covered(
    kind: str, budgets: str, epsilon: float, n: int, *, runs: int, confidence: float = 0.95, **more: Any
) -> list[bool]:
    """For every release whether its interval holds the truth; for histograms, for every bin."""
    if kind == "histogram":
        return _covered_bins(budgets, epsilon, n, runs, confidence, **more)
    found = []
    for estimate, truth in estimates(kind, budgets, epsilon, n, runs=runs, **more):
        low, high = estimate.interval(confidence)
        slack = 1e-12 * abs(truth)  # the truth is a float, too
        found.append(bool(low - slack <= truth <= high + slack))
    return found


def _covered_bins(budgets: str, epsilon: float, n: int, runs: int, confidence: float, seed: int = 0) -> list[bool]:
    rng = np.random.default_rng([seed, KINDS.index("histogram"), n, int(1000 * epsilon)])
    granted, people = roster(epsilon, n, budgets), population(n, "income", rng)
    bins = Bins.of_schema(SCHEMA, ["income"])
    place = np.searchsorted(bins.axes[0].edges[1:-1], people.values, side="right")  # type: ignore[index]
    truth = np.bincount(place, weights=people.heads, minlength=bins.size)
    inside: list[bool] = []
    for _ in range(runs):
        meter = Meter(budgets=granted, source=Seeded(int(rng.integers(2**62))))
        made: Any
        if granted is None:
            made = release_histogram(truth.astype(np.int64), epsilon=epsilon, bins=bins, meter=meter)
        else:
            table, _ = people.dealt(granted, rng)
            cells = np.array([np.bincount(place, weights=row, minlength=bins.size) for row in table]).astype(np.int64)
            made = plan_histogram(granted, bins).run(lambda weights, cells=cells: Exact(weights @ cells), meter)  # type: ignore[misc]
        low, high = made.interval(confidence)
        inside += ((low <= truth) & (truth <= high)).tolist()
    return inside


def coverage(runs: int, sizes: tuple[int, ...], progress: Callable[[str], None]) -> dict[str, Any]:
    """The share of 95% intervals that hold the truth, for every question, way to grant, ε and number of people."""
    table: dict[str, Any] = {}
    for kind in KINDS:
        for budgets in BUDGETS:
            progress(f"coverage: {kind}, {budgets}")
            rows = table[f"{kind}, {budgets}"] = {}
            for epsilon in EPSILONS:
                # A histogram has twenty intervals a run.
                times = max(1, runs // 10) if kind == "histogram" else runs
                rows[str(epsilon)] = {str(n): _share(covered(kind, budgets, epsilon, n, runs=times)) for n in sizes}
    return table


def _share(inside: list[bool]) -> float:
    return round(float(np.mean(inside)), 4)


def coverage_claims(table: dict[str, Any], runs: int) -> list[dict[str, Any]]:
    """No cell below what chance explains, and none on average."""
    shares = {budgets: [] for budgets in BUDGETS}  # type: dict[str, list[float]]
    for name, rows in table.items():
        shares[name.split(", ")[1]] += [share for row in rows.values() for share in row.values()]
    # The smallest of a hundred cells lies 2.5 standard errors below the nominal share half of the time; 4.5 once in 3,000.
    error = float(np.sqrt(0.95 * 0.05 / runs))
    lowest = {
        f"95% intervals, {budgets}: share that holds the truth, smallest of {len(found)} cells": (min(found), 4.5 * error)
        for budgets, found in shares.items()
    }
    average = {
        f"95% intervals, {budgets}: share that holds the truth, all cells": (
            float(np.mean(found)),
            4.5 * error / np.sqrt(len(found)),
        )
        for budgets, found in shares.items()
    }
    return [
        {"name": name, "figure": round(found, 4), "limit": round(0.95 - slack, 4), "holds": found >= 0.95 - slack}
        for name, (found, slack) in (lowest | average).items()
    ]
