"""Streams: totals without noise, the guarantee by brute force on short streams, memory, error."""

from __future__ import annotations

import itertools
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.attributes import AttributeStream, Catalogue, ItemSums, Policy, Profile, allocate
from sfumato.errors import BudgetError, InputError
from sfumato.privacy import Meter, Seeded
from sfumato.privacy.exact import Exact
from sfumato.testing import reveal

SHOP = Catalogue.of({"a": ["x", "y"], "b": ["y"], "c": ["x"]})
POLICY = allocate(SHOP, budgets={"x": 0.3, "y": 0.5}, epsilon=0.6)
ROWS = {"a": np.array([1, 1]), "b": np.array([0, 1]), "c": np.array([1, 0])}


def stream(fanout: int, seed: int = 1) -> AttributeStream:
    meter = Meter(limit=POLICY.charge, attributes=POLICY.attributes, neighbours="item", source=Seeded(seed))
    return AttributeStream(POLICY, meter, catalogue=SHOP, fanout=fanout)


class Silent:
    """No noise; every sum that would have been noised is written down, with its share."""

    def __init__(self, drawn: list[tuple[np.ndarray, int]]) -> None:
        self.drawn = drawn

    def __call__(self, values: Exact[np.ndarray], parts: int) -> np.ndarray:
        self.drawn.append((reveal(values).copy(), parts))
        return reveal(values).copy()

    def hold(self, value: Exact[np.ndarray]) -> Exact[np.ndarray]:
        reveal(value)
        return value


def silent(s: AttributeStream) -> list[tuple[np.ndarray, int]]:
    s._draw = Silent([])
    return s._draw.drawn


def steps(*rows) -> ItemSums:
    return ItemSums.as_stated(np.array(rows), POLICY)


def play(data: np.ndarray, questions: tuple[int, ...], fanout: int) -> list[tuple[np.ndarray, int]]:
    """All noised sums when a question is asked after each of the given steps."""
    s = stream(fanout)
    drawn = silent(s)
    for step, row in enumerate(data):
        s.extend(steps(row))
        if step in questions:
            np.testing.assert_array_equal(s.release().counts, data[: step + 1].sum(axis=0))
    return drawn


@pytest.mark.parametrize(("fanout", "length"), [(2, 7), (3, 7), (4, 6)])
def test_every_neighbour_of_every_short_stream_stays_within_the_promise(fanout, length):
    data = np.array([ROWS["abc"[i % 3]] for i in range(length)])
    promise = POLICY.charge
    worst = Fraction(0)
    for size in range(length + 1):
        for questions in itertools.combinations(range(length), size):
            with_item = play(data, questions, fanout)
            for absent in range(length):
                other = data.copy()
                other[absent] = 0
                without = play(other, questions, fanout)
                # The same sums at the same moments with the same noise: only their content differs.
                assert [p for _, p in with_item] == [p for _, p in without]
                each = np.zeros(2, dtype=object)
                for (one, parts), (two, _) in zip(with_item, without, strict=True):
                    each += [abs(int(a - b)) * int(r // parts) for a, b, r in zip(one, two, POLICY.rates, strict=True)]
                worst = max(worst, Fraction(int(each.sum()), promise.total))
                assert each.sum() <= promise.total
                assert all(e <= promise.attributes[n] for e, n in zip(each, POLICY.attributes, strict=True))
    # The price is nearly used up by some question pattern: the levels are not over-counted.
    assert worst > Fraction(99, 100)


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 5), st.lists(st.tuples(st.integers(0, 40), st.booleans(), st.booleans()), min_size=1, max_size=25))
def test_any_mixture_of_steps_blocks_gaps_and_questions_adds_up(fanout, moves):
    rng = np.random.default_rng(len(moves))
    s, total, time = stream(fanout), np.zeros(2, dtype=np.int64), 0
    silent(s)
    for length, empty, ask in moves:
        if empty:
            s.skip(length)
        else:
            block = rng.integers(0, 3, (length, 2))
            s.extend(ItemSums.as_stated(block, POLICY))
            total += block.sum(axis=0)
        time += length
        assert s.time == time
        if ask:
            np.testing.assert_array_equal(s.release().counts, total)
    np.testing.assert_array_equal(s.release().counts, total)


def test_a_block_and_single_steps_are_the_same_stream():
    rng = np.random.default_rng(6)
    items = [["a", "b", "c"][i] for i in rng.integers(0, 3, 300)]
    one, two = stream(3), stream(3)
    drawn_one, drawn_two = silent(one), silent(two)
    for item in items:
        one.add([item])
    two.extend(steps(*(ROWS[i] for i in items)))
    assert one.release().counts.tolist() == two.release().counts.tolist()
    assert [p for _, p in drawn_one] == [p for _, p in drawn_two]


def test_memory_grows_with_the_levels_only():
    s = stream(16)
    sizes = {}
    block = ItemSums.as_stated(np.ones((1000, 2), dtype=np.int64), POLICY)
    for k in range(1, 301):
        s.extend(block)
        sizes[k * 1000] = s.size
    s.skip(10**12)
    assert sizes[300_000] <= 2 * (3 * 5 + 1)
    assert s.size <= 2 * (3 * 12 + 1)
    assert s.time == 10**12 + 300_000


def test_a_stream_keeps_nothing_of_what_it_was_made_of():
    s = stream(16)
    rows = np.ones((1000, 2), dtype=np.int64)
    tracemalloc.start()
    try:
        for _ in range(200):  # 3.2 MB of steps
            s.extend(ItemSums.as_stated(rows.copy(), POLICY))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100_000


def test_error_is_as_reported_and_noise_too_small_is_noticed():
    finals, reported, covered = [], 0.0, []
    for seed in range(400):
        s = stream(4, seed=seed)
        for _ in range(30):
            s.extend(steps([1, 1]))
            release = s.release()
        reported = float(release.deviations[0])
        low, high = release.interval(0.9)[0]
        covered.append(low <= 30 <= high)
        finals.append(release.values[0] - 30)
    ratio = np.var(finals) / reported**2
    # Kurtosis of a sum of Laplace draws is at most 6: the variance of 400 draws is known to within 12%.
    assert abs(ratio - 1) < 5 * 0.12
    assert 0.7**2 * ratio < 1 - 0.12
    assert abs(np.mean(finals)) < 5 * reported / 20
    assert np.mean(covered) >= 0.9 - 0.05


def test_error_grows_polylogarithmically_and_a_wide_tree_beats_a_binary_one():
    single = float(np.sqrt(2) * 1e9 / POLICY.rates[0])
    worst = {}
    for fanout in (2, 16):
        s = stream(fanout)
        worst[fanout] = 0.0
        for _ in range(2000):
            s.skip(1)
            worst[fanout] = max(worst[fanout], float(s.release().deviations[0]))
            # At most b - 1 draws on each of L levels, b for each past epoch, all at 1/L of the rate or more.
            bound = (fanout - 1 + fanout / 3) * s.levels**3
            assert float(s.release().deviations[0]) <= 1.001 * single * bound**0.5
        assert s.levels <= np.log(2000) / np.log(fanout) + 1
    assert worst[16] < 0.8 * worst[2]


def test_fewer_questions_mean_less_noise():
    often, seldom = stream(16), stream(16)
    for _ in range(200):
        often.skip(1)
        often.release()
    seldom.skip(200)
    assert seldom.release().deviations[0] < 0.5 * often.release().deviations[0]


def test_a_stream_is_paid_once_at_the_price_of_one_release():
    person = Profile(SHOP, budgets={"x": 0.3, "y": 0.5}, source=Seeded(4))
    s = person.stream(to="shop", epsilon=0.6, fanout=4)
    for item in "abcabcabc":
        s.add([item])
        assert s.release().recipient == "shop"
        assert s.release().guarantee.nano == POLICY.charge.total
    assert person.ledger.spent("shop").total == POLICY.charge.total
    with pytest.raises(BudgetError):
        person.release(["a"], to="shop", epsilon=0.6)


def test_items_without_a_catalogue_are_fitted_under_the_policy():
    light = AttributeStream(POLICY, Meter(attributes=POLICY.attributes, neighbours="item", source=Seeded(1)), fanout=4)
    silent(light)
    light.add([["x", "y"], {"y": 9}])
    assert light.release().counts.tolist() == [1, 2]


def test_bad_steps_are_refused():
    s = stream(4)
    with pytest.raises(InputError):
        s.skip(-1)
    with pytest.raises(InputError):
        s.extend(ItemSums.as_stated(np.ones((2, 3), dtype=np.int64), POLICY))
    with pytest.raises(InputError):
        s.extend(ItemSums.as_stated(np.ones((2, 2)), POLICY))
    with pytest.raises(InputError):
        s.extend(SHOP.histogram(["a"]))
    with pytest.raises(InputError):
        stream(1)
    tiny = Policy(("x",), np.array([2]), np.array([[1]]), 2, np.array([2]))
    starving = AttributeStream(tiny, Meter(attributes=("x",), neighbours="item"), fanout=2)
    starving.skip(6)  # two epochs of two and four steps; the third has three levels for two nano-ε
    starving.skip(1)
    with pytest.raises(InputError, match="cannot be split"):
        starving.release()
