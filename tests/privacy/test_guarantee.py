"""What a guarantee says follows from its numbers, and survives being written down."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.privacy import NANO, Guarantee, Meter, PersonBudgets, Step
from sfumato.privacy.group_losses import GroupLosses
from sfumato.privacy.units import nano_of

TENTH = 10**8


# --- words ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nano", "opening"),
    [
        (0, "can hardly tell"),
        (TENTH, "can hardly tell"),
        (TENTH + 1, "may guess somewhat better than before, but not be sure,"),
        (NANO, "may guess somewhat better than before, but not be sure,"),
        (NANO + 1, "may learn a good deal about"),
        (3 * NANO, "may learn a good deal about"),
        (3 * NANO + 1, "may well be able to tell"),
        (5 * NANO, "may well be able to tell"),
        (50 * NANO, "may well be able to tell"),
    ],
)
@pytest.mark.parametrize(
    ("neighbours", "secret"), [("absence", "whether any one person took part"), ("item", "whether any one item is")]
)
def test_words_follow_the_number(nano, opening, neighbours, secret):
    text = Guarantee(nano, neighbours=neighbours).sentence()
    assert text.startswith(f"Whoever sees this release {opening} {secret}")


def test_hardly_is_said_only_where_an_even_chance_stays_nearly_even():
    said = [nano for nano in range(0, 6 * NANO, TENTH // 4) if "hardly" in Guarantee(nano).sentence()]
    most = math.exp(max(said) / NANO)
    assert most / (1 + most) < 0.53
    assert "149" in Guarantee(5 * NANO).sentence()


def test_guarantee_in_words_and_as_data():
    budgets = PersonBudgets.from_tiers({"strict": (0.01, 540), "open": (1, 90)})
    meter = Meter(budgets=budgets, attributes=["age"], rows_per_person=2)
    meter.laplace([0], rate=1, weights=[5_000_000, 7 * TENTH // 2], label="how many")
    promise = meter.guarantee()
    words = str(promise)
    assert "e^0.7 = 2.02" in words  # rounded up: it says "at most"
    assert "(used of granted ε): strict: 0.01 of 0.01, open: 0.7 of 1" in words
    assert "up to 2 rows" in words
    assert "roster" in words
    assert "age 0.7" in words
    data = json.loads(json.dumps(promise.to_dict()))
    assert data["epsilon"] == "0.7"
    assert data["private"] is True
    assert data["people"] == [
        {"group": "strict", "people": 540, "groups": 1, "granted": "0.01", "share": "0.01", "used": "0.01"},
        {"group": "open", "people": 90, "groups": 1, "granted": "1", "share": "1", "used": "0.7"},
    ]
    assert data["steps"] == [{"label": "how many", "mechanism": "laplace", "epsilon": "0.7"}]


def test_a_small_total_of_attributes_is_written_plainly():
    assert "together 0.0000001." in Guarantee(100, attributes={"x": 40, "y": 60}).sentence()


# --- what was granted, what of it is for this release, what was used ----------------------------------------------------


def test_the_grant_is_shown_beside_the_share():
    grants = PersonBudgets.from_tiers({"strict": (0.02, 540), "open": (2, 90)})
    meter = Meter(budgets=grants.share(0.5), granted=grants.levels)
    meter.laplace([0], rate=1, weights=[10**7, 7 * TENTH])
    promise = meter.guarantee()
    assert promise.to_dict()["people"][1] == {
        "group": "open",
        "people": 90,
        "groups": 1,
        "granted": "2",
        "share": "1",
        "used": "0.7",
    }
    words = "(ε used, of the share for this release, of the grant): strict: 0.01 of 0.01 of 0.02, open: 0.7 of 1 of 2."
    assert words in promise.sentence()


def test_grants_must_fit_the_shares():
    budgets = PersonBudgets.of([0.1, 0.2])
    with pytest.raises(InputError, match="1 grants for 2 person groups"):
        Meter(budgets=budgets, granted=[10**9])
    with pytest.raises(InputError, match="more of a budget than was granted"):
        Meter(budgets=budgets, granted=[10**9, 10**8])


def spans(row):
    return {key: [nano_of(end) for end in row[key].split("..")] for key in ("granted", "share", "used")}


def test_merged_groups_show_ranges_and_never_more_used_than_granted():
    """A roster of continuous budgets used to show used .0132 of granted .013: the upper end of the range was dropped."""
    levels = 13_000_000 + 977 * np.arange(5000)
    budgets = PersonBudgets(levels, np.ones(5000, dtype=np.int64))
    meter = Meter(budgets=budgets, granted=2 * levels)
    meter.laplace([0], rate=1, weights=levels)
    rows = meter.guarantee().to_dict(most_groups=10)["people"]
    assert len(rows) == 10
    assert sum(r["people"] for r in rows) == 5000
    assert [r["groups"] for r in rows] == [500] * 10
    for row in rows:
        found = spans(row)
        assert len(found["granted"]) == len(found["used"]) == 2
        for end in (0, -1):
            assert found["used"][end] <= found["share"][end] <= found["granted"][end]
    assert rows[0]["used"] == f"0.013..{0.013 + 499 * 977e-9:.9f}"
    assert "5,000 people" in meter.guarantee().sentence()


def test_merged_tiers_lose_their_names_and_single_ones_keep_them():
    tiers = PersonBudgets.from_tiers({f"t{i:02}": (0.1 + i / 100, 5) for i in range(13)})
    rows = GroupLosses.of(tiers).using(tiers.levels).merged(12).to_list()
    assert [(r.get("group"), r["groups"]) for r in rows if r["groups"] > 1] == [(None, 2)]
    assert len({r["group"] for r in rows if "group" in r}) == 11


# --- round trip ---------------------------------------------------------------------------------------------------------

nanos = st.integers(0, 2**60)
texts = st.text(max_size=12)


@st.composite
def groups(draw):
    size = draw(st.sampled_from([1, 2, 8, 9, 40, 1000, 1001, 3000]))
    seed = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    share = np.sort(seed.integers(1, draw(st.sampled_from([5, 10**6, 10**12])), size))
    names = tuple(f"tier {i}" for i in range(size)) if draw(st.booleans()) else None
    budgets = PersonBudgets(share, seed.integers(0, 100, size), names)
    granted = share + seed.integers(0, 10**6, size) if draw(st.booleans()) else None
    return GroupLosses.of(budgets, granted=granted).using(seed.integers(0, share + 1))


guarantees = st.builds(
    Guarantee,
    nano=nanos,
    neighbours=st.sampled_from(["absence", "replacement", "item"]),
    groups=st.none() | groups(),
    attributes=st.dictionaries(texts, nanos, max_size=4),
    rows_per_person=st.integers(1, 9),
    assumptions=st.lists(texts, max_size=3).map(tuple),
    steps=st.lists(st.builds(Step, texts, texts, nanos), max_size=3).map(tuple),
    not_private=st.lists(texts, max_size=2).map(tuple),
)


@settings(max_examples=150, deadline=None)
@given(guarantees, st.sampled_from([1, 5, 8, 20, 1000]))
def test_a_guarantee_comes_back_as_it_was(promise, most):
    written = promise.to_dict(most_groups=most)
    again = Guarantee.from_dict(json.loads(json.dumps(written)))
    assert again.to_dict() == written
    assert again.to_dict(most_groups=most) == written
    assert again.sentence() == promise.sentence()
    assert again.epsilon == promise.epsilon
    assert again.private == promise.private
    assert (again.people is None) == (promise.people is None)
    if promise.groups is not None:
        assert again.groups.groups.sum() == promise.groups.groups.sum()
        assert again.budgets.people == promise.budgets.people
        assert (again.people <= again.budgets.levels).all()


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"epsilon": "1"},
        Guarantee(NANO).to_dict() | {"neighbours": "somebody"},
        Guarantee(NANO).to_dict() | {"epsilon": "much"},
        Guarantee(NANO).to_dict() | {"epsilon": "1e999999999"},
        Guarantee(NANO).to_dict() | {"epsilon": "0.0000000001"},
        Guarantee(NANO).to_dict() | {"epsilon": None},
        Guarantee(NANO).to_dict() | {"people": []},
        Guarantee(NANO).to_dict() | {"people": [{"used": "1"}]},
        Guarantee(NANO).to_dict() | {"steps": ["laplace"]},
    ],
)
def test_what_is_no_guarantee_is_refused(broken):
    with pytest.raises(InputError):
        Guarantee.from_dict(broken)
