"""The Meter's price against brute force: exact output laws on every pair of neighbouring tiny tables.

The log-ratio of two discrete Laplace laws at an output is an integer of nano-ε, ``Σ_j r_j (|x_j - c'_j| - |x_j - c_j|)``
(the normalisers cancel), so the largest one is found exactly and must *equal* the price: neither more nor less.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.privacy import NANO, Meter, PersonBudgets, Seeded
from sfumato.privacy.losses import amplified

ABSENT = None


def worst(tables, neighbours_of, answer, rates) -> int:
    """Largest log-ratio in nano-ε over all tables, their neighbours and outputs (outside the range of c it is constant)."""
    top = 0
    for table in tables:
        c = answer(table)
        for other in neighbours_of(table):
            d = answer(other)
            # Each coordinate is extreme at one end: checking both ends of every coordinate covers all outputs.
            top = max(
                top,
                sum(r * max(abs(x - b) - abs(x - a) for x in (-50, 50, a, b)) for r, a, b in zip(rates, c, d, strict=True)),
            )
    return top


def tables_of(people: int, values) -> list[tuple]:
    return list(itertools.product([*values, ABSENT], repeat=people))


def absences(table, rows=1):
    """One person absent (or, read backwards, present): a person owns `rows` consecutive entries."""
    for start in range(0, len(table), rows):
        yield (*table[:start], *(ABSENT,) * rows, *table[start + rows :])


def replacements(values, rows=1):
    def of(table):
        for start in range(0, len(table), rows):
            for new in itertools.product([*values, ABSENT], repeat=rows):
                yield (*table[:start], *new, *table[start + rows :])

    return of


def histogram(table, bins=3, weights=None):
    counts = [0] * bins
    for person, value in enumerate(table):
        if value is not ABSENT:
            counts[value] += 1 if weights is None else weights[person]
    return counts


RATES = [70, 110, 90]


@pytest.mark.parametrize("rows", [1, 2])
def test_histogram(rows):
    for neighbours, of in (("absence", lambda t: absences(t, rows)), ("replacement", replacements(range(3), rows))):
        meter = Meter(neighbours=neighbours, rows_per_person=rows, source=Seeded(0))
        meter.laplace([0, 0, 0], rate=RATES)
        found = worst(tables_of(2 * rows, range(3)), of, histogram, RATES)
        if neighbours == "absence":
            assert meter.spent().total == found
        else:  # one leaves the bin of rate 110, one enters that of 90; the price takes the largest rate twice
            assert found == rows * (110 + 90)
            assert meter.spent().total == rows * (110 + 110)
            equal = Meter(neighbours=neighbours, rows_per_person=rows, source=Seeded(0))
            equal.laplace([0, 0, 0], rate=110)
            assert equal.spent().total == worst(tables_of(2 * rows, range(3)), of, histogram, [110] * 3)


def test_weighted_sum_per_person_group():
    """Two people with weights 30 and 80: each loses exactly their own weight times the rate."""
    weights, rate = [30, 80], 7
    budgets = PersonBudgets(np.array([500, 600]), np.array([1, 1]))
    meter = Meter(budgets=budgets, source=Seeded(0))
    meter.laplace([0], rate=rate, weights=weights)

    def answer(table):
        return [sum(w for w, x in zip(weights, table, strict=True) if x == 1)]

    for person in (0, 1):

        def only(table, person=person):
            yield (*table[:person], ABSENT, *table[person + 1 :])

        assert meter.spent().people[person] == worst(tables_of(2, [0, 1]), only, answer, [rate])


def test_touching_all_coordinates():
    """Each record is a vector of bits, and every bit is counted."""
    meter = Meter(source=Seeded(0))
    meter.laplace([0, 0, 0], rate=RATES, touches="all")
    records = list(itertools.product([0, 1], repeat=3))

    def answer(table):
        return [sum(r[j] for r in table if r is not ABSENT) for j in range(3)]

    assert meter.spent().total == worst(tables_of(2, records), absences, answer, RATES) == sum(RATES)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=1, max_size=4),
    st.lists(st.integers(1, 10**9), min_size=3, max_size=3),
)
def test_matrix_of_possible_records(items, rates):
    meter = Meter(neighbours="item", attributes=["a", "b"], source=Seeded(0))
    meter.laplace([0, 0, 0], rate=rates, touches=np.array(items), attributes=["a", "b", "a"])

    def answer(table):
        return [sum(items[i][j] for i in table if i is not ABSENT) for j in range(3)]

    tables = tables_of(2, range(len(items)))
    assert meter.spent().total == worst(tables, absences, answer, rates)
    # An attribute alone: an observer of only its coordinates.
    assert meter.spent().attributes["a"] == worst(tables, absences, lambda t: answer(t)[::2], rates[::2])
    assert meter.spent().attributes["b"] == worst(tables, absences, lambda t: answer(t)[1:2], rates[1:2])


def test_sequence_and_parallel():
    """People 0 and 1 live apart; each region asks its own question, then both are asked together."""
    meter = Meter(source=Seeded(0))
    with meter.parallel("each person lives in one region") as branch:
        with branch():
            meter.laplace([0], rate=60)
        with branch():
            meter.laplace([0], rate=100)
    meter.laplace([0], rate=5)

    def answer(table):
        here = [int(x is not ABSENT) for x in table]
        return [here[0], here[1], sum(here)]

    assert meter.spent().total == worst(tables_of(2, [1]), absences, answer, [60, 100, 5]) == 105


def mixture(records: int, p: float, weight: int, rate: int, x: np.ndarray) -> np.ndarray:
    """Output law of a weighted count of a sample, plus discrete Laplace."""
    q = math.exp(-rate / NANO)
    law = np.zeros(x.size)
    for kept in range(records + 1):
        chance = math.comb(records, kept) * p**kept * (1 - p) ** (records - kept)
        law += chance * (1 - q) / (1 + q) * q ** np.abs(x - kept * weight)
    return law


@pytest.mark.parametrize("p", [0.5, 0.125, 0.9])
@pytest.mark.parametrize("rate", [10**8, NANO, 3 * NANO])
def test_sampling_is_priced_exactly(p, rate):
    meter = Meter(source=Seeded(0))
    with meter.sampled(int(p * 2**63)) as sample:
        meter.laplace(lambda: 2 * sample([3]), rate=rate, weights=2)
    x = np.arange(-30, 40)
    laws = [mixture(n, p, 2, rate, x) for n in range(4)]
    found = max(float(np.abs(np.log(a / b)).max()) for a, b in itertools.pairwise(laws))
    price = meter.spent().total / NANO
    assert found <= price * (1 + 1e-12)
    assert found == pytest.approx(price, abs=2e-9)


def test_sampling_before_two_questions_and_within_branches():
    """One sample, two questions: their losses add up inside, the sum is amplified; branches take the maximum first."""
    meter = Meter(source=Seeded(0))
    with meter.sampled(1 << 62) as sample:
        sample([1])
        meter.laplace([0], rate=3 * 10**8)
        with meter.parallel("apart") as branch:
            for rate in (10**8, 4 * 10**8):
                with branch():
                    meter.laplace([0], rate=rate)
    true = math.log(1 + 0.5 * math.expm1(0.7))
    assert 0 <= meter.spent().total / NANO - true < 2e-9


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 800 * NANO), st.integers(1, 1 << 63))
def test_amplification_is_never_below_the_truth(nano, threshold):
    from decimal import Context, Decimal

    context = Context(prec=60)
    p = context.divide(Decimal(threshold), Decimal(1 << 63))
    rise = context.subtract(context.exp(context.divide(Decimal(nano), Decimal(NANO))), Decimal(1))
    true = context.multiply(context.ln(context.add(Decimal(1), context.multiply(p, rise))), Decimal(NANO))
    price = int(amplified(np.array([nano]), np.array([min(threshold / 2.0**63 * (1 + 2.0**-50), 1.0)]))[0])
    assert Decimal(price) >= true - Decimal("1e-30")
    assert price <= nano
    assert Decimal(price) <= true * (1 + Decimal("2e-12")) + 2


def test_the_price_would_notice_noise_that_is_too_small():
    """Power: brute force at the rate of noise 30% too small finds more than the price."""
    meter = Meter(source=Seeded(0))
    meter.laplace([0, 0, 0], rate=RATES)
    assert worst(tables_of(2, range(3)), absences, histogram, [r * 10 // 7 for r in RATES]) > meter.spent().total
