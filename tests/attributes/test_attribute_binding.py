"""What was priced is what is counted, for whom it was paid: catalogues, policies, sums and streams that fit together."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from sfumato.attributes import (
    AttributeStream,
    Catalogue,
    ItemGroups,
    ItemSums,
    Policy,
    Profile,
    Recipients,
    allocate,
    release_batch,
    release_histogram,
)
from sfumato.attributes.sums import AS_STATED, EACH_TIME
from sfumato.errors import BudgetError, InputError, PrivacyError
from sfumato.privacy import Meter, Seeded
from sfumato.privacy.exact import Exact
from sfumato.privacy.items import laplace_each, laplace_shares
from sfumato.testing import reveal

LIGHT, HEAVY = Catalogue.of({"a": {"x": 1}}), Catalogue.of({"a": {"x": 50}})
POLICY = allocate(LIGHT, budgets={"x": 1}, epsilon=1)


def items_meter(policy: Policy = POLICY) -> Meter:
    return Meter(attributes=policy.attributes, neighbours="item", source=Seeded(1))


def counted(catalogue: Catalogue, history) -> np.ndarray:
    return reveal(catalogue.histogram(history).exact)


# --- a catalogue counts what it prices ---------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 4),
    st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=6), min_size=1, max_size=5),
)
def test_every_way_to_list_a_row_is_priced_as_it_is_counted(columns, rows):
    """Columns listed twice, out of order, with zeros: one item moves the sums by what it is priced for, never more."""
    cells = [[(j % columns, v) for j, v in row] for row in rows]
    dense = np.zeros((len(cells), columns), dtype=np.int64)
    for i, row in enumerate(cells):
        for j, v in row:
            dense[i, j] += v
    names = [f"a{j}" for j in range(columns)]
    indptr = np.cumsum([0, *map(len, cells)])
    indices = [j for row in cells for j, _ in row]
    values = [v for row in cells for _, v in row]
    same = sparse.csr_matrix(
        (np.array(values, dtype=np.int8), np.array(indices, dtype=np.int32), indptr), shape=dense.shape, dtype=np.int8
    )
    same.has_canonical_format = True  # as whoever made it claims
    for catalogue in (
        Catalogue(indptr, indices, values, attributes=names),
        Catalogue.from_matrix(same, names),
        Catalogue.from_matrix(dense, names),
    ):
        moved = np.array([counted(catalogue, [i]) for i in range(len(cells))])
        np.testing.assert_array_equal(moved, dense)
        for row in moved:
            assert (row <= catalogue.maximal).all(axis=1).any()
        np.testing.assert_array_equal(catalogue.reach, np.maximum(dense.max(axis=0), 1))
        groups = ItemGroups.of(catalogue)
        np.testing.assert_array_equal(groups.rows[groups.group_of], dense)


def test_a_column_listed_five_times_costs_five_times_its_noise():
    five = Catalogue([0, 5], [0] * 5, [1] * 5, attributes=["x"])
    policy = allocate(five, budgets={"x": 1}, epsilon=1)
    lost = int(counted(five, [0])[0]) * int(policy.rates[0])
    assert lost == policy.charge.total <= 10**9


def test_cells_that_add_up_beyond_their_narrow_type_do_not_wrap_around():
    narrow = sparse.csr_matrix(
        (np.array([100, 100, 100], dtype=np.int8), np.array([0, 0, 0]), np.array([0, 3])), shape=(1, 1)
    )
    assert Catalogue.from_matrix(narrow, ["x"]).maximal.tolist() == [[300]]
    assert narrow.nnz == 3  # and the caller's matrix is left as it was


@pytest.mark.parametrize(
    "parts",
    [
        ([0, 1], [0], [1.9]),
        ([0, 1], [0.0], [1]),
        ([0, 1], [0], [-1]),
        ([0, 2], [0, 0], [5, -4]),
        ([0, 1], [0], np.array([2**64 - 1], dtype=np.uint64)),
        ([0, 1], [0], [2**31 + 1]),
        ([0, 2], [0, 0], [2**31, 2**31]),
        ([0, 1], [1], [1]),
        ([0, 1], [-1], [1]),
        ([1, 2], [0, 0], [7, 1]),
        ([0, 2, 1], [0, 0], [1, 1]),
        ([0, 1], [0, 0], [1, 1]),
        ([0, 1], [0], [1, 1]),
        ([], [], []),
        ([[0, 1]], [0], [1]),
    ],
)
def test_parts_that_do_not_make_a_matrix_are_refused(parts):
    with pytest.raises(InputError):
        Catalogue(*parts, attributes=["x"])


@pytest.mark.parametrize("weight", [1e300, 2.0**63, -1e300, np.nan, 1j, "heavy"])
def test_weights_that_are_no_weights_are_refused(weight):
    with pytest.raises(InputError):
        Catalogue.from_matrix(np.array([[weight]]), ["x"])


def test_what_was_priced_cannot_be_changed_afterwards():
    weights = np.array([1])
    catalogue = Catalogue([0, 1], [0], weights, attributes=["x"], items=(names := ["a"]))
    policy = allocate(catalogue, budgets={"x": 1}, epsilon=1)
    weights[0] = 50
    names[0] = "b"
    assert counted(catalogue, ["a"]).tolist() == [1]
    for array in (catalogue.values, catalogue.indices, catalogue.indptr, catalogue.maximal, catalogue.reach):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    for array in (policy.rates, policy.rows, policy.budgets):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(InputError, match="does not change"):
        catalogue.values = np.array([50])
    rates = np.array([10**9])
    ours = Policy(("x",), rates, np.array([[1]]), 10**9, np.array([10**9]))
    rates[0] = 10**15
    assert ours.rates.tolist() == [10**9]


@pytest.mark.parametrize(
    "parts",
    [
        (np.array([60, 10**6]), np.array([[1, -1]])),  # a negative weight would pay for the other attribute
        (np.array([60.9, 10]), np.array([[1, 1]])),
        (np.array([60, 10]), np.array([[1.0, 1.0]])),
        (np.array([60, 10]), np.array([[2**31 + 1, 0]])),
        (np.array([60, 10]), np.array([[2**64 - 1, 1]], dtype=np.uint64)),
    ],
)
def test_a_policy_with_odd_numbers_is_refused(parts):
    with pytest.raises((InputError, PrivacyError)):
        Policy(("x", "y"), parts[0], parts[1], 10**9, np.array([10**9, 10**9]))


# --- a policy is used on what it was priced for ------------------------------------------------------------------------


def entries(catalogue: Catalogue, policy: Policy) -> dict[str, object]:
    """Every way from items of a catalogue to noise under a policy."""
    history = list(catalogue._items or range(catalogue.size))
    many = catalogue.histograms(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), people=1)
    names = dict.fromkeys(catalogue.attributes, 1)
    shipped = Policy.from_json(policy.to_json())
    return {
        "release": lambda: release_histogram(catalogue.histogram(history), policy, items_meter(policy)),
        "batch": lambda: release_batch(many, policy, source=Seeded(1)),
        "stream": lambda: AttributeStream(policy, items_meter(policy), catalogue=catalogue),
        "steps": lambda: AttributeStream(policy, items_meter(policy)).extend(many),
        "profile": lambda: Profile(catalogue, budgets=names, policies=policy).release(history, to="r", epsilon=1),
        "profile's stream": lambda: Profile(catalogue, budgets=names, policies=policy).stream(to="r", epsilon=1),
        "a policy file": lambda: Profile(catalogue, budgets=names, policies=shipped).release(history, to="r", epsilon=1),
        "a policy file's stream": lambda: AttributeStream(shipped, items_meter(policy), catalogue=catalogue),
    }


OTHERS = {
    "heavier": HEAVY,
    "another unit": Catalogue.of({"a": {"x": 1}}, step="0.5"),
    "another name": Catalogue.of({"a": ["y"]}),
    "more attributes": Catalogue.of({"a": ["x", "y"]}),
    "heavier by a cell listed twice": Catalogue([0, 2], [0, 0], [1, 1], attributes=["x"]),
}


@pytest.mark.parametrize("entry", entries(LIGHT, POLICY))
def test_every_entry_takes_the_catalogue_that_was_priced(entry):
    entries(LIGHT, POLICY)[entry]()


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("entry", entries(LIGHT, POLICY))
def test_every_entry_refuses_a_catalogue_that_was_not_priced(entry, other):
    with pytest.raises(PrivacyError, match=r"lighter items|another catalogue|infeasible"):
        entries(OTHERS[other], POLICY)[entry]()


def test_columns_in_another_order_are_another_catalogue():
    one, two = Catalogue.of({"a": {"x": 5, "y": 1}}), Catalogue.of({"a": {"y": 1, "x": 5}})
    policy = allocate(one, budgets={"x": 1, "y": 1}, epsilon=1)
    with pytest.raises(PrivacyError, match="another catalogue"):
        release_histogram(two.histogram(["a"]), policy, items_meter(policy))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=4), st.data())
def test_a_catalogue_is_taken_exactly_if_no_item_costs_more_than_the_promise(rows, data):
    priced = Catalogue.from_matrix(np.array([(1, 1), *rows]), ["x", "y"])
    policy = allocate(priced, budgets={"x": 0.5, "y": 0.7}, epsilon=0.8)
    other = data.draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=4))
    used = Catalogue.from_matrix(np.array(other), ["x", "y"])
    loads = [[a * r for a, r in zip(row, policy.rates.tolist(), strict=True)] for row in other]
    limits = [policy.charge.attributes[name] for name in policy.attributes]
    fits = all(sum(load) <= policy.charge.total and all(map(int.__le__, load, limits)) for load in loads)
    try:
        release_histogram(used.histogram([0]), policy, items_meter(policy))
    except PrivacyError:
        assert not fits
    else:
        assert fits


def test_sums_that_say_nothing_of_their_items_are_refused_or_rest_on_a_word():
    for plain in ([3], np.array([3]), Exact(np.array([3])), lambda: [3]):
        with pytest.raises(PrivacyError, match="how much one item adds"):
            release_histogram(plain, POLICY, items_meter())
    release = release_histogram(ItemSums.as_stated([3], POLICY), POLICY, items_meter())
    assert AS_STATED in release.guarantee.assumptions
    assert AS_STATED not in release_histogram(LIGHT.histogram(["a"]), POLICY, items_meter()).guarantee.assumptions
    assert EACH_TIME in release_histogram(LIGHT.histogram(["a"], once=False), POLICY, items_meter()).guarantee.assumptions
    with pytest.raises(InputError, match="release_batch"):
        release_histogram(ItemSums.as_stated([[3]], POLICY), POLICY, items_meter())
    with pytest.raises(InputError, match="release_histogram"):
        release_batch(LIGHT.histogram(["a"]), POLICY)


def test_the_price_of_an_item_is_not_taken_for_that_of_a_person():
    for neighbours in ("absence", "replacement"):
        meter = Meter(attributes=["x"], neighbours=neighbours)
        with pytest.raises(PrivacyError, match="per item"):
            release_histogram(LIGHT.histogram(["a"]), POLICY, meter)
        with pytest.raises(PrivacyError, match="per item"):
            AttributeStream(POLICY, meter)


# --- what was paid for one recipient is theirs -------------------------------------------------------------------------

KNOWN = Recipients({"clinic": 9, "adnet": 0}, rule={0: 0.05, 5: 1})


def person() -> Profile:
    return Profile({"a": ["x"]}, budgets={"x": 1}, recipients=KNOWN, source=Seeded(3))


def test_a_stream_is_for_the_recipient_it_was_paid_for():
    me = person()
    stream = me.stream(to="clinic")
    stream.add(["a"])
    with pytest.raises(TypeError):
        stream.release(recipient="adnet")
    with pytest.raises(AttributeError):
        stream.recipient = "adnet"
    release = stream.release()
    assert release.recipient == "clinic"
    assert release.guarantee.nano == me.ledger.spent("clinic").total
    assert me.ledger.spent("adnet").total == 0


@pytest.mark.parametrize("take", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"])
def test_a_stream_cannot_be_copied(take):
    with pytest.raises(PrivacyError, match="copied or stored"):
        take(person().stream(to="clinic"))


def test_an_offer_that_runs_is_charged_to_its_recipient():
    me = person()
    offer = me.preview(to="adnet")[0]
    made = offer.run(["a"], Meter(attributes=["x"], neighbours="item", source=Seeded(1)))
    assert made.recipient == "adnet"
    assert me.ledger.spent("adnet").total == made.guarantee.nano == offer.charge.total
    with pytest.raises(BudgetError):
        offer.run(lambda: pytest.fail("read"), Meter(attributes=["x"], neighbours="item", source=Seeded(1)))


# --- a private value stays one -----------------------------------------------------------------------------------------


def parts_of(thing: object, seen: set[int]) -> list[object]:
    """Everything that hangs on a result, as deep as it goes."""
    if id(thing) in seen:
        return []
    seen.add(id(thing))
    inside: list[object] = []
    if isinstance(thing, dict):
        inside = [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset):
        inside = list(thing)
    elif hasattr(thing, "__dict__"):
        inside = list(vars(thing).values())
    return [thing, *(part for each in inside for part in parts_of(each, seen))]


def test_no_result_holds_an_exact_sum_or_the_number_of_items():
    """Noise of the same seed on two histories: whatever a result shows beyond its noisy counts is the same for both."""
    shop = Catalogue.of({"a": {"x": 3}, "b": {"x": 1, "y": 2}, "c": {}})
    budgets = {"x": 1, "y": 1}

    def made(history):
        me = Profile(shop, budgets=budgets, source=Seeded(5))
        stream = me.stream(to="s", epsilon=0.5)
        for item in history:
            stream.add([item])
        stream.skip(40 - len(history))
        return [me.release(list(history), to="r", epsilon=0.5), stream.release()]

    for one, two in zip(made("abccab" * 5), made(""), strict=True):
        for result in (one, two):
            everything = parts_of(result, set())
            assert not any(isinstance(part, Exact | ItemSums) for part in everything)
            exact = counted(shop, "abccab" * 5).tolist(), [50, 20]
            arrays = [part.tolist() for part in everything if isinstance(part, np.ndarray)]
            assert not any(array in exact for array in arrays)
        shown = [json.dumps(dataclasses.replace(r, counts=one.counts).to_dict()) for r in (one, two)]
        assert shown[0] == shown[1]
        assert pickle.dumps(dataclasses.replace(one, counts=one.counts)) == pickle.dumps(
            dataclasses.replace(two, counts=one.counts)
        )
        assert repr(one) == repr(two)


def test_a_profile_keeps_nothing_of_a_history():
    def left_behind(history):
        me = person()
        me.release(history, to="clinic")
        kept = [part for name, part in vars(me).items() if name != "ledger"]  # it keeps the noisy release
        return [repr(part) for part in parts_of(kept, set()) if isinstance(part, int | float | str | np.ndarray)]

    assert left_behind(["a"] * 7) == left_behind([])


def test_a_stream_and_sums_show_nothing():
    stream = person().stream(to="clinic")
    stream.add(["a"] * 7)
    texts = [repr(stream), repr(vars(stream)), repr(LIGHT.histogram(["a"])), str(vars(LIGHT.histogram(["a"])))]
    assert all("private value" in text for text in texts[1:])
    arrays = [part for name, part in vars(stream).items() if isinstance(part, np.ndarray) and name != "_noisy"]
    assert not any(7 in array for array in arrays)
    with pytest.raises(PrivacyError):
        pickle.dumps(LIGHT.histogram(["a"]))


class Hostile:
    def __hash__(self):
        raise RuntimeError("secret")

    def __eq__(self, other):
        raise RuntimeError("secret")

    def __iter__(self):
        raise RuntimeError("secret")


class HostileNumber(int):
    def __lt__(self, other):
        raise RuntimeError("secret")

    __le__ = __gt__ = __ge__ = __lt__


ODD = {
    "hostile": Hostile(),
    "hostile number": HostileNumber(3),
    "surrogate": "\ud800",
    "bytes": b"\xff",
    "long": 10**5000,
    "object": object(),
}


@pytest.mark.parametrize("kind", ODD)
def test_one_hostile_item_counts_nothing_and_tells_nothing(kind):
    odd = ODD[kind]
    named, numbered = Catalogue.of({"a": ["x"]}), Catalogue.from_matrix([[1]], ["x"])
    assert counted(named, ["a", odd]).tolist() == [1]
    assert counted(numbered, [0, odd]).tolist() == [1]
    assert reveal(POLICY.sums([["x"], odd]).exact).tolist() == [1]


# --- draws that were paid for ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 2), (1, 2), (1,), (3,), (), (2, 1)])
def test_one_draw_is_one_vector(shape):
    meter = Meter(neighbours="item", source=Seeded(1))
    draw = laplace_shares(meter, rate=np.array([100, 100]), touches=np.array([[1, 1]]), why="each item is in one sum")
    for values in (np.zeros(shape, dtype=np.int64), Exact(np.zeros(shape, dtype=np.int64))):
        with pytest.raises(InputError, match="one vector of 2 sums"):
            draw(values, 1)
    assert draw(Exact(np.zeros(2, dtype=np.int64)), 1).shape == (2,)


@pytest.mark.parametrize("shape", [(3, 1), (2,), (3, 2, 2), (3, 3)])
def test_many_histories_have_a_column_per_rate(shape):
    meter = Meter(neighbours="item", source=Seeded(1))
    with pytest.raises(InputError, match="one row per person"):
        laplace_each(meter, Exact(np.zeros(shape, np.int64)), rate=np.array([100, 100]), touches=np.array([[1, 1]]))


def test_a_unit_is_a_fraction_greater_than_nothing():
    with pytest.raises(InputError):
        Catalogue([0, 1], [0], [1], attributes=["x"], unit=Fraction(-1))
