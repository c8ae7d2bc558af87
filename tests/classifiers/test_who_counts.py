"""Whose rows count and how often, who says so, and to which tree they go: seen from what reaches the noise."""

import numpy as np
import pandas as pd
import pytest

from sfumato import classifiers as c
from sfumato.errors import BudgetError, InputError, PrivacyError, PrivacyWarning
from sfumato.grids import PrivPfC, Publisher
from sfumato.privacy import NANO, Exact, Meter, Seeded
from sfumato.records import Coding, read_records
from sfumato.tables import Categorical, Numeric, PrivacyUnit, Schema
from sfumato.tables import open as open_table
from sfumato.testing import Tape, replay, reveal

COLUMNS = {"age": Numeric(0, 80, bins=8), "sex": Categorical(["F", "M"]), "ill": Categorical(["no", "yes"])}
OWNED = Schema(COLUMNS, PrivacyUnit(person="who", rows_per_person=2))
PLAIN = Schema(COLUMNS)


class Hostile:
    def __str__(self):
        raise RuntimeError("private")

    __eq__ = __ne__ = __hash__ = None


def table(who):
    n = len(who)
    return pd.DataFrame({"age": np.arange(n) % 80, "sex": "F", "who": pd.Series(list(who), dtype=object)})


def counted(who, y):
    """The exact class counts that reach the noise."""
    tape = Tape(0)
    model = c.Majority(epsilon=1, schema=OWNED, target="ill", source=tape).fit(table(who), y)
    return tape.calls[0].exact.tolist(), model


def test_rows_without_a_person_do_not_count():
    who = ["ann", None, float("nan"), pd.NA, pd.NaT, "bob", None, None]
    assert counted(who, ["no"] * 8)[0] == [2, 0]


def test_a_person_has_as_many_rows_as_the_unit_allows_whatever_the_others_have():
    assert counted(["ann"] * 5, ["no", "yes", "no", "no", "no"])[0] == [1, 1]
    assert counted([1, 1.0, np.float32(1), "1", 2], ["no"] * 5)[0] == [3, 0]  # one person by four names, and another


def test_a_row_that_cannot_count_takes_no_place():
    assert counted(["ann"] * 5, [None, "?", "no", None, "yes"])[0] == [1, 1]


NAMES = {
    "no text": Hostile(),
    "list": [1, 2],
    "mapping": {},
    "long number": 10**5000,
    "half a character": "\ud800",
    "array": np.array([1, 2]),
    "complex": complex("nan"),
}


@pytest.mark.parametrize("value", NAMES.values(), ids=list(NAMES))
def test_no_name_of_a_person_makes_a_difference_to_the_others(value):
    others = ["ann", "bob", "ann", "bob", "eve"]
    y = ["no", "yes", "no", "yes", "no"]
    (no, yes), _ = counted([*others, value], [*y, "yes"])
    assert [no, yes] in ([3, 2], [3, 3])


def test_the_records_say_how_many_rows_a_person_may_own():
    frame = table(["ann", "bob"]).assign(ill="no")
    assert Coding.of(OWNED, target="ill").records(frame, frame["ill"]).rows_per_person == 2
    assert Coding.of(PLAIN, target="ill").records(frame, frame["ill"]).rows_per_person == 1
    opened = open_table(frame, schema=OWNED)
    attributes = Coding.of(OWNED, target="ill").attributes
    assert read_records(opened, attributes, "ill").rows_per_person == 2


def test_a_meter_that_prices_fewer_rows_is_refused_before_the_table_is_read():
    frame = table(["ann", "bob"] * 50).assign(ill=["no", "yes"] * 50)
    with pytest.raises(PrivacyError, match="one person may own 2 rows"):
        PrivPfC(epsilon=1, target="ill").fit(frame, schema=OWNED, meter=Meter(source=Seeded(0)))
    model, coding = c.Majority(epsilon=1), Coding.of(OWNED, target="ill")
    model._coding = coding
    with pytest.raises(PrivacyError, match="one person may own 2 rows"):
        model._train(coding.records(frame, frame["ill"]), Meter(source=Seeded(0)))


# Noise on coefficients has tests of its own (test_erm_privacy), and a search takes one row per person.
COUNTING = sorted(set(c.__all__) - {"OutputPerturbation", "PrivateLogisticRegression", "PrivateSVM", "PrivateSearch"})


@pytest.mark.parametrize("name", COUNTING)
def test_two_rows_each_cost_an_estimator_half_of_its_rates(name):
    """The neighbour lacks a person with two rows: all calls together lose no more than epsilon."""
    rng = np.random.default_rng(1)
    who = [*np.repeat(np.arange(20), 2), "eve", "eve"]
    frame, y = table(who), rng.choice(["no", "yes"], 42).tolist()

    def fit(rows, source):
        model = getattr(c, name)(epsilon=3, schema=OWNED, target="ill", source=source)
        return model.fit(frame.head(rows), y[:rows]).guarantee_

    found = replay(fit, 42, 40, source=2)
    guarantee = found.published[0]
    assert guarantee.rows_per_person == 2
    assert guarantee.nano <= 3 * NANO
    assert found.loss <= guarantee.nano * (1 + 1e-12)


def test_who_asks_for_more_than_epsilon_is_refused():
    frame = table(["ann", "bob"]).assign(ill="no")

    class Greedy(c.Majority):
        def _train(self, records, meter):
            meter.laplace(records.map(lambda r: [r.total]), rate=NANO // 2 + 1, label="too much for two rows each")

    with pytest.raises(BudgetError):
        Greedy(epsilon=1, schema=OWNED, target="ill").fit(frame, frame["ill"])

    class GreedyPublisher(Publisher):
        mechanism = "greedy"

        def release(self, records, task, meter):
            meter.laplace(records.map(lambda r: [r.total]), rate=NANO // 2 + 1)

    with pytest.raises(BudgetError):
        GreedyPublisher(epsilon=1, target="ill").fit(frame, schema=OWNED)


def test_a_forest_sends_records_where_the_meter_dealt_them():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 80, 300), rng.integers(2, size=300)
    frame = pd.DataFrame({"age": X, "sex": "F"})
    parts = []
    for seed in (1, 2):
        tape = Tape(seed)
        forest = c.PrivateForest(epsilon=1, schema=PLAIN, target="ill", trees=3, depth=0, rows=300, source=tape)
        forest.fit(frame, np.where(y == 1, "yes", "no"))
        (deal,) = [call for call in tape.calls if call.kind == "deal"]
        assert deal.exact == 300
        assert deal.public["parts"] == 3
        leaves = [call.exact.tolist() for call in tape.calls if call.label == "class counts of a leaf"]
        assert leaves == [np.bincount(y[deal.answer == tree], minlength=2).tolist() for tree in range(3)]
        parts.append(deal.answer.tolist())
    assert parts[0] != parts[1]


def test_what_public_facts_refuse_is_refused_before_a_value_is_read():
    frame = table(["ann", "bob"]).assign(ill="no")
    model = c.Majority(epsilon=1, schema=PLAIN, target="ill")
    with pytest.raises(InputError, match="different lengths"):
        model.fit(frame, ["no"])
    with pytest.raises(InputError, match="no column 'sex'"):
        model.fit(frame.drop(columns="sex"), ["no", "no"])
    with pytest.raises(InputError, match="data frame with that column"):
        c.Majority(epsilon=1, schema=OWNED, target="ill").fit(frame.drop(columns="who"), ["no", "no"])


def test_the_number_of_records_is_no_longer_anybodys_to_use():
    records = Exact(reveal(Coding.of(PLAIN, target="ill").records(np.zeros((3, 2)), ["no"] * 3)))
    for look in (lambda r: r.total, lambda r: len(r), lambda r: r.classes.size, lambda r: r.table(())):
        with pytest.raises((AttributeError, PrivacyError)):
            look(records)


@pytest.mark.parametrize("name", COUNTING)
def test_fits_of_one_table_are_added_up_for_whoever_fits_twice(name):
    frame = table(["ann", "bob"] * 20)
    model = getattr(c, name)(epsilon=3, schema=PLAIN, target="ill").fit(frame, ["no", "yes"] * 20)
    with pytest.warns(PrivacyWarning, match=f"2 private fits of one {name}"):
        model.fit(frame, ["no", "yes"] * 20)
