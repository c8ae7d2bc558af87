"""Kind profile: prices by brute force, noise that is neither too small nor too large, errors as previewed, caps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.attributes import Catalogue, Profiled
from sfumato.errors import InputError, PrivacyError
from sfumato.offers import Facts
from sfumato.privacy import NANO, Exact, Meter, Seeded
from sfumato.privacy.noise import laplace_variance
from sfumato.releases.pipeline import price, run
from sfumato.releases.plan import parse_request
from sfumato.statistics.profiles import dense, noisy_totals
from sfumato.testing import Tape, compare, reveal

FILMS = {"Heat": {"action": 2, "crime": 1}, "Ghost": {"romance": 1}, "Alien": ["action", "horror"]}
LABELS = [*FILMS, "Unlisted"]
SCHEMA = sf.Schema(
    {"film": sf.Categorical(LABELS), "age": sf.Numeric(0, 99, bins=2, integer=True)},
    unit=sf.PrivacyUnit(person="who", rows_per_person=2),
)
ASKED = {"column": "film", "catalogue": FILMS, "epsilon": 2, "budgets": {"romance": 0.3, "crime": 0.7}}
ROWS = pd.DataFrame({"who": [1, 1, 2], "film": ["Heat", "Ghost", "Alien"], "age": [30, 60, 40]})


def priced(schema=SCHEMA, **asked):
    return price(parse_request({"name": "r", "kind": "profile", **ASKED, **asked}, "the request"), Facts(schema, rows=3))


def calls(table, made, tape):
    run(made, sf.tables.open(table, schema=SCHEMA), source=tape)
    return tape


@pytest.mark.parametrize("mechanism", ["multilevel", "composition"])
def test_no_person_costs_more_than_the_price_nor_any_attribute_more_than_its_own(mechanism):
    made = priced(mechanism=mechanism)
    charge, policy = made.chosen.charge, made.chosen.plan
    assert charge.total <= 2 * NANO
    assert charge.attributes["romance"] <= 0.3 * NANO
    assert charge.attributes["crime"] <= 0.7 * NANO
    rest = calls(ROWS[ROWS.who != 1], made, Tape(1))
    largest, each = 0, np.zeros(len(policy.attributes), dtype=np.int64)
    for films in [("Heat", "Heat"), ("Ghost", "Ghost"), ("Alien", "Alien"), ("Heat", "Alien"), ("Unlisted", "Ghost")]:
        mine = pd.concat([pd.DataFrame({"who": 1, "film": list(films), "age": 5}), ROWS[ROWS.who != 1]])
        again = rest.again()
        calls(mine, made, again)
        largest = max(largest, sum(call.loss for call in compare(rest, again)))
        each = np.maximum(each, np.abs(again.calls[0].exact - rest.calls[0].exact) * policy.rates)
    assert largest == charge.total  # reached by two rows of the heaviest item
    assert dict(zip(policy.attributes, each.tolist(), strict=True)) == dict(charge.attributes)


def test_the_totals_are_those_of_the_rows_that_are_in_the_catalogue():
    table = sf.tables.open(ROWS, schema=SCHEMA)
    catalogue = Catalogue.of(FILMS).part(LABELS)
    found = []

    class Open(Meter):
        def laplace(self, values, **_):
            found.append(reveal(values).tolist())
            return np.array(found[-1])

    noisy_totals(table.counts(["film"]), dense(catalogue), priced().chosen.plan, Open())
    assert dict(zip(catalogue.attributes, found[0], strict=True)) == {"action": 3, "crime": 1, "romance": 1, "horror": 1}


def test_sums_beyond_64_bits_are_held_and_do_not_wrap():
    heavy = Catalogue.of({"x": {"a": 1 << 31}})
    policy = sf.attributes.allocate(heavy, budgets={"a": 1e6}, epsilon=1e6)
    meter = Meter(attributes=("a",), source=Seeded(1))
    assert noisy_totals(Exact(np.array([1 << 40])), dense(heavy), policy, meter)[0] > 1 << 61


def test_the_noise_is_that_of_the_preview_and_noise_a_third_too_small_is_noticed():
    made = priced()
    policy, matrix = made.chosen.plan, dense(Catalogue.of(FILMS).part(LABELS))
    n = 1500
    meter = Meter(attributes=policy.attributes, rows_per_person=2, source=Seeded(8))
    zero = Exact(np.zeros(4, dtype=np.int64), rows_per_person=2)
    drawn = np.array([noisy_totals(zero, matrix, policy, meter) for _ in range(n)])
    exact = laplace_variance(policy.rates)
    assert made.chosen.expected_rmse == pytest.approx(np.sqrt(exact.mean()))

    def fits(values):
        # The variance of a squared Laplace draw is about 5 times its square.
        return (np.abs((values**2).mean(axis=0) / exact - 1) < 5 * np.sqrt(5 / n)).all()

    assert fits(drawn)
    assert not fits(drawn * 0.7)
    promise = sf.privacy.Guarantee(made.chosen.charge.total)
    ends = np.array([Profiled(row, policy, promise).interval(0.9) for row in drawn[:400]])
    assert 0.88 < np.mean((ends[..., 0] <= 0) & (ends[..., 1] >= 0)) < 0.97
    assert np.sqrt((drawn**2).mean()) == pytest.approx(made.chosen.expected_rmse, rel=0.12)


def test_a_result_comes_back_as_it_was_and_is_drawn(tmp_path):
    table = sf.open(ROWS, schema=SCHEMA, epsilon=9, rows=3, ledger=":memory:", name="t")
    made = table.profile("film", catalogue=FILMS, where="age > 10", epsilon=1, recipient="studio")
    folder = made.save(tmp_path / "out")
    back = sf.releases.folder.read_result(folder)
    assert isinstance(back, Profiled)
    assert back.to_dict() == made.to_dict()
    assert (back.column, back.mechanism, back.recipient) == ("film", "multilevel", "studio")
    assert back.plot().get_ylabel() == "total"
    again = table.profile("film", catalogue=Catalogue.of(FILMS), where="age > 10", epsilon=1, recipient="studio")
    assert again.repeated
    assert again.save(tmp_path / "out") == folder
    assert list(made.to_frame().columns) == ["attribute", "value", "low", "high", "deviation", "charged"]


def test_what_public_facts_refuse():
    roster = sf.Roster.tiers({"open": 1.0}, column="tier", counts={"open": 3})
    facts = Facts(SCHEMA, roster.head_counts(), roster, 3)
    given = {"name": "r", "kind": "profile", **{k: v for k, v in ASKED.items() if k != "epsilon"}, "share": 1}
    with pytest.raises(InputError, match="one `epsilon` for all"):
        price(parse_request(given, "the request"), facts)
    with pytest.raises(InputError, match="mechanism 'best'"):
        priced(mechanism="best")
    with pytest.raises(InputError, match="a file, or a table"):
        priced(catalogue=3)


def test_a_smaller_price_is_refused_by_the_meter():
    made = priced()
    light = Meter(attributes=made.chosen.plan.attributes, source=Seeded(1))  # one row per person is less than a person has
    with pytest.raises(PrivacyError):
        made.chosen.run(sf.tables.open(ROWS, schema=SCHEMA), light)
