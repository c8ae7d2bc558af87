"""A model as a release: every estimator from an opened table, priced, charged, written and read back."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import sfumato as sf
from sfumato import classifiers
from sfumato.classifiers.offers import PERSONAL_WARNING, Training
from sfumato.classifiers.released import Model
from sfumato.errors import BudgetError, InputError, SchemaError
from sfumato.privacy import NANO, Meter, Seeded
from sfumato.records.coding import Coding
from sfumato.registry import mechanism, mechanisms
from sfumato.testing import replay

NAMES = [m.name for m in mechanisms("model")]
GRIDS = {"privpfc", "diffgen", "pph", "uniform-grid"}
SCHEMA = sf.Schema(
    {
        "age": sf.Numeric(0, 80, bins=8),
        "job": sf.Categorical(["a", "b", "c"], other="else"),
        "visits": sf.Numeric(0, 16, bins=4),
        "ill": sf.Categorical(["no", "yes"]),
    }
)


def patients(n=400, seed=5):
    draw = np.random.default_rng(seed)
    age = draw.uniform(-5, 85, n)
    return pd.DataFrame(
        {
            "age": np.where(draw.random(n) < 0.03, np.nan, age),
            "job": draw.choice(np.array(["a", "b", "c", "zz"], dtype=object), n),
            "visits": draw.integers(0, 16, n).astype(float),
            "ill": np.where(draw.random(n) < np.where(age > 40, 0.85, 0.1), "yes", "no"),
            "consent": np.array(["strict", "open"], dtype=object)[np.arange(n) % 2],
        }
    )


FRAME = patients()


def opened(**more):
    return sf.open(FRAME, **{"schema": SCHEMA, "epsilon": 50, "noise": Seeded(3), "ledger": ":memory:", **more})


def personal(**more):
    roster = sf.Roster.tiers({"strict": 0.5, "open": 2.0}, column="consent", counts={"strict": 200, "open": 200})
    return opened(budgets=roster, epsilon=None, **more)


@pytest.fixture(scope="module")
def one_table():
    return opened()


@pytest.mark.parametrize("name", NAMES)
def test_every_estimator_is_priced_charged_and_comes_back_the_same(name, one_table, tmp_path):
    before = one_table.balance().total.spent
    made = one_table.model(target="ill", estimator=name, epsilon=2)
    assert made.mechanism == name
    assert made.receipt.certificate["charged"]["epsilon"] == "2"
    assert one_table.balance().total.spent - before == 2 * NANO
    # What the Meter added up is what was charged, but for what is lost when a budget is divided among steps.
    assert 0.98 * 2 * NANO <= made.guarantee.nano <= 2 * NANO
    again = one_table.model(target="ill", mechanism=name, epsilon=2)  # the same thing by its other name
    assert again.repeated
    assert one_table.balance().total.spent - before == 2 * NANO
    loaded = sf.load(made.estimator.save(tmp_path / "model"))
    odd = FRAME.assign(job=FRAME["job"].where(FRAME.index % 7 > 0, None))
    for other in (again, loaded, Model.from_dict(json.loads(json.dumps(made.to_dict(), sort_keys=True)))):
        np.testing.assert_array_equal(other.predict(odd), made.predict(odd))
        if hasattr(made.estimator, "predict_proba"):
            np.testing.assert_array_equal(other.predict_proba(odd), made.predict_proba(odd))
    assert loaded.classes_.tolist() == ["no", "yes"]
    assert loaded.guarantee_.nano == made.guarantee.nano
    frame = made.to_frame()
    assert len(frame)
    assert not frame.isna().any().any()
    assert made.plot(Figure().add_subplot()) is not None
    assert "predicts" in dict(made.report_sections())["What the model says"]


@pytest.mark.parametrize("name", NAMES)
def test_parameters_have_the_names_and_defaults_of_the_estimator(name):
    entry = mechanism("model", name)
    made = entry.make()
    known = made.get_params(deep=False)
    if name not in GRIDS:
        assert made.takes_budgets == ("one epsilon" not in entry.needs)
    for parameter in entry.parameters:
        if name in GRIDS:
            continue  # their parameters are those of the publisher, which has tests of its own
        assert parameter.name in known, parameter.name
        assert parameter.default == known[parameter.name], parameter.name


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("tree", {"depth": 2, "criterion": "gini", "prune": False}),
        ("forest", {"trees": 2, "column_share": 0.5, "depth": "auto"}),
        ("additive", {"rounds": 2, "columns_per_term": 1, "cap": 0.4, "candidates": 100}),
        ("naive-bayes", {"temper": 0.5}),
        ("svm", {"regularization": 3.0}),
        ("functional", {"loss": "linear", "groups": 2}),
        ("privlocal", {"rounds": 3, "step": 0.2, "shrink": 0.9, "loss": "svm"}),
        ("privgene", {"rounds": 2, "population": 10, "parents": 3, "radius": 2}),
        ("output-perturbation", {"noise": 2.0}),
        ("privpfc", {"most": 500, "grids": 1, "cleaning": "norm-sub"}),
        ("diffgen", {"steps": 3}),
    ],
)
def test_parameters_reach_the_estimator(name, parameters, monkeypatch):
    made = []
    monkeypatch.setattr(Training, "rehearse", lambda self: made.append(self.estimator()))
    opened().preview("model", target="ill", estimator=name, epsilon=2, parameters=parameters)
    (known,) = (model.get_params(deep=False) for model in made)
    known |= known.get("settings") or {}
    assert {k: known[k] for k in parameters} == parameters


@pytest.mark.parametrize("name", ["naive-bayes", "tree", "additive", "svm"])
def test_a_table_and_a_frame_train_the_same_model(name):
    """The engine's coding is the one in memory: condition, chosen columns, values without a cell, the class `other`."""
    schema = sf.Schema({**SCHEMA.columns, "ill": sf.Categorical(["no"], other="some")})
    made = opened(schema=schema).model(
        target="ill", estimator=name, epsilon=5, where="visits < 12", attributes=["age", "job"]
    )
    rows = FRAME[(FRAME["visits"] < 12) & FRAME["age"].notna()].assign(ill=FRAME["ill"].replace("yes", "some"))
    coded = Coding.of(schema.select(["age", "job", "ill"]), target="ill")
    order = np.lexsort((coded.class_codes(rows["ill"]), *coded.leaves(rows).T[::-1]))
    rows = rows.iloc[order]
    entry = mechanism("model", name)
    model = entry.make(epsilon=5, schema=coded.schema, target="ill", source=Seeded(3)).fit(rows, rows["ill"].to_numpy())
    np.testing.assert_array_equal(made.predict(FRAME), model.predict(FRAME))
    if name != "svm":
        np.testing.assert_array_equal(made.predict_proba(FRAME), model.predict_proba(FRAME))
    assert made.classes_.tolist() == ["no", "some"]


def test_what_public_facts_rule_out_costs_nothing():
    table = opened(epsilon=1)
    wrong = {
        "must be categorical": {"target": "age"},
        "no column 'sick'": {"target": "sick"},
        "cannot be among": {"target": "ill", "attributes": ["age", "ill"]},
        "names a column twice": {"target": "ill", "attributes": ["age", "age"]},
        "did you mean 'naive-bayes'": {"target": "ill", "estimator": "naive_bayes"},
        "mean the same: keep one": {"target": "ill", "estimator": "tree", "mechanism": "forest"},
        "is the name of one": {"target": "ill", "estimator": 3},
        "a whole number from 0 to 30, or 'auto'": {"target": "ill", "estimator": "tree", "parameters": {"depth": 31}},
        "it is a parameter of tree and forest": {"target": "ill", "parameters": {"depth": 3}},
        "unknown key 'dephts'": {"target": "ill", "estimator": "tree", "parameters": {"dephts": 3}},
        "'logistic', 'linear'": {"target": "ill", "estimator": "functional", "parameters": {"loss": "hinge"}},
        "a population holds at least its parents": {
            "target": "ill",
            "estimator": "privgene",
            "parameters": {"population": 2, "parents": 3},
        },
        "no column 'agee'": {"target": "ill", "where": "agee > 3"},
    }
    for message, asked in wrong.items():
        with pytest.raises((InputError, SchemaError), match=message):
            table.model(**{"epsilon": 0.5, **asked})
    for name in ("tree", "additive", "functional", "privpfc"):
        with pytest.raises((InputError, BudgetError), match="too small"):
            table.model(target="ill", estimator=name, epsilon=2e-9)
    with pytest.raises(InputError, match="needs `epsilon`"):
        table.model(target="ill")
    assert table.balance().total.spent == 0


def test_a_model_with_personal_budgets_loses_what_everybody_granted():
    table = personal()
    able = [m.name for m in mechanisms("model") if "one epsilon" not in m.needs]
    for name in able:
        made = table.model(target="ill", estimator=name, share=0.1)
        assert (made.guarantee.people <= np.array([50, 200]) * NANO // 1000).all(), name
        assert made.guarantee.people[1] > made.guarantee.people[0] > 0, name
        assert PERSONAL_WARNING in made.warnings
        assert set(made.predict(FRAME)) <= {"no", "yes"}
    assert [o.mechanism for o in table.preview("model", target="ill", share=0.1)] == able
    everybody = personal().model(target="ill", estimator="tree", share=0.25, parameters={"tiers": "in proportion"})
    assert everybody.warnings == ()
    for name in set(NAMES) - set(able):
        with pytest.raises(InputError, match=f"{name} has one ε for all.* with personal budgets take automatic or"):
            table.model(target="ill", estimator=name, share=0.1)


@pytest.mark.parametrize(("name", "parameters"), [("svm", {}), ("svm", {"budgeting": "partition"}), ("tree", {"depth": 1})])
def test_no_neighbour_of_a_table_with_budgets_loses_more_than_they_granted(name, parameters):
    """The same answers to a table without one person: no step's exact loss passes what was charged to them.

    (Of a sample the price is that of everything that could have been drawn, so one pair of replays says nothing about it.)
    """
    frame = patients(40, seed=2).assign(who=[f"p{i}" for i in range(40)])
    schema = sf.Schema(SCHEMA.columns, unit=sf.PrivacyUnit("who", 1))
    roster = sf.Roster.tiers({"strict": 0.5, "open": 2.0}, column="consent", counts={"strict": 20, "open": 20})

    def release(rows, source):
        table = sf.open(rows, schema=schema, budgets=roster, noise=source)
        model = table.model(target="ill", estimator=name, share=1, parameters=parameters).estimator
        return model.to_portable()[1]

    found = replay(release, here=frame, there=frame.drop(index=0))  # who is strict
    assert found.same_output
    assert found.loss <= 500_000_000


def test_a_person_with_several_rows_pays_for_all_of_them():
    schema = sf.Schema(SCHEMA.columns, unit=sf.PrivacyUnit("who", 3))
    frame = FRAME.assign(who=[f"p{i // 3}" for i in range(len(FRAME))])
    for name in ("svm", "tree", "privpfc"):
        table = sf.open(frame, schema=schema, epsilon=9, noise=Seeded(1))
        made = table.model(target="ill", estimator=name, epsilon=3)
        assert made.guarantee.rows_per_person == 3
        assert 0.98 * 3 * NANO <= made.guarantee.nano <= 3 * NANO


def test_training_on_nobody_reads_nothing(monkeypatch):
    """What is rehearsed before the charge is an empty table: the source is not opened."""
    monkeypatch.setattr("sfumato.tables.dataset.connect", lambda *_, **__: pytest.fail("the table was opened"))
    table = opened()
    assert len(table.preview("model", target="ill", epsilon=1)) == len(NAMES)
    assert table.preview("model", target="ill", epsilon=1, estimator="tree").priced.chosen.mechanism == "tree"


def test_the_meter_refuses_a_training_that_costs_more(monkeypatch):
    """Whatever an estimator does, it cannot spend more than was charged: the release fails and stays spent."""
    honest = Training.estimator

    def greedy(self):
        made = honest(self)
        return made.set_params(epsilon=4) if self.terms.limit.total == 2 * NANO else made

    table = opened(noise=Seeded(1))
    monkeypatch.setattr(Training, "estimator", greedy)
    monkeypatch.setattr(Training, "rehearse", lambda self: None)
    with pytest.raises(BudgetError):
        table.model(target="ill", estimator="majority", epsilon=2)
    assert table.balance().total.spent == 2 * NANO


def test_a_learner_without_budgets_says_so():
    coding = Coding.of(SCHEMA, target="ill")
    with pytest.raises(InputError, match="has one ε for all"):
        classifiers.PrivLocal(schema=SCHEMA, target="ill").learn(
            coding, coding.records(FRAME, FRAME["ill"]), Meter.under(SCHEMA.terms), budgets=sf.PersonBudgets.of([1.0])
        )
