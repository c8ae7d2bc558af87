"""The Meter refuses before it looks, forgets nothing, and says what it promised."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from sfumato.errors import BudgetError, InputError, PrivacyError
from sfumato.privacy import NANO, Charge, Exact, Meter, PersonBudgets, Seeded
from sfumato.privacy.items import laplace_each, laplace_shares
from sfumato.privacy.losses import choice_rate
from sfumato.privacy.objective import Objective
from sfumato.privacy.optimum import Perturbation

TENTH = 10**8


class TouchedError(Exception):
    pass


def explode():
    raise TouchedError


def test_a_call_beyond_the_limit_is_refused_before_its_value_is_touched():
    meter = Meter(limit=Charge.of(0.5))
    with pytest.raises(BudgetError, match=r"asked ε 0.6, 0.5 of 0.5 left for this release"):
        meter.laplace(explode, rate=6 * TENTH)
    with pytest.raises(BudgetError):
        meter.choose(explode, rate=6 * TENTH)
    assert meter.spent().total == 0
    assert meter.guarantee().steps == ()


def test_a_value_that_fails_leaves_the_charge():
    meter = Meter(limit=Charge.of(0.5))
    with pytest.raises(TouchedError):
        meter.laplace(explode, rate=TENTH)
    with pytest.raises(TouchedError):
        meter.choose(explode, rate=TENTH)
    with pytest.raises(TouchedError), meter.parallel("apart") as branch, branch():
        meter.laplace(explode, rate=TENTH)
    with pytest.raises(TouchedError), meter.sampled(1 << 63):
        meter.laplace(explode, rate=TENTH)
    with pytest.raises(InputError, match="lattice"):
        meter.laplace([0.5], rate=TENTH)
    assert meter.spent().total == 5 * TENTH
    with pytest.raises(BudgetError):
        meter.laplace([0], rate=1)
    assert meter.guarantee().nano == 5 * TENTH


def test_limits_hold_inside_blocks():
    meter = Meter(limit=Charge.of(0.3))
    meter.laplace([0], rate=TENTH)
    with meter.parallel("apart") as branch:
        with branch():
            meter.laplace([0], rate=2 * TENTH)
            with pytest.raises(BudgetError):
                meter.laplace([0], rate=1)
        with branch():
            meter.laplace([0], rate=2 * TENTH)
        with branch(), pytest.raises(BudgetError):
            meter.laplace(explode, rate=2 * TENTH + 1)
    assert meter.spent().total == 3 * TENTH


def test_a_call_in_a_parallel_block_but_in_no_branch_is_refused():
    """The maximum over branches would forget it."""
    meter = Meter()
    with meter.parallel("apart") as branch:
        for call in (
            lambda: meter.laplace(explode, rate=TENTH),
            lambda: meter.choose(explode, rate=TENTH),
            lambda: meter.sampled(1 << 63).__enter__(),
            lambda: meter.parallel("again").__enter__(),
        ):
            with pytest.raises(PrivacyError, match="branch"):
                call()
        with branch():
            meter.laplace([0], rate=TENTH)
    assert meter.spent().total == TENTH


def test_a_branch_belongs_to_its_block():
    meter = Meter()
    with meter.parallel("by region") as outer, outer(), meter.parallel("by age") as inner:
        with pytest.raises(InputError, match="branches"), outer():
            pass
        with inner():
            meter.laplace([0], rate=TENTH)
    with pytest.raises(InputError, match="branches"), outer():
        pass
    assert "disjoint groups: by age" in meter.guarantee().assumptions


def test_nested_blocks_add_and_take_the_maximum():
    meter = Meter()
    with meter.parallel("by region") as region:
        with region():
            meter.laplace([0], rate=1)
            with meter.parallel("by age") as age:
                with age():
                    meter.laplace([0], rate=10)
                with age():
                    meter.laplace([0], rate=20)
        with region():
            meter.laplace([0], rate=15)
    assert meter.spent().total == 21


def test_a_sampled_price_needs_its_sample():
    meter = Meter()
    with meter.sampled(1 << 62), pytest.raises(PrivacyError, match="sample function"):
        meter.laplace([3], rate=TENTH)
    with meter.sampled(1 << 62) as outer, meter.sampled(1 << 62) as inner:
        inner([5])
        with pytest.raises(PrivacyError, match="sample function"):
            meter.choose([1, 2], rate=TENTH)
        kept = inner(outer([5]))
        assert 0 <= kept[0] <= 5
        meter.laplace(kept, rate=TENTH)
    with pytest.raises(InputError, match="closed"):
        outer([5])
    with pytest.raises(PrivacyError, match="absence"), Meter(neighbours="replacement").sampled(1 << 62):
        pass
    with pytest.raises(InputError, match="probability"), Meter().sampled(0.5):
        pass


def test_person_groups_have_totals_and_limits_of_their_own():
    budgets = PersonBudgets.from_tiers({"strict": (0.1, 50), "open": (1, 10)})
    meter = Meter(budgets=budgets)
    meter.laplace([0], rate=1, weights=budgets.levels // 2)
    assert meter.spent().people.tolist() == [TENTH // 2, NANO // 2]
    with pytest.raises(BudgetError, match="people at strict"):
        meter.laplace(explode, rate=1, weights=[TENTH // 2 + 1, 0])
    meter.laplace([0], rate=1, weights=[0, NANO // 2])
    assert meter.spent().people.tolist() == [TENTH // 2, NANO]
    with pytest.raises(InputError, match="3 weights for 2 person groups"):
        meter.laplace([0], rate=1, weights=[1, 2, 3])
    with pytest.raises(InputError, match="negative"):
        meter.laplace([0], rate=1, weights=[1, -2])
    with pytest.raises(InputError, match="integers"):
        meter.laplace([0], rate=1, weights=0.5)


def test_limit_per_group_is_the_smaller_of_both():
    budgets = PersonBudgets.of([0.1, 1.0])
    limited = Meter(budgets=budgets, limit=Charge(NANO, np.array([5, NANO])))
    with pytest.raises(BudgetError):
        limited.laplace([0], rate=1, weights=[6, 0])
    with pytest.raises(InputError, match="1 person groups"):
        Meter(budgets=budgets, limit=Charge(5, np.array([5])))


def test_attributes_without_names_lose_everything():
    """A call that does not say which attribute it shows is charged to all of them."""
    meter = Meter(attributes=["age", "zip"], limit=Charge.of(1, attributes={"zip": 0.3}))
    meter.laplace([0, 0], rate=[TENTH, 2 * TENTH], touches="all", attributes=["age", "zip"])
    assert meter.spent().attributes == {"age": TENTH, "zip": 2 * TENTH}
    assert meter.spent().total == 3 * TENTH
    meter.choose([1, 2], rate=TENTH)
    assert meter.spent().attributes == {"age": 2 * TENTH, "zip": 3 * TENTH}
    with pytest.raises(BudgetError, match="attribute 'zip'"):
        meter.laplace(explode, rate=1)
    with pytest.raises(InputError, match="not metered"):
        meter.laplace([0], rate=[1], attributes=["name"])
    with pytest.raises(InputError, match="2 attribute names for 1 rates"):
        meter.laplace([0], rate=[1], attributes=["age", "zip"])


@pytest.mark.parametrize(
    "touches", [np.empty((0, 2), dtype=np.int64), np.array([[1, -1]]), np.array([[0.5, 1]]), np.ones((1, 3), int), "some"]
)
def test_what_a_record_touches_must_be_said_properly(touches):
    meter = Meter()
    with pytest.raises(InputError, match=r"touches|columns"):
        meter.laplace(explode, rate=[1, 2], touches=touches)
    assert meter.spent().total == 0


def test_exact_prices_beyond_64_bits_are_refused_not_wrapped():
    for matrix in (np.array([[2**62, 2**62]]), np.array([[2**40, 2**40]])):
        with pytest.raises(BudgetError, match="more than any budget"):
            Meter().laplace(explode, rate=[10**15, 10**15], touches=matrix)
    with pytest.raises(BudgetError):
        Meter(rows_per_person=2**40).laplace(explode, rate=10**15)
    with pytest.raises(BudgetError):
        Meter().laplace(explode, rate=1, weights=np.array([2**63], dtype=np.uint64))
    meter = Meter()
    for _ in range(2):
        meter.laplace([0], rate=1, weights=2**60)
    with pytest.raises(BudgetError):
        meter.laplace(explode, rate=1, weights=2**60)
    assert meter.spent().total == 2**61


def test_sums_stop_at_the_ends_of_64_bits():
    """Wrapping around would put two neighbouring sums at opposite ends."""
    top = np.iinfo(np.int64).max
    for values in ([top] * 200, np.array([2**64 - 1] * 200, dtype=np.uint64)):
        noisy = Meter(source=Seeded(0)).laplace(values, rate=1000)
        assert noisy.min() > top // 2
        assert (noisy == top).any()
    noisy = Meter(source=Seeded(0)).laplace([-top - 1] * 200, rate=1000)
    assert noisy.max() < -top // 2
    assert Meter().laplace(np.arange(3, dtype=np.uint8), rate=10**12).tolist() == [0, 1, 2]


def test_choice_is_priced_by_its_spread_exactly():
    meter = Meter()
    meter.choose([1, 2, 3], rate=10, spread=0.1)  # as a float, 0.1 is a little more than one tenth
    assert meter.spent().total == 2
    meter.choose([1, 2, 3], rate=10, spread=0.5)
    assert meter.spent().total == 7
    for spread in (1.178, 0.1, 3, 1e-3, 7 / 3):
        rate = choice_rate(TENTH, spread)
        limited = Meter(limit=Charge(TENTH))
        limited.choose([1, 2], rate=rate, spread=spread)
        with pytest.raises(BudgetError):
            Meter(limit=Charge(TENTH)).choose([1, 2], rate=rate + 1, spread=spread)
    for bad in (np.nan, np.inf, -1.0):
        with pytest.raises(InputError):
            meter.choose([1, 2], rate=10, spread=bad)


def test_replacement_and_rows_multiply():
    for neighbours, rows, factor in (("absence", 3, 3), ("replacement", 1, 2), ("replacement", 3, 6), ("item", 1, 1)):
        meter = Meter(neighbours=neighbours, rows_per_person=rows)
        meter.laplace([0], rate=7, weights=5)
        meter.choose([1, 2], rate=11, spread=2)
        assert meter.spent().total == factor * (35 + 22)


def start_at_nothing(objective, noise):
    return np.zeros(noise.size)


def test_optima_are_priced_per_group_neighbours_and_rows():
    budgets = PersonBudgets.of([0.5, 1.0])
    rows = Exact(Objective("logistic", np.eye(3) / 2, np.ones(3), 10.0))
    by = Perturbation("logistic", 3, 10.0, 0.1)
    for neighbours, moves in (("absence", 1), ("replacement", 2)):
        meter = Meter(budgets=budgets, neighbours=neighbours)
        assert meter.optimum(rows, start_at_nothing, by=by, weights=[1.0, 2.0]).shape == (3,)
        true = np.array([moves * w * 0.1 + np.log1p(0.25 * w / 10) for w in (1.0, 2.0)]) * NANO + by.extra
        assert (meter.spent().people >= true).all()
        assert (meter.spent().people <= true + 2).all()
        assert any("real numbers" in a for a in meter.guarantee().assumptions)
        nobody = Meter(budgets=budgets, neighbours=neighbours)
        nobody.optimum(rows, start_at_nothing, by=by, weights=[0.0, 1.0])
        assert nobody.spent().people[0] == 0
        on_output = replace(by, on="output", beta=1.0)
        for owned in (1, 3):
            meter = Meter(neighbours=neighbours, rows_per_person=owned)
            meter.optimum(rows, start_at_nothing, by=on_output)
            true = owned * (moves + 2 * by.within) / 10 * NANO
            assert true <= meter.spent().total <= true + owned


def test_unsound_steps_are_refused_for_real_and_marked_in_experiments():
    with pytest.raises(PrivacyError, match="refused: as printed"):
        Meter().unsound("as printed")
    meter = Meter(source=Seeded(0))
    meter.unsound("as printed")
    assert meter.guarantee().not_private == ("noise from a seed", "as printed")


@pytest.mark.parametrize(
    "arguments", [{"rows_per_person": 0}, {"neighbours": "Replacement"}, {"limit": Charge(5, np.array([5, 5]))}]
)
def test_a_meter_that_would_misprice_is_refused(arguments):
    with pytest.raises(InputError):
        Meter(**arguments)
    with pytest.raises(TypeError):
        Meter(rows_per_person=2.5)


def test_the_guarantee_waits_for_open_blocks():
    meter = Meter()
    with meter.parallel("apart") as branch, branch():
        meter.laplace([0], rate=TENTH)
        assert meter.spent().total == TENTH
        with pytest.raises(InputError, match="closed"):
            meter.guarantee()
    assert meter.guarantee().nano == TENTH


def test_threads_cannot_overspend():
    meter = Meter(limit=Charge(1000))
    done, start = [], threading.Barrier(8)

    def work():
        start.wait()
        for _ in range(50):
            try:
                meter.laplace([0], rate=10)
                done.append(1)
            except BudgetError:
                pass

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(done) == 100
    assert meter.spent().total == 1000


def test_histories_are_priced_per_item_only():
    """Against a person's absence the price of one item would be far too low."""
    rate, touches = np.array([TENTH, TENTH]), np.array([[1, 1]])
    for neighbours in ("absence", "replacement"):
        meter = Meter(neighbours=neighbours)
        with pytest.raises(PrivacyError, match="per item"):
            laplace_each(meter, np.ones((5, 2), dtype=np.int64), rate=rate, touches=touches)
        with pytest.raises(PrivacyError, match="per item"):
            laplace_shares(meter, rate=rate, touches=touches, why="each item is in one sum")
        assert meter.spent().total == 0


def test_a_charge_without_a_draw_costs_what_the_draw_would_and_draws_nothing():
    class Silent(Seeded):
        def words(self, n):
            raise AssertionError("a bit was drawn")

    budgets = PersonBudgets.of([0.1, 1.0])
    call = {"rate": [3, 5], "weights": [7, 11], "touches": "all", "attributes": ["a", "b"], "label": "both"}
    drawn = Meter(budgets=budgets, attributes=["a", "b", "c"], rows_per_person=2, source=Seeded(1))
    paid = Meter(budgets=budgets, attributes=["a", "b", "c"], rows_per_person=2, source=Silent(1))
    drawn.laplace([0, 0], **call)
    paid.charge(**call)
    assert paid.spent().people.tolist() == drawn.spent().people.tolist() == [7 * 8 * 2, 11 * 8 * 2]
    assert paid.spent().attributes == drawn.spent().attributes == {"a": 66, "b": 110, "c": 0}
    assert paid.guarantee().steps == drawn.guarantee().steps
    with pytest.raises(BudgetError, match=r"people at ε 0\.1"):
        paid.charge(rate=NANO // 10)


def test_opening_a_stream_draws_no_noise():
    """What a stream costs was once charged by drawing noise on zeros and throwing it away."""
    source, untouched = Seeded(5), Seeded(5)
    laplace_shares(
        Meter(neighbours="item", source=source),
        rate=np.array([TENTH]),
        touches=np.array([[1]]),
        why="each item is in one sum",
    )
    assert source.words(1) == untouched.words(1)


def test_vector_noise_inside_a_sample_waits_for_the_sample_too():
    """Its price is amplified like any other, so the sample must have been drawn."""
    rows = Exact(np.eye(2) / 2)
    for on in ("objective", "output"):
        meter = Meter(source=Seeded(1))
        by = Perturbation("logistic", 2, 9.0, 0.1, on=on)
        with meter.sampled(1 << 61) as sample:
            everybody = rows.map(lambda r: Objective("logistic", r, np.ones(2), 9.0))
            with pytest.raises(PrivacyError, match="must be made of what its sample function returns"):
                meter.optimum(everybody, start_at_nothing, by=by)
            drawn = sample(Exact([1])).zip(rows)
            made = drawn.map(lambda both: Objective("logistic", both[1][: both[0][0]], np.ones(both[0][0]), 9.0))
            assert meter.optimum(made, start_at_nothing, by=by).shape == (2,)
