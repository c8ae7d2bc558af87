"""How publishers are asked: one convention, one registry; what public facts rule out is refused before any charge."""

import dataclasses
import inspect
from dataclasses import dataclass

import pandas as pd
import pytest

import sfumato as sf
from sfumato import grids
from sfumato.classifiers import PrivateLogisticRegression, PrivateNaiveBayes
from sfumato.errors import BudgetError, InputError, SfumatoError
from sfumato.grids import PPH, DiffGen, Network, PrivBayes, PrivPfC, Publisher, Synopsis, UniformGrid, preview_synthesize
from sfumato.grids.publishers.settings import MOST_CELLS
from sfumato.grids.publishers.task import Task
from sfumato.privacy import Meter, PersonBudgets, Seeded
from sfumato.registry import Mechanism, forget, mechanisms, register
from sfumato.tables import open as open_table
from support import grids as helpers

PUBLISHERS = (PrivPfC, DiffGen, PPH, PrivBayes, UniformGrid)


def opened(**more):
    return sf.open(helpers.frame(), **{"schema": helpers.schema(), "epsilon": 10, "noise": sf.Seeded(1), **more})


# --- one convention ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PUBLISHERS)
def test_publishers_share_one_fit_and_one_constructor(kind):
    assert issubclass(kind, Publisher)
    assert "fit" not in vars(kind)
    assert {"target", "epsilon", "rows", "attributes"} <= set(inspect.signature(kind).parameters)
    assert all(p.kind is p.KEYWORD_ONLY for p in inspect.signature(kind).parameters.values())


@pytest.mark.parametrize("kind", PUBLISHERS)
def test_the_registry_knows_every_parameter_with_its_default(kind):
    (entry,) = (m for m in mechanisms("synthesize") if m.make is kind)
    assert entry.name == kind.mechanism
    common = {f.name for f in dataclasses.fields(Publisher)}
    own = {f.name: f.default for f in dataclasses.fields(kind) if f.init and f.name not in common}
    assert {p.name: p.default for p in entry.parameters} == own
    assert entry.paper
    assert all(p.help for p in entry.parameters)
    assert ("one epsilon" in entry.needs) == (not kind.personal)


@pytest.mark.parametrize("name", grids.__all__)
def test_public_names_are_documented(name):
    found = getattr(grids, name)
    if inspect.isclass(found):
        assert "Parameters" in found.__doc__ or "Attributes" in found.__doc__
    elif callable(found):
        assert "Parameters" in found.__doc__
        assert "Returns" in found.__doc__


@pytest.mark.parametrize("kind", [DiffGen, PPH, PrivBayes, UniformGrid])
def test_who_cannot_weigh_people_says_so(kind):
    with pytest.raises(InputError, match="personal budgets"):
        kind(target="ill", budgets=PersonBudgets.of([1.0]))
    with pytest.raises(InputError, match="positive"):
        kind(target="ill", epsilon=1, rows=0)
    frame = helpers.frame(60).assign(consent="open")
    roster = sf.Roster.tiers({"open": 1.0}, column="consent", counts={"open": 60})
    table = sf.open(frame, schema=helpers.schema(), budgets=roster, ledger=":memory:")
    with pytest.raises(InputError, match="personal budgets"):
        table.synthesize(target="ill", share=0.5, mechanism=kind.mechanism)
    assert [o.mechanism for o in table.preview("synthesize", target="ill", share=0.5)] == ["privpfc", "marginals"]


# --- offers -------------------------------------------------------------------------------------------------------------


def test_the_named_mechanism_gets_its_parameters_and_nobody_else():
    table = opened()
    made = table.synthesize(target="ill", epsilon=1, mechanism="diffgen", parameters={"steps": 3})
    assert made.parameters["steps"] == 3
    made = table.synthesize(target="ill", epsilon=1, mechanism="uniform-grid", parameters={"rule": "ug"})
    assert made.parameters["rule"] == "ug"
    made = table.synthesize(
        target="ill", epsilon=1, mechanism="privbayes", parameters={"degree": 1, "encoding": "vanilla", "select": 0.5}
    )
    assert {k: made.parameters[k] for k in ("degree", "encoding", "select")} == {
        "degree": 1,
        "encoding": "vanilla",
        "select": 0.5,
    }
    with pytest.raises(InputError, match="steps"):
        table.synthesize(target="ill", epsilon=1, mechanism="pph", parameters={"steps": 3})
    with pytest.raises(InputError, match="name the mechanism"):
        preview_synthesize(schema=helpers.schema(), target="ill", epsilon=1, parameters={"grids": 1})


@pytest.mark.parametrize("rows", [None, 3000])
@pytest.mark.parametrize("kind", [DiffGen, PPH, PrivBayes, UniformGrid])
def test_the_preview_of_a_rival_states_the_noise_of_its_release(kind, rows):
    offers = preview_synthesize(schema=helpers.schema(), target="ill", epsilon=1, rows=rows)
    (offer,) = (o for o in offers if o.mechanism == kind.mechanism)
    made = kind(epsilon=1, target="ill", rows=rows).fit(helpers.frame(), schema=helpers.schema(), source=Seeded(2)).synopsis
    assert offer.expected_rmse == pytest.approx(made.expected_rmse, rel=1e-6)


def test_the_preview_of_bits_states_their_noise_once_the_number_of_records_is_public():
    asked = {"schema": helpers.schema(), "target": "ill", "epsilon": 1, "mechanism": "privbayes"}
    known = preview_synthesize(rows=3000, parameters={"encoding": "gray"}, **asked)
    unknown = preview_synthesize(parameters={"encoding": "gray"}, **asked)
    made = PrivBayes(epsilon=1, target="ill", rows=3000, encoding="gray")
    released = made.fit(helpers.frame(), schema=helpers.schema(), source=Seeded(2)).synopsis
    by_name = [{o.mechanism: o.expected_rmse for o in found}["privbayes"] for found in (known, unknown)]
    assert by_name == [pytest.approx(released.expected_rmse, rel=1e-6), None]


def test_a_publisher_from_outside_is_offered_and_released():
    @dataclass(kw_only=True, eq=False)
    class ClassCounts(Publisher):
        mechanism = "class-counts"

        def release(self, records, task, meter):
            rate = self._budget(meter.rows_per_person)
            return self._publish(records, task, meter, cuts=(), rate=rate, size=None, parameters={})

    register(Mechanism("class-counts", ("synthesize",), ClassCounts, "class counts", needs=("one epsilon",)))
    try:
        table = opened()
        assert [o.mechanism for o in table.preview("synthesize", target="ill", epsilon=1)][-1] == "class-counts"
        made = table.synthesize(target="ill", epsilon=1, mechanism="class-counts")
        assert made.counts.sum() == pytest.approx(3000, abs=50)
        assert table.synthesize(target="ill", epsilon=1, mechanism="class-counts").repeated
    finally:
        forget("class-counts")


# --- public sizes -------------------------------------------------------------------------------------------------------

MANY = sf.Schema({f"c{i}": sf.Categorical(["a", "b"]) for i in range(200)} | {"ill": sf.Categorical(["no", "yes"])})
MORE = sf.Schema({f"c{i}": sf.Categorical(["a", "b"]) for i in range(300)} | {"ill": sf.Categorical(["no", "yes"])})
HUGE = sf.Schema({"x": sf.Numeric(0, 1, bins=1_000_000), "ill": sf.Categorical(["no", "yes"])})
FINE = sf.Schema({"x": sf.Numeric(0, 1, bins=100_000), "y": sf.Numeric(0, 1, bins=35_000)})


@pytest.mark.parametrize(
    ("schema", "epsilon", "mechanism", "parameters", "told"),
    [
        (MANY, 1, "privbayes", {}, "1,353,400 candidates"),
        (HUGE, 1, "auto", {}, "1,000,002 cells"),
        (MORE, 1, "marginals", {}, "45,150 pairs"),
        (helpers.schema(), 1e-5, "marginals", {}, "too small"),
        (helpers.schema(), 1, "privbayes", {"score": "F"}, "binary"),
        (helpers.schema(), 1, "privpfc", {"most": 2.5}, "pool"),
        (helpers.schema(), 1, "privpfc", {"most": "lots"}, "pool"),
        (helpers.schema(), 1, "privpfc", {"split": ["a", "b", "c"]}, "split"),
        (helpers.schema(), 1, "privpfc", {"split": [0.5, 0.5]}, "split"),
        (helpers.schema(), 1, "privpfc", {"cells": "many"}, "cells"),
        (helpers.schema(), 1, "privpfc", {"widest": 0}, "widest"),
        (helpers.schema(), 1, "privpfc", {"grids": 3}, "grids"),
        (helpers.schema(), 1e-6, "diffgen", {"steps": 1000}, "too small"),
        (helpers.schema(), 1e-7, "pph", {}, "too small"),
        (helpers.schema(), 1e-8, "privpfc", {}, "too small"),
    ],
)
def test_what_public_facts_rule_out_is_refused_in_the_preview(schema, epsilon, mechanism, parameters, told):
    """Of a table that does not exist: nothing can have been read, and the ledger is untouched."""
    table = sf.open("nowhere.parquet", schema=schema, epsilon=1, ledger="sqlite://", name="nowhere")
    asked = {"target": "ill", "epsilon": epsilon, "mechanism": mechanism, "parameters": parameters}
    with pytest.raises(InputError, match=told):
        table.preview("synthesize", **asked)
    with pytest.raises(InputError, match=told):
        table.release("synthesize", **asked)


def test_others_that_cannot_are_left_out_of_the_preview():
    found = preview_synthesize(schema=MANY, target="ill", epsilon=1)
    assert [o.mechanism for o in found] == ["privpfc", "diffgen", "pph", "marginals", "uniform-grid"]
    with pytest.raises(InputError, match="too small"):
        preview_synthesize(schema=helpers.schema(), target="ill", epsilon=1e-8)


@pytest.mark.parametrize("kind", [PrivPfC, DiffGen, PPH, PrivBayes, UniformGrid])
def test_fine_domains_stay_within_the_counts_that_a_release_may_have(kind):
    """100,000 bins by 35,000 classes are 3.5e9 counts: nothing may count them all."""
    frame = pd.DataFrame({"x": [0.1, 0.4, 0.9] * 30, "y": [0.2, 0.8, 0.5] * 30})
    options = {"grids": 1, "most": 50} if kind is PrivPfC else {}
    made = kind(epsilon=1, target="y", rows=10**9, **options).fit(frame, schema=FINE, source=Seeded(1)).synopsis
    counts = made.tables if isinstance(made, Network) else [made.noisy]
    assert sum(table.size for table in counts) <= MOST_CELLS
    assert len(made.sample(10)) == 10


# --- tables that keep a ledger ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PUBLISHERS)
def test_fitting_on_an_opened_table_charges_its_ledger(kind):
    table = opened()
    model = kind(epsilon=2, target="ill").fit(table)
    assert table.balance().total.spent == 2 * 10**9
    assert isinstance(model.synopsis, Network if kind is PrivBayes else Synopsis)
    assert model.synopsis.receipt is not None
    assert len(model.sample(30)) == 30
    # The same question, asked either way, was paid for.
    assert table.synthesize(target="ill", epsilon=2, mechanism=kind.mechanism).repeated
    assert kind(epsilon=2, target="ill").fit(table).synopsis.repeated
    assert table.balance().total.spent == 2 * 10**9


def test_parameters_and_conditions_reach_the_ledger():
    table = opened(rows=3000)
    made = PrivPfC(
        epsilon=1, target="ill", attributes=["age", "sex"], grids=1, widest=None, split=(0.1, 0.4, 0.5), rows=3000
    )
    found = made.fit(table, where="age >= 20").synopsis
    assert [a.name for a in found.attributes] == ["age", "sex"]
    assert found.parameters["split"] == [0.1, 0.4, 0.5]
    assert found.parameters["widest"] is None
    asked = found.receipt.certificate["asked"]
    assert asked["where"] == "age >= 20"
    assert asked["widest"] == "all"
    assert "most" not in asked
    assert found.counts.sum() == pytest.approx(2250, rel=0.1)  # three quarters of the table


def test_an_opened_table_brings_its_own_schema_noise_roster_and_head_count():
    table = opened()
    model = PrivPfC(epsilon=1, target="ill")
    for name, value in {"schema": helpers.schema(), "source": Seeded(1), "meter": Meter()}.items():
        with pytest.raises(InputError, match=f"leave out `{name}`"):
            model.fit(table, **{name: value})
    with pytest.raises(InputError, match="rows="):
        PrivPfC(epsilon=1, target="ill", rows=10).fit(table)
    with pytest.raises(InputError, match="share="):
        PrivPfC(target="ill", budgets=PersonBudgets.of([1.0])).fit(table)
    with pytest.raises(BudgetError):
        PrivPfC(epsilon=11, target="ill").fit(table)
    assert table.balance().total.spent == 0


def test_a_publisher_that_no_ledger_could_record_is_refused():
    class Own(PrivPfC):
        pass

    table = opened()
    with pytest.raises(InputError, match="not a registered mechanism"):
        Own(epsilon=1, target="ill").fit(table)
    assert table.balance().total.spent == 0
    assert Own(epsilon=1, target="ill").fit(table.dataset, source=Seeded(1)).synopsis.receipt is None


def test_the_message_about_a_missing_schema_is_true():
    with pytest.raises(InputError, match=r"sfumato\.open") as told:
        PrivPfC(epsilon=1, target="ill").fit(helpers.frame())
    assert "schema=" in str(told.value)
    described = open_table(helpers.frame(), schema=helpers.schema())
    assert PrivPfC(epsilon=1, target="ill").fit(described, source=Seeded(1)).synopsis.receipt is None


@pytest.mark.parametrize("model", [PrivateNaiveBayes(epsilon=1), PrivateLogisticRegression(epsilon=1)])
def test_classifiers_say_what_an_opened_table_can_do_for_them(model):
    table = opened()
    with pytest.raises(InputError, match="synthesize"):
        model.fit(table, ["no"] * 3000)
    with pytest.raises(InputError, match="PrivPfC"):
        model.fit(table.dataset, ["no"] * 3000)
    made = table.synthesize(target="ill", epsilon=2)
    with pytest.raises(InputError, match="data frame"):
        made.classifier().predict(table)
    with pytest.raises(SfumatoError, match="synthesize"):
        PrivateNaiveBayes(epsilon=1, schema=helpers.schema(), target="ill").fit(
            helpers.frame().drop(columns="ill"), helpers.frame()["ill"]
        ).predict(table)


def test_a_task_needs_a_target_with_classes():
    with pytest.raises(InputError, match="two classes"):
        Task.of(sf.Schema({"x": sf.Categorical(["a"]), "y": sf.Categorical(["a", "b"])}), "x")
