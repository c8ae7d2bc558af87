"""What a release is charged to the attributes: against every neighbour that differs in one column of one person."""

import itertools
import json
from dataclasses import replace

import pandas as pd
import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.cli import app
from sfumato.errors import BudgetError, InputError, PrivacyError
from sfumato.ledger import Ledger
from sfumato.offers import Facts, Request
from sfumato.privacy.terms import Terms
from sfumato.registry import Parameter
from sfumato.releases import attribute_charges as rule
from sfumato.releases import kinds
from sfumato.releases.attribute_charges import attribute_charges, columns_shown
from sfumato.releases.batch import load, preview, release
from sfumato.releases.pipeline import price
from sfumato.releases.plan import parse_request
from sfumato.testing import Tape, compare
from support import clinic

COLUMNS = {
    "age": sf.Numeric(0, 4, bins=2, integer=True),
    "ward": sf.Categorical(["A", "B"]),
    "ill": sf.Categorical(["no", "yes"]),
}
SCHEMA = sf.Schema(COLUMNS)
ONE = Facts(SCHEMA, rows=2)
VALUES = {"age": [0, 4], "ward": ["A", "B"], "ill": ["no", "yes"]}
ROWS = pd.DataFrame(
    {"age": [0, 4], "ward": ["A", "B"], "ill": ["no", "yes"], "person": [1, 2], "tier": ["open", "strict"]},
)
TIERS = {"open": 1.0, "strict": 0.25}

# Requests of every kind that prices by counting, with what each of them shows.
ASKED: list[tuple[str, dict, set[str]]] = [
    ("count", {}, set()),
    ("count", {"where": "ward = 'A' and age >= 1"}, {"ward", "age"}),
    ("sum", {"column": "age", "where": "ill = 'yes'"}, {"age", "ill"}),
    ("mean", {"column": "age"}, {"age"}),
    ("histogram", {"columns": ["ward"], "mechanism": "identity"}, {"ward"}),
    ("histogram", {"columns": ["age", "ill"], "where": "ward = 'A'"}, {"age", "ill", "ward"}),
    ("count", {"by": ["ward"], "where": "age > 1"}, {"ward", "age"}),
    ("mean", {"column": "age", "by": ["ill"], "where": "ward = 'A'"}, {"ward", "age", "ill"}),
    ("variance", {"column": "age", "where": "ward = 'A'"}, {"age", "ward"}),
    ("proportion", {"where": "ward = 'A'", "of": "ill = 'yes'"}, {"ward", "ill"}),
    ("quantile", {"column": "age", "quantiles": [0.25, 0.5], "where": "ill = 'no'"}, {"age", "ill"}),
    ("median", {"column": "age", "by": ["ward"]}, {"age", "ward"}),
    ("min", {"column": "age"}, {"age"}),
    ("table", {"columns": ["ward", "ill"], "where": "age > 1"}, {"age", "ward", "ill"}),
    ("top", {"column": "ward", "k": 1}, {"ward"}),
    ("profile", {"column": "ward", "catalogue": {"A": ["old"], "B": ["new", "big"]}}, {"ward", "old", "new", "big"}),
    ("model", {"target": "ill", "attributes": ["ward"], "mechanism": "naive-bayes", "where": "age > 1"}, {*VALUES}),
    ("synthesize", {"target": "ill", "attributes": ["ward"], "mechanism": "uniform-grid"}, {"ill", "ward"}),
    ("synthesize", {"target": "ill", "mechanism": "privbayes"}, {"ill", "ward", "age"}),
]


def neighbours(rows, column):
    """Every table in which one person has other values of one column, and nothing else differs."""
    owned = list(rows.groupby("person").groups.values())
    for places in owned[: 3 - len(owned[0])]:  # whoever has several rows has many neighbours
        for values in itertools.product(VALUES[column], repeat=len(places)):
            other = rows.copy()
            other.loc[places, column] = list(values)
            if not other.equals(rows):
                yield other


def losses(rows, kind, asked, facts=ONE):
    """For each column the largest loss to a neighbour that differs in it, and what it is charged, in nano-ε."""
    priced = price(parse_request({"name": "r", "kind": kind, **asked}, "the request"), facts)
    shown = columns_shown(priced.request, priced.facts)

    def run(table, tape):
        opened = sf.tables.open(table, schema=facts.schema, budgets=priced.facts.roster)
        return sf.releases.pipeline.run(priced, replace(opened, roster_only=True).limited_to(shown), source=tape)

    tape = Tape(3)
    run(rows, tape)
    found = {}
    for column in VALUES:
        found[column] = 0
        for other in neighbours(rows, column):
            again = tape.again()
            run(other, again)
            found[column] = max(found[column], sum(call.loss for call in compare(tape, again)))
    return found, attribute_charges(priced)


@pytest.mark.parametrize(("kind", "asked", "shown"), ASKED)
def test_no_neighbour_loses_more_than_its_attribute_is_charged(kind, asked, shown):
    found, charged = losses(ROWS, kind, {"epsilon": 1, **asked})
    assert set(charged) == shown
    for column, loss in found.items():
        assert loss <= charged.get(column, 0) + 1, (column, loss)


def test_the_bounds_are_reached_so_none_of_them_could_be_smaller():
    found, charged = losses(ROWS, "histogram", {"epsilon": 1, "columns": ["ward"], "mechanism": "identity"})
    assert found["ward"] == charged["ward"] == 2 * 10**9  # it leaves one cell and enters another
    found, charged = losses(ROWS, "count", {"epsilon": 1, "where": "ward = 'A'"})
    assert found["ward"] == charged["ward"] == 10**9


def test_people_with_several_rows_whose_rows_enter_and_leave():
    schema = sf.Schema(COLUMNS, unit=sf.PrivacyUnit(person="person", rows_per_person=2))
    rows = pd.concat([ROWS, ROWS.assign(ward=["B", "A"], age=[4, 0])], ignore_index=True)
    for kind, asked, _ in (ASKED[1], ASKED[2], ASKED[5]):
        found, charged = losses(rows, kind, {"epsilon": 1, **asked}, Facts(schema, rows=4))
        assert all(loss <= charged.get(column, 0) + 2 for column, loss in found.items()), (kind, found, charged)


def test_people_of_whose_rows_others_may_count():
    """Other values in the condition let one row of a person go and another one come: two cells of a histogram show it."""
    schema = sf.Schema(COLUMNS, unit=sf.PrivacyUnit(person="person", rows_per_person=1))
    rows = pd.concat([ROWS, ROWS.assign(ward=["B", "A"], ill=["yes", "no"], age=[4, 0])], ignore_index=True)
    facts = Facts(schema, rows=2)
    found, charged = losses(rows, "histogram", {"epsilon": 1, "columns": ["ill"], "where": "ward = 'A'"}, facts)
    assert found["ward"] == charged["ward"] == 2 * 10**9
    assert found["ill"] == charged["ill"] == 2 * 10**9
    found, charged = losses(rows, "count", {"epsilon": 1, "where": "ward = 'A'"}, facts)
    assert found["ward"] == charged["ward"] == 10**9


def test_people_with_budgets_of_their_own():
    roster = sf.Roster.tiers(TIERS, column="tier", counts={"open": 1, "strict": 1})
    facts = Facts(SCHEMA, roster.head_counts(), roster, 2)
    for kind, asked, _ in ASKED[1:6]:
        asked = {key: value for key, value in asked.items() if key != "mechanism"}
        found, charged = losses(ROWS, kind, {"share": 1, **asked}, facts)
        assert all(loss <= charged.get(column, 0) + 2 for column, loss in found.items()), (kind, found, charged)
        assert charged["tier"] == 2 * 10**9  # budgets are read from it


# --- what is shown -----------------------------------------------------------------------------------------------------


def test_every_kind_is_tried():
    assert {kind for kind, _, _ in ASKED} | {"max"} == set(kinds.all_kinds())


def test_no_key_of_any_kind_can_name_a_column_unseen(monkeypatch):
    odd = kinds.Kind("odd", "", (Parameter("crossed", "any", ""), Parameter("of", "text", "")), lambda *_: [])
    known = {**kinds.all_kinds(), "odd": odd}
    monkeypatch.setattr(rule, "all_kinds", lambda: known)
    facts = Facts(SCHEMA)
    given = {"crossed": [{"age": ["x"]}], "of": "ward = 'A'", "title": "not a column"}
    assert columns_shown(Request("r", "odd", parameters=given), facts) == {"age": False, "ward": False}
    assert columns_shown(Request("r", "odd", where="ill = 'yes'"), facts) == {"ill": False}  # it may do more than leave out
    assert columns_shown(Request("r", "count", where="ill = 'yes'"), facts) == {"ill": True}
    for kind in kinds.all_kinds().values():
        for parameter in kind.parameters:
            if parameter.type in ("text", "texts") and not parameter.choices:
                value = "age" if parameter.type == "text" else ["age"]
                assert "age" in columns_shown(Request("r", kind.name, parameters={parameter.name: value}), facts)
            if parameter.name == "attributes":
                assert set(columns_shown(Request("r", kind.name), facts)) == set(SCHEMA.names)


def test_replacement_costs_the_price_once():
    terms = Terms(neighbours="replacement").up_to(sf.privacy.Charge.of(1))
    offer = sf.offers.Offer("m", terms, None, "", lambda *_: None)
    request = Request("r", "histogram", parameters={"columns": ["age"]}, where="ward = 'A'")
    priced = sf.releases.pipeline.Priced(request, Facts(SCHEMA), (offer,), offer)
    assert attribute_charges(priced) == {"age": 10**9, "ward": 10**9}


def test_a_release_cannot_read_what_it_is_not_charged_for():
    opened = sf.tables.open(ROWS, schema=SCHEMA)
    limited = opened.limited_to(["ward"])
    limited.counts("ward")
    limited.check()
    for read in (lambda: limited.count("age > 1"), lambda: limited.counts(["ward", "ill"]), lambda: limited.sum("age")):
        with pytest.raises(PrivacyError, match="nothing was charged to it"):
            sf.privacy.Meter(source=sf.Seeded(1)).laplace(read(), rate=10**9)


# --- through a plan ----------------------------------------------------------------------------------------------------

CAPS = clinic.UNIFORM.replace("epsilon = 1.0", "epsilon = 1.0\nattributes = { age = 0.5, ward = 0.9, sex = 0.1 }")


def test_a_plan_is_charged_to_what_it_shows(tmp_path):
    path = clinic.make(tmp_path, CAPS)
    seen = preview(load(path))
    assert [p.foreseen.refusal for p in seen] == [None, None]
    assert attribute_charges(seen[0]) == {"age": 400_000_000}
    said = json.loads(CliRunner().invoke(app, ["preview", str(path), "--json"]).stdout)
    assert [r["attributes"] for r in said["releases"]] == [{"age": "0.4"}, {"ward": "0.8"}]
    assert "charged to attributes: ward 0.8" in CliRunner().invoke(app, ["preview", str(path)]).stdout
    done = release(load(path), source=sf.Seeded(1))
    assert done[1].certificate["charged"]["attributes"] == {"ward": "0.8"}
    ledger = Ledger.open(tmp_path / "clinic.ledger")
    spent = {limit.name: limit.spent for limit in ledger.balance("clinic").attributes}
    assert spent == {"age": 400_000_000, "ward": 800_000_000, "sex": 0}
    ledger.verify("clinic")
    path.write_text(CAPS.replace("age >= 65", "age >= 66").replace('"over65"', '"over66"'))
    assert "attribute 'age'" in preview(load(path))[0].foreseen.refusal
    with pytest.raises(BudgetError, match="attribute 'age'"):
        release(load(path), only="over66", source=sf.Seeded(1))


@pytest.mark.parametrize(("cap", "match"), [("aeg", "did you mean 'age'"), ("nothing like it", "no release can show")])
def test_a_cap_on_nothing_is_refused(tmp_path, cap, match):
    path = clinic.make(tmp_path, CAPS.replace("age = 0.5", f'"{cap}" = 0.5'))
    with pytest.raises(InputError, match=match):
        preview(load(path))
    assert not (tmp_path / "clinic.ledger").exists()


def test_a_cap_on_the_person_is_refused():
    schema = sf.Schema(COLUMNS, unit=sf.PrivacyUnit(person="person", rows_per_person=2))
    with pytest.raises(InputError, match="whose row it is"):
        rule.check_capped(["person"], schema, None, ())
