"""What a release costs the person who leaves is what that person is charged, is promised and granted: end to end.

The price fuzz in small, and plans in which the person who leaves owns as many rows as count, all at the edge of what they
can do: there the price is attained, so whatever is forgotten on the way (rows, shares, the last decimal) shows.
"""

import json
from dataclasses import replace
from fractions import Fraction

import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import BudgetError, InputError, PrivacyError, SfumatoError
from sfumato.offers import Offer
from sfumato.privacy import Charge, Meter, Seeded, Terms
from sfumato.releases import pipeline, session
from sfumato.releases.pipeline import ledger_charge, price, run
from sfumato.releases.plan import parse_request
from sfumato.tables import open as open_table
from sfumato.testing import LeakError, PricePlan, check_price, price_fuzz
from sfumato.testing.price_plans import KINDS

ROWS = 3
SCHEMA = sf.Schema(
    {
        "age": sf.Numeric(0, 100, bins=4, integer=True),
        "sex": sf.Categorical(["f", "m"]),
        "ill": sf.Categorical(["no", "yes"]),
    },
    unit=sf.PrivacyUnit(person="who", rows_per_person=ROWS),
)
PEOPLE = [f"p{i}" for i in range(12)]
# Closer together than the share is small: with a share that somebody forgets, people get into the wrong group.
GRANTED = {name: Fraction("0.2534567899") if i % 3 else Fraction("0.9876543219") for i, name in enumerate(PEOPLE)}
KEYS = {
    "count": {},
    "sum": {"column": "age"},
    "mean": {"column": "age"},
    "histogram": {"columns": ["age"]},
    "synthesize": {"target": "ill"},
}


def table():
    """Everybody owns as many rows as count; those of a person are alike, so that they all move the same cell."""
    rows = [{"who": who, "age": 100.0, "sex": "f", "ill": "yes"} for who in PEOPLE for _ in range(ROWS)]
    return pd.DataFrame(rows).assign(epsilon=lambda t: [float(GRANTED[who]) for who in t["who"]])


def roster(way):
    if way == "column":
        return sf.Roster.column("epsilon", people=sf.PersonBudgets.of([float(e) for e in GRANTED.values()]))
    if way == "table":
        listed = pd.DataFrame({"who": PEOPLE, "epsilon": [float(e) for e in GRANTED.values()]})
        return sf.Roster.table(listed, person="who", epsilon="epsilon")
    return None


def plan(kind, way, **asked):
    paid = {"epsilon": "0.9"} if way == "one" else {"share": "0.2"}
    return PricePlan(table(), SCHEMA, roster(way), GRANTED, kind, {**KEYS[kind], **paid, **asked}, "p1")


@pytest.mark.parametrize("kind", KINDS)
def test_random_plans_cost_nobody_more_than_their_price(kind):
    found = price_fuzz(trials=3, seed=KINDS.index(kind), kind=kind)
    assert [f.plan.kind for f in found] == [kind] * 3


@pytest.mark.parametrize("way", ["one", "column", "table"])
@pytest.mark.parametrize("kind", KINDS)
def test_three_rows_at_the_edge_cost_the_price_and_no_more(kind, way):
    found = check_price(plan(kind, way), seed=1, files=way == "one")
    assert found.charged > 0
    if kind == "histogram" or (kind, way) == ("count", "one"):  # the worst person is made up: they lose their price
        assert found.loss > 0.9 * found.charged


@pytest.mark.parametrize("way", ["column", "table"])
@pytest.mark.parametrize("mechanism", ["affine", "partition", "minimum"])
def test_weights_by_budget_cost_three_rows_the_price_and_no_more(mechanism, way):
    found = check_price(plan("count", way), mechanism=mechanism, seed=2, files=False)
    assert found.charged * 0.9 < found.loss <= found.charged


def test_the_fuzz_notices_a_price_that_forgets_rows(monkeypatch):
    """A Meter that prices one row where three count: its rates are three times too high."""
    whole = Meter.under.__func__

    def forgetful(cls, terms, **more):
        return whole(cls, replace(terms, rows_per_person=1), **more)

    monkeypatch.setattr(Meter, "under", classmethod(forgetful))
    with pytest.raises(PrivacyError):
        check_price(plan("histogram", "one"), mechanism="identity", files=False)


def test_the_fuzz_notices_a_share_that_only_the_charge_knows(monkeypatch):
    def whole(request, facts, *more):
        return price(replace(request, share=Fraction(1)), facts, *more)

    monkeypatch.setattr(session, "price", whole)
    monkeypatch.setattr(pipeline, "ledger_charge", lambda made: Charge.of_people(ledger_charge(made).people // 5))
    with pytest.raises(LeakError, match="was charged"):
        check_price(plan("count", "column"), mechanism="affine", files=False)


@pytest.mark.parametrize("where", ["details", "warnings", "parameters"])
def test_the_fuzz_notices_an_exact_number_in_what_is_published(monkeypatch, where):
    whole = pipeline.run

    def leaky(priced, dataset, **more):
        result = whole(priced, dataset, **more)
        rows = str(len(dataset.source))
        found = {"details": {"rows": rows}, "warnings": (rows,), "parameters": {"rows": rows}}
        return replace(result, **{where: found[where]})

    monkeypatch.setattr(pipeline, "run", leaky)
    with pytest.raises(LeakError, match="published differently"):
        check_price(plan("count", "one"), files=False)


# --- one object from the schema to the Meter --------------------------------------------------------------------------


def priced(**asked):
    people = sf.PersonBudgets.of([float(e) for e in GRANTED.values()])
    facts = sf.open(table(), schema=SCHEMA, budgets=roster("column"), noise=Seeded(1)).facts
    assert facts.budgets.people == people.people
    return price(parse_request({"name": "r", **asked}, "the request"), facts)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("paid", [{"epsilon": 0.5}, {"share": 0.5}])
def test_every_offer_carries_the_terms_of_its_schema_and_its_price(kind, paid):
    made = priced(kind=kind, **KEYS[kind], **paid)
    for offer in made.offers:
        assert offer.terms.person == "who"
        assert offer.terms.rows_per_person == ROWS
        assert offer.terms.limit is offer.charge
        assert (offer.terms.budgets is None) == ("epsilon" in paid)
        if "share" in paid:
            assert (offer.terms.granted > offer.terms.budgets.levels).all()
            assert ledger_charge(made).people.size == offer.terms.budgets.groups


def test_an_offer_without_a_price_is_none():
    with pytest.raises(InputError, match="no price"):
        Offer("x", Terms(), None, "", run=lambda data, meter: None)


@pytest.mark.parametrize("paid", [{"epsilon": 0.5}, {"share": 0.5}])
def test_a_release_runs_under_its_price(paid):
    """A mechanism that asks for a little more than was charged is refused by the Meter, whatever it asks for."""
    made = priced(kind="count", **paid)
    seen = []

    def greedy(dataset, meter):
        seen.append(meter.terms)
        meter.laplace([1], rate=int(made.chosen.charge.total) // ROWS + 1, label="one nano-ε too many")

    with pytest.raises(BudgetError, match="left for"):
        run(replace(made, chosen=replace(made.chosen, run=greedy)), open_table(table(), schema=SCHEMA), source=Seeded(1))
    assert seen[0].rows_per_person == ROWS
    assert seen[0].limit is made.chosen.charge


def test_certificate_and_ledger_keep_what_was_told(tmp_path):
    opened = sf.open(table(), schema=SCHEMA, epsilon=5, rows=40, ledger=tmp_path / "x.ledger", name="x", noise=Seeded(1))
    made = opened.histogram("age", epsilon=0.5)
    told = {"person": "who", "rows_per_person": ROWS, "neighbours": "absence"}
    assert made.receipt.certificate["held_to"] == told
    assert json.loads(opened.ledger.history("x")[0].request)["held_to"] == told


@pytest.mark.parametrize("error", [InputError("p1 has no age"), KeyError("p1"), BudgetError("left"), MemoryError()])
def test_what_fails_after_the_charge_is_one_sentence_whatever_it_was(monkeypatch, error):
    def broken(dataset, meter):
        raise error

    def spoilt(request, facts, *more):
        made = price(request, facts)
        return replace(made, chosen=replace(made.chosen, run=broken))

    monkeypatch.setattr(session, "price", spoilt)
    opened = sf.open(table(), schema=SCHEMA, epsilon=5, rows=40, ledger=":memory:")
    with pytest.raises(SfumatoError) as caught:
        opened.count(epsilon=0.5)
    assert type(caught.value) is SfumatoError
    assert str(caught.value) == pipeline.FAILED.format(name="count")
    assert caught.value.__context__ is None
    assert [r.state for r in opened.balance().releases] == ["failed"]
