"""What a private roster costs: the same questions with public head counts, and with noisy ones paid from the same budgets.

Errors are those of the answer that `auto` takes, root mean square over simulated tables in which budgets are independent of
the values. A private roster spends ρ of every budget on its head counts first and the rest on the question. Every private
run counts heads anew, so what the noise in them does to plan and answer is in the figures.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.histograms.bins import Bins
from sfumato.offers import Offer
from sfumato.people import PairReader, Question, SumReader, plan_offer
from sfumato.people.head_counts import plan_head_counts
from sfumato.people.mechanisms.adaptive_cells import plan_adaptive_histogram
from sfumato.people.pairs import Pair
from sfumato.privacy import Exact, Meter, PersonBudgets, Seeded, Source
from sfumato.privacy.terms import Terms

RHO = Fraction(1, 20)
TIERS = {
    "50,000 people": {"strict": (0.005, 26_913), "standard": (0.1, 18_554), "open": (0.5, 4_533)},
    "1,000 people": {"strict": (0.05, 538), "standard": (0.3, 371), "open": (1.0, 91)},
}
KINDS = ("count", "sum", "mean", "histogram")
_SHARE = 0.3  # of the people who satisfy the condition, or have the value 1 rather than 0
_BINS = 21
_MOST = 100  # the largest value of a measure that is added up


def roster_cost(draws: int, runs: int, progress: Callable[[str], None]) -> dict[str, dict[str, dict[str, float]]]:
    """Error with a public and with a private roster, and how often the first interval of the private one holds.

    Heads are counted `draws` times, and after each counting the question is answered `runs` times.
    """
    found: dict[str, dict[str, dict[str, float]]] = {}
    for size, tiers in TIERS.items():
        people = PersonBudgets.from_tiers(tiers)
        found[size] = {}
        for kind in KINDS:
            progress(f"a private roster of {size}: {kind}")
            rng = np.random.default_rng(11)
            public = _answers(kind, people, Terms(budgets=people), rng, draws * runs)
            private = [r for _ in range(draws) for r in _answers(kind, people, _counted(people, rng), rng, runs)]
            open_error, closed_error = (float(np.sqrt(np.mean([r[0] for r in rows]))) for rows in (public, private))
            found[size][kind] = {
                "public": open_error,
                "private": closed_error,
                "times": closed_error / open_error,
                "covered": float(np.mean([r[1] for r in private])),
            }
    return found


def roster_claims(found: dict[str, Any], answers: int) -> list[dict[str, Any]]:
    """The interval that a private roster prints first holds as often as it says, within what so few runs can tell."""
    least = 0.95 - 4 * float(np.sqrt(0.95 * 0.05 / answers))
    return [
        {
            "name": f"private roster, {size}, {kind}: 95% interval holds",
            "figure": round(row["covered"], 4),
            "limit": round(least, 4),
            "holds": row["covered"] >= least,
        }
        for size, rows in found.items()
        for kind, row in rows.items()
    ]


def _source(rng: np.random.Generator) -> Source:
    return Seeded(int(rng.integers(2**60)))


def _counted(people: PersonBudgets, rng: np.random.Generator) -> Terms:
    """Terms after the heads of a private roster were counted."""
    offer = plan_head_counts(people, RHO, Terms())
    made = offer.run(Exact(np.array(people.counts)), Meter.under(offer.terms, source=_source(rng)))
    return Terms(budgets=made.budgets.share(1 - RHO), granted=people.levels, roster="private")


def _answers(
    kind: str, people: PersonBudgets, terms: Terms, rng: np.random.Generator, runs: int
) -> list[tuple[float, float]]:
    """Square errors of answers to one plan, and whether the first interval holds the truth (of a histogram: per bin)."""
    if kind == "histogram":
        plan = plan_adaptive_histogram(terms, Bins.numbered(_BINS))
        return [_histogram(people, plan, rng) for _ in range(runs)]
    if kind == "mean":
        offer = Pair(terms, 0.0, 1.0, 1).offer("adaptive")
    else:
        high = 1 if kind == "count" else _MOST
        offer = plan_offer(Question(terms, high=high, kind="count" if kind == "count" else "sum"), "adaptive")
    return [_answer(kind, people, offer, rng) for _ in range(runs)]


def _answer(kind: str, people: PersonBudgets, offer: Offer, rng: np.random.Generator) -> tuple[float, float]:
    found = rng.binomial(people.counts * (_MOST if kind == "sum" else 1), _SHARE)
    truth = float(found.sum())
    reader: Any = SumReader(Exact(tuple(found.tolist())))
    if kind == "mean":
        centred = tuple((2 * found - people.counts).tolist())
        reader = PairReader(centred=SumReader(Exact(centred)), ones=SumReader(Exact(tuple(people.counts.tolist()))))
        truth /= people.people
    made = offer.run(reader, Meter.under(offer.terms, source=_source(rng)))
    low, high = made.interval(0.95)
    return (made.value - truth) ** 2, float(low <= truth <= high)


def _histogram(people: PersonBudgets, plan: Any, rng: np.random.Generator) -> tuple[float, float]:
    cells: NDArray[np.int64] = rng.multinomial(people.counts, np.full(_BINS, 1 / _BINS))
    meter = Meter.under(plan.terms.up_to(plan.charge), source=_source(rng))
    made = plan.run(lambda weights: Exact(cells).map(lambda found: weights @ found), meter)
    truth = cells.sum(axis=0)
    low, high = made.interval(0.95)
    return float(np.square(made.counts - truth).mean()), float(((low <= truth) & (truth <= high)).mean())
