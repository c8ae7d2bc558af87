"""A published table that was written down comes back as what it was: same type, same figures, same use."""

import json
import pickle

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.grids import PPH, DiffGen, Joint, Network, PrivBayes, PrivMarginals, PrivPfC, Synopsis, UniformGrid
from sfumato.grids.published.cuts import ScoreCut
from sfumato.privacy import PersonBudgets, Seeded
from sfumato.results import load_result
from sfumato.tables import Roster
from sfumato.tables import open as open_table
from support import grids as helpers

mpl.use("Agg")


def odd_schema():
    """Every kind of domain: numbers and whole numbers, given edges, a tree over bins, other cells, true and false."""
    return sf.Schema(
        {
            "age": sf.Numeric(0, 79, bins=8, integer=True, taxonomy={"young": [0, 1, 2, 3], "old": [4, 5, 6, 7]}),
            "income": sf.Numeric(edges=[0.0, 10.5, 100.0, 1e6], outside="other"),
            "job": sf.Categorical(["a", "b", "c"], other="rest", taxonomy={"white": ["a", "b"], "blue": ["c"]}),
            "children": sf.Categorical([0, 1, 2]),
            "member": sf.Categorical([False, True]),
            "class": sf.Categorical(["no", "yes", "maybe"]),
        }
    )


def odd_frame(n=1500):
    rng = np.random.default_rng(3)
    age = rng.integers(0, 80, n)
    return pd.DataFrame(
        {
            "age": age,
            "income": rng.choice([3.0, 50.0, 5e4, 9e9], n),
            "job": rng.choice(["a", "b", "c", "x"], n),
            "children": rng.integers(0, 3, n),
            "member": rng.random(n) < 0.5,
            "class": np.where(age > 40, "yes", np.where(rng.random(n) < 0.3, "maybe", "no")),
        }
    )


def binary_tables():
    rng = np.random.default_rng(4)
    schema = sf.Schema({name: sf.Categorical(["n", "y"]) for name in ("a", "b", "c", "ill")})
    return pd.DataFrame(rng.choice(["n", "y"], (900, 4)), columns=list(schema.names)), schema


def plain(make, frame=None, schema=None):
    frame, schema = helpers.frame() if frame is None else frame, schema or helpers.schema()
    return make.fit(frame, schema=schema, source=Seeded(2)).synopsis


def personal():
    frame = helpers.frame(2000)
    frame["epsilon"] = np.where(np.arange(2000) % 4 == 0, 0.3, 1.5)
    table = open_table(frame, schema=helpers.schema(), budgets=Roster.column("epsilon"))
    return PrivPfC(target="ill", budgets=PersonBudgets.of(frame["epsilon"])).fit(table, source=Seeded(3)).synopsis


MADE = {
    "privpfc, one grid": lambda: plain(PrivPfC(epsilon=2, target="ill", grids=1)),
    "privpfc, two grids": lambda: plain(PrivPfC(epsilon=2, target="ill", grids=2, rows=3000)),
    "privpfc, cleaned": lambda: plain(PrivPfC(epsilon=0.5, target="ill", grids=1, cleaning="norm-sub")),
    "privpfc, personal": personal,
    "privpfc, odd domains": lambda: plain(PrivPfC(epsilon=3, target="class", grids=2), odd_frame(), odd_schema()),
    "diffgen": lambda: plain(DiffGen(epsilon=2, target="ill")),
    "diffgen, odd domains": lambda: plain(DiffGen(epsilon=3, target="class"), odd_frame(), odd_schema()),
    "pph": lambda: plain(PPH(epsilon=2, target="ill")),
    "uniform grid": lambda: plain(UniformGrid(epsilon=2, target="ill", rule="ug")),
    "marginals": lambda: plain(PrivMarginals(epsilon=2, target="ill")),
    "marginals, odd domains": lambda: plain(PrivMarginals(epsilon=3, target="class"), odd_frame(), odd_schema()),
    "privbayes, general": lambda: plain(PrivBayes(epsilon=2, target="ill")),
    "privbayes, odd domains": lambda: plain(PrivBayes(epsilon=3, target="class"), odd_frame(), odd_schema()),
    "privbayes, binary": lambda: plain(PrivBayes(epsilon=2, target="ill"), *binary_tables()),
    "privbayes, bits": lambda: plain(PrivBayes(epsilon=2, target="ill", encoding="binary")),
    "privbayes, gray": lambda: plain(PrivBayes(epsilon=2, target="class", encoding="gray"), odd_frame(), odd_schema()),
}


@pytest.mark.parametrize("name", MADE)
def test_a_result_comes_back_from_json_as_what_it_was(name):
    made = MADE[name]()
    written = made.to_dict()
    # A ledger sorts keys: what depends on an order must not be lost with theirs.
    kept = json.dumps(written, sort_keys=True)
    for again in (load_result(written), load_result(json.loads(kept)), pickle.loads(pickle.dumps(made))):
        assert type(again) is type(made)
        assert json.dumps(again.to_dict(), sort_keys=True) == kept
        assert [a.levels.labels for a in again.attributes] == [a.levels.labels for a in made.attributes]
        assert again.to_frame().equals(made.to_frame())
        assert again.guarantee.sentence() == made.guarantee.sentence()
        assert again.expected_rmse == made.expected_rmse
        # The stored table is a function of the figures; other draws are anew.
        assert again.extra_tables()["synthetic"].equals(made.extra_tables()["synthetic"])
        assert again.sample(50).columns.tolist() == made.sample(50).columns.tolist()
        assert (again.sample(50).dtypes == made.sample(50).dtypes).all()
        assert not again.sample(400).equals(again.sample(400))
        for (heading, content), (wanted, expected) in zip(again.report_sections(), made.report_sections(), strict=True):
            assert heading == wanted
            assert content == expected if isinstance(content, str) else content.equals(expected)
        assert again.plot().get_title() == made.plot().get_title()
        mpl.pyplot.close("all")
    if not isinstance(made, Network):
        fresh = odd_frame(300) if made.target == "class" else helpers.frame(300, seed=9)
        assert (load_result(written).classifier().predict(fresh) == made.classifier().predict(fresh)).all()
        assert "two grids" not in name or isinstance(made.cuts[-1], ScoreCut)


def test_draws_of_a_private_result_cannot_be_foreseen_and_those_of_an_experiment_repeat():
    experiment = plain(PrivPfC(epsilon=2, target="ill", grids=1)).to_dict()
    first, second = load_result(experiment), load_result(experiment)
    assert first.sample(100).equals(second.sample(100))
    private = PrivPfC(epsilon=2, target="ill", grids=1).fit(helpers.frame(), schema=helpers.schema()).synopsis.to_dict()
    assert not load_result(private).sample(100).equals(load_result(private).sample(100))


def test_the_same_call_after_a_restart_gives_the_same_result_at_no_cost(tmp_path):
    frame, where = helpers.frame(), tmp_path / "clinic.ledger"
    asked = {
        "privpfc": {"parameters": {"grids": 2}},
        "diffgen": {},
        "pph": {},
        "privbayes": {"parameters": {"encoding": "gray"}},
        "marginals": {"parameters": {"ones": 0.4}},
        "uniform-grid": {},
    }

    def opened():
        return sf.open(frame, schema=helpers.schema(), ledger=where, name="clinic", epsilon=10)

    for name, more in asked.items():
        first = opened().synthesize(target="ill", epsilon=1, mechanism=name, **more)
        assert not first.repeated
        spent = opened().balance().total.spent
        again = opened().synthesize(target="ill", epsilon=1, mechanism=name, **more)
        assert opened().balance().total.spent == spent
        assert again.repeated
        assert type(again) is type(first) is {"privbayes": Network, "marginals": Joint}.get(name, Synopsis)
        assert again.to_dict() == first.to_dict()
        assert len(again.sample(20)) == 20
        if not isinstance(again, Network):
            assert (again.classifier().predict(frame) == first.classifier().predict(frame)).all()
        if name in ("privpfc", "privbayes", "marginals"):
            there, here = first.save(tmp_path / name), again.save(tmp_path / f"{name} again")
            assert again.save(tmp_path / name) == there  # the very release that is there already
            for file in ("data.json", "data.parquet", "synthetic.parquet"):
                assert (there / file).read_bytes() == (here / file).read_bytes(), file
            assert "at a time: measured and synthetic" in (here / "report.html").read_text(encoding="utf-8")


def test_personal_budgets_come_back_too(tmp_path):
    frame = helpers.frame(900)
    frame["consent"] = np.array(["strict", "open"], dtype=object)[np.arange(900) % 2]
    roster = sf.Roster.tiers({"strict": 0.5, "open": 2.0}, column="consent", counts={"strict": 450, "open": 450})

    def opened():
        return sf.open(frame, schema=helpers.schema(), budgets=roster, ledger=tmp_path / "x.ledger", name="x")

    first, again = (opened().synthesize(target="ill", share=0.5) for _ in range(2))
    assert again.repeated
    assert again.unit == first.unit != 1
    assert again.warnings == first.warnings != ()
    assert (again.guarantee.people == first.guarantee.people).all()
    assert (again.counts == first.counts).all()
