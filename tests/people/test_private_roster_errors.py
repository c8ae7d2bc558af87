"""With noisy head counts, intervals hold as often as they say and errors are as large as promised."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sfumato.histograms.bins import Bins
from sfumato.people import PairReader, Question, SumReader, plan_offer
from sfumato.people.cells import CellBracket
from sfumato.people.error_law import LaplacePlusNormal, law_from_dict
from sfumato.people.head_counts import plan_head_counts
from sfumato.people.histogram import plan_histogram
from sfumato.people.pairs import Pair
from sfumato.privacy import Exact, Meter, PersonBudgets, Seeded
from sfumato.privacy.terms import Terms

PEOPLE = PersonBudgets.from_tiers({"strict": (0.1, 5400), "standard": (0.3, 3700), "open": (1.0, 900)})
RHO = Fraction(1, 20)
RUNS = 80
LEAST = 0.95 - 4 * np.sqrt(0.95 * 0.05 / RUNS)


def counted(rng):
    offer = plan_head_counts(PEOPLE, RHO, Terms())
    made = offer.run(Exact(np.array(PEOPLE.counts)), Meter.under(offer.terms, source=Seeded(int(rng.integers(2**60)))))
    return Terms(budgets=made.budgets.share(1 - RHO), granted=PEOPLE.levels, roster="private")


def answers(kind, mechanism, gap):
    """Errors, expected errors, and how often both intervals hold, over tables whose strictest tier differs by `gap`."""
    rng = np.random.default_rng(5)
    errors, expected, held = [], [], {False: 0, True: 0}
    for _ in range(RUNS):
        terms = counted(rng)
        ones = rng.binomial(PEOPLE.counts, np.array([0.5 + gap, 0.5, 0.5]))
        reader, truth = SumReader(Exact(tuple(ones.tolist()))), float(ones.sum())
        offer = plan_offer(Question(terms), mechanism) if kind == "count" else Pair(terms, 0.0, 1.0, 1).offer(mechanism)
        if kind == "mean":
            centred = SumReader(Exact(tuple((2 * ones - PEOPLE.counts).tolist())))
            reader = PairReader(centred=centred, ones=SumReader(Exact(tuple(PEOPLE.counts.tolist()))))
            truth /= PEOPLE.people
        made = offer.run(reader, Meter.under(offer.terms, source=Seeded(int(rng.integers(2**60)))))
        errors.append(made.value - truth)
        expected.append(made.expected_rmse)
        for independent in held:
            low, high = made.interval(0.95, independent=independent, worst_case=not independent)
            held[independent] += low <= truth <= high
    return np.sqrt(np.mean(np.square(errors))), np.mean(expected), {k: n / RUNS for k, n in held.items()}


@pytest.mark.parametrize("mechanism", ["stretching", "minimum"])
def test_counts_are_as_wrong_as_they_say(mechanism):
    error, expected, held = answers("count", mechanism, 0.0)
    assert 0.6 * expected < error < 1.5 * expected
    assert min(held.values()) >= LEAST
    assert answers("count", mechanism, 0.3)[2][False] >= LEAST  # for any data


@pytest.mark.parametrize("mechanism", ["stretching"])
def test_the_noise_of_head_counts_cancels_in_a_mean(mechanism):
    error, expected, held = answers("mean", mechanism, 0.0)
    assert error < 1.5 * expected
    assert min(held.values()) >= LEAST
    assert answers("mean", mechanism, 0.3)[2][False] >= LEAST
    assert expected < 0.02  # of the range: the noise of the strict tier's count alone would be .04


def test_histograms_hold_as_often_as_they_say():
    rng, held = np.random.default_rng(7), []
    for _ in range(RUNS // 2):
        plan = plan_histogram(counted(rng), Bins.numbered(4))
        cells = rng.multinomial(PEOPLE.counts, [0.7, 0.1, 0.1, 0.1])
        meter = Meter.under(plan.terms.up_to(plan.charge), source=Seeded(int(rng.integers(2**60))))
        made = plan.run(lambda weights, cells=cells: Exact(cells).map(lambda found: weights @ found), meter)
        low, high = made.interval(0.95)
        truth = cells.sum(axis=0)
        held.append((low <= truth) & (truth <= high))
    assert np.mean(held, axis=0).min() >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / len(held))


def test_laws_with_head_counts_come_back_as_they_were():
    law = LaplacePlusNormal((2.0,), 1.0, (3.0, 0.5))
    assert law_from_dict(law.to_dict()) == law
    assert law.rmse == pytest.approx(np.sqrt(1 + 2 * (4 + 9 + 0.25)))
    assert "head_scales" not in LaplacePlusNormal((2.0,)).to_dict()
    cells = CellBracket(np.array([5.0, 9.0]), 20, 1.0, heads=(2.0,))
    assert CellBracket.from_dict(cells.to_dict()).interval(0.9)[1].tolist() == cells.interval(0.9)[1].tolist()
    assert cells.halfwidths(0.95)[0] > CellBracket(np.array([5.0, 9.0]), 20, 1.0).halfwidths(0.95)[0]
