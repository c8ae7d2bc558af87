"""Exact units, public rosters and charges: rounding never favours the spender."""

from __future__ import annotations

import decimal
import time
import tracemalloc
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.privacy import (
    NANO,
    AttributeBudgets,
    Charge,
    PersonBudgets,
    RecipientBudgets,
    as_epsilon,
    nano_down,
    nano_up,
    positive_nano,
)
from sfumato.privacy.losses import ceil_nano, output_loss, product_up
from sfumato.privacy.units import nano_down_array

numbers = st.one_of(
    st.floats(0, 1e6),
    st.fractions(0, 10**6),
    st.decimals(0, 10**6, allow_nan=False, places=12),
    st.integers(0, 10**6),
    st.integers(0, 10**15).map(lambda n: str(as_epsilon(n))),
)


def meant(x) -> Fraction:
    return Fraction(x) if isinstance(x, int | Fraction) else Fraction(Decimal(str(x)))


@given(numbers)
def test_down_and_up_never_gain(x):
    down, up = nano_down(x), nano_up(x)
    assert Fraction(down, NANO) <= meant(x) <= Fraction(up, NANO)
    assert up - down in (0, 1)
    assert (up == down) == ((meant(x) * NANO).denominator == 1)


@given(st.lists(st.one_of(st.floats(0, 1e6), st.integers(0, 10**15).map(lambda n: n / NANO)), max_size=30))
def test_arrays_are_read_as_single_numbers_are(xs):
    found = nano_down_array(np.array(xs, dtype=float)).tolist()
    for x, nano in zip(xs, found, strict=True):
        assert abs(nano - nano_down(x)) <= (x > 1e5)  # beyond 15 digits a float no longer holds every nano-ε
        if x <= 1e5:
            assert nano == nano_down(x)


def test_a_float_just_below_a_decimal_is_not_that_decimal():
    below = np.nextafter(0.3, 0)
    assert nano_down_array([0.3, below]).tolist() == [300_000_000, 299_999_999] == [nano_down(0.3), nano_down(below)]


@given(st.integers(-(10**20), 10**20))
def test_as_epsilon_is_exact_in_any_context(nano):
    with decimal.localcontext(decimal.Context(prec=2)):
        assert Fraction(as_epsilon(nano)) == Fraction(nano, NANO)


@pytest.mark.parametrize(
    "bad", ["nan", float("nan"), "inf", float("-inf"), -1, "-1e-9", "", "a lot", None, [], 10**7, "1e999999999"]
)
def test_what_is_no_budget_is_refused_quickly(bad):
    start = time.perf_counter()
    with pytest.raises(InputError, match="budget of x"):
        nano_down(bad, "budget of x")
    with pytest.raises(InputError):
        nano_up(bad)
    assert time.perf_counter() - start < 1


def test_tiny_budgets():
    assert (nano_down("1e-999999999"), nano_up("1e-999999999")) == (0, 1)
    for x in (0, "0.0000000009", 1e-300):
        with pytest.raises(InputError, match="greater than 0"):
            positive_nano(x)
    for bad in ([np.nan], [np.inf], [-0.1], [2e6]):
        with pytest.raises(InputError):
            nano_down_array(bad)


@given(st.floats(0, 1e6), st.integers(1, 10**12))
def test_products_are_rounded_up_exactly(a, b):
    true = Fraction(a) * b
    assert int(product_up(a, b)) == -(-true.numerator // true.denominator)


@given(st.floats(0, 1e15))
def test_computed_losses_are_widened(x):
    assert Fraction(x) < int(ceil_nano(x)) or x == 0


def test_losses_that_are_no_numbers_are_refused():
    for bad in (np.nan, np.inf, -1.0, 1e30):
        for function in (ceil_nano, lambda x: product_up(x, 1), lambda x: output_loss(x, beta=1.0)):
            with pytest.raises(InputError):
                function(bad)
    many = np.linspace(0, 1, 3000)
    assert (output_loss(many, beta=0.1) >= many * 0.1 * NANO).all()


# --- rosters ----------------------------------------------------------------------------------------------------------


def test_roster_from_numbers():
    b = PersonBudgets.of([0.3, 0.1, 0.3])
    assert (b.levels.tolist(), b.counts.tolist(), b.people, b.groups) == ([TENTH, 3 * TENTH], [1, 2], 3, 2)
    rounded = PersonBudgets.of([0.129, 0.121, 0.004], decimals=2)
    assert rounded.levels.tolist() == [4_000_000, 120_000_000]  # down, but nobody is rounded to nothing
    with pytest.raises(ValueError, match="read-only"):
        b.levels[0] = 5


TENTH = 10**8


@given(st.lists(st.floats(1e-8, 10), min_size=1, max_size=50), st.integers(0, 9))
def test_rounding_a_roster_never_raises_anybody(epsilons, decimals):
    exact = np.sort(nano_down_array(epsilons))
    b = PersonBudgets.of(epsilons, decimals=decimals)
    rounded = np.repeat(b.levels, b.counts)
    assert (rounded <= exact).all()
    assert b.people == len(epsilons)
    assert rounded.min() >= 1


@pytest.mark.parametrize(
    ("levels", "counts", "names"),
    [
        ([], [], None),
        ([1, 2], [1], None),
        ([2, 1], [1, 1], None),
        ([0, 1], [1, 1], None),
        ([1], [-1], None),
        ([1, 2], [1, 1], ("a",)),
    ],
)
def test_malformed_rosters(levels, counts, names):
    with pytest.raises(InputError):
        PersonBudgets(np.array(levels, dtype=np.int64), np.array(counts, dtype=np.int64), names)


def test_budgets_of_nothing_are_refused():
    for bad in ([0.1, 0.0], [np.nan], [-1.0], []):
        with pytest.raises(InputError):
            PersonBudgets.of(bad)
    for function in (PersonBudgets.from_tiers, AttributeBudgets.of, RecipientBudgets.of):
        with pytest.raises(InputError):
            function({})
    with pytest.raises(InputError, match="tier 'strict'"):
        PersonBudgets.from_tiers({"strict": (0, 5)})
    with pytest.raises(InputError, match="'zip'"):
        AttributeBudgets.of({"age": 1}).array(["zip"])


def test_tiers_keep_their_names_in_order_of_budget():
    b = PersonBudgets.from_tiers({"open": (1, 3), "strict": ("0.01", 5), "also strict": (0.01, 2)})
    assert b.names == ("also strict", "strict", "open")
    assert b.name(2) == "open"
    assert b.people == 10
    assert PersonBudgets.of([0.5]).name(0) == "ε 0.5"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_roster_from_a_file(tmp_path, kind):
    path = tmp_path / f"it's a roster.{kind}"
    frame = pd.DataFrame({"who": ["a", "b", "c"], 'my "ε"': [0.1, 0.3, 0.1]})
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    b = PersonBudgets.from_file(path, column='my "ε"')
    assert (b.levels.tolist(), b.counts.tolist()) == ([TENTH, 3 * TENTH], [2, 1])
    with pytest.raises(InputError, match="no such column"):
        PersonBudgets.from_file(path, column="no such column")
    with pytest.raises(InputError, match=r"nowhere\.csv"):
        PersonBudgets.from_file(tmp_path / "nowhere.csv")


def test_roster_file_with_holes_or_words(tmp_path):
    path = tmp_path / "roster.csv"
    path.write_text("who,epsilon\na,0.1\nb,\n")
    with pytest.raises(InputError, match="1 people"):
        PersonBudgets.from_file(path)
    path.write_text("who,epsilon\na,much\nb,little\n")
    with pytest.raises(InputError, match="epsilon"):
        PersonBudgets.from_file(path)


def test_a_million_people_cost_megabytes():
    budgets = np.random.default_rng(0).uniform(0.01, 1, 1_000_000)
    tracemalloc.start()
    b = PersonBudgets.of(budgets)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert b.people == 1_000_000
    assert kept < 40e6  # two arrays, even if every budget is different
    assert peak < 200e6
    coarse = PersonBudgets.of(budgets, decimals=3)
    assert coarse.groups <= 1000
    assert coarse.levels.nbytes + coarse.counts.nbytes < 20_000


# --- charges ----------------------------------------------------------------------------------------------------------


def test_charge_within():
    limit = Charge(100, np.array([40, 100]), {"zip": 30})
    assert Charge(100, np.array([40, 100]), {"zip": 30, "age": 90}).within(limit)
    assert not Charge(101, np.array([40, 101]), {"zip": 30}).within(limit)
    assert not Charge(50, np.array([41, 50]), {"zip": 30}).within(limit)
    assert not Charge(50, np.array([40, 50]), {"zip": 31}).within(limit)
    assert not Charge(40, np.array([40]), {"zip": 1}).within(limit)
    # What a charge does not say about a group or an attribute may be up to its total.
    assert not Charge(50, None, {"zip": 30}).within(limit)
    assert not Charge(40, np.array([40, 40])).within(limit)
    assert Charge(30).within(limit)
    assert Charge(30, np.array([30])).within(Charge(30))


@pytest.mark.parametrize(
    "arguments", [(-1,), (5, np.array([6])), (5, np.array([-1])), (5, np.array([[1]])), (5, None, {"a": -1})]
)
def test_malformed_charges(arguments):
    with pytest.raises(InputError):
        Charge(*arguments)


@pytest.mark.parametrize("people", [[0.9, 1.0], [True], ["1"]])
def test_what_person_groups_are_charged_is_whole_and_never_cut_down(people):
    for make in (lambda: Charge(5, people), lambda: Charge.of_people(people)):
        with pytest.raises(InputError, match="whole nano-ε"):
            make()


def test_charge_is_rounded_up():
    charge = Charge.of("0.3333333333", attributes={"age": Fraction(1, 3)})
    assert (charge.total, charge.attributes["age"]) == (333_333_334, 333_333_334)


def test_a_share_of_a_budget_is_rounded_down():
    roster = PersonBudgets(np.array([7, 1_000_000_001, 2**40 + 1]), np.array([1, 1, 1]))
    for part in (Fraction(1, 3), Fraction(2, 7), "0.1", 0.3, "0.123456789123"):
        shared = roster.share(part).levels.tolist() if 7 * Fraction(str(part)) >= 1 else None
        exact = [level * Fraction(str(part)) for level in roster.levels.tolist()]
        assert shared is None or all(s <= e < s + 1 for s, e in zip(shared, exact, strict=True))
    assert roster.share("0.5").levels.tolist() == [3, 500_000_000, 2**39]
