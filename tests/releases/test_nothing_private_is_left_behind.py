"""After a release nothing holds a private value: not the result, its pickle, the offers, the ledger, nor any file."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.privacy import Seeded
from sfumato.releases.pipeline import price, run
from sfumato.releases.plan import parse_request
from sfumato.tables import open as open_table
from support.holding import holds_array, holds_exact

SCHEMA = sf.Schema(
    {
        "age": sf.Numeric(0, 100, bins=5, integer=True),
        "sex": sf.Categorical(["f", "m"]),
        "ill": sf.Categorical(["no", "yes"]),
    },
    unit=sf.PrivacyUnit(person="who", rows_per_person=2),
)
FRAME = pd.DataFrame(
    {
        "who": [f"p{i // 2}" for i in range(400)],
        "age": [float((7 * i) % 101) for i in range(400)],
        "sex": ["f" if i % 3 else "m" for i in range(400)],
        "ill": ["yes" if i % 5 else "no" for i in range(400)],
        "epsilon": [0.1 if (i // 2) % 2 else 0.4 for i in range(400)],
    }
)
ROSTER = sf.Roster.column("epsilon", people=sf.PersonBudgets.of([0.1] * 100 + [0.4] * 100))
KEYS = {
    "count": {"where": "age >= 50"},
    "sum": {"column": "age"},
    "mean": {"column": "age"},
    "histogram": {"columns": ["age"]},
    "synthesize": {"target": "ill"},
}
BINS = np.minimum(FRAME["age"] // 20.2, 4).astype(int)
AGES = np.bincount(BINS, minlength=5)
EXACT = {
    "ages": AGES,
    "ages by illness": np.array([[((FRAME["ill"] == ill) & (b == BINS)).sum() for b in range(5)] for ill in ("no", "yes")]),
    "the column itself": FRAME["age"].to_numpy(),
}
CASES = [(kind, paid) for kind in KEYS for paid in ("epsilon", "share")]


def opened(tmp_path, paid):
    budgets = {"budgets": ROSTER} if paid == "share" else {"epsilon": 5}
    place = {"ledger": tmp_path / "x.ledger", "name": "x"}
    return sf.open(FRAME, schema=SCHEMA, rows=400, noise=Seeded(1), **place, **budgets)


@pytest.mark.parametrize(("kind", "paid"), CASES)
def test_no_result_file_or_ledger_holds_a_private_value(tmp_path, kind, paid):
    table = opened(tmp_path, paid)
    made = table.release(kind, **KEYS[kind], **{paid: "0.3"})
    assert holds_exact(made) == []
    assert holds_array(made, EXACT) == []
    folder = made.save(tmp_path / "saved")
    assert {p.suffix for p in folder.iterdir()} == {".json", ".html", ".parquet", ".csv"}
    for path in folder.iterdir():
        if path.suffix == ".json":
            assert holds_array(json.loads(path.read_text()), EXACT) == [], path.name
        if path.suffix == ".parquet":
            columns = {name: np.asarray(column) for name, column in pq.read_table(path).to_pydict().items()}
            assert holds_array(columns, EXACT) == [], path.name
    for entry in table.ledger.history("x"):
        assert holds_exact(entry) == []
        assert holds_array(entry.to_dict(), EXACT) == []


@pytest.mark.parametrize(("kind", "paid"), CASES)
def test_no_offer_keeps_what_its_run_has_read(tmp_path, kind, paid):
    facts = opened(tmp_path, paid).facts
    asked = parse_request({"name": "r", "kind": kind, **KEYS[kind], paid: 0.3}, "the request")
    for offer in price(asked, facts).offers:
        made = price(replace(asked, mechanism=offer.mechanism), facts)
        dataset = open_table(FRAME, schema=SCHEMA, budgets=made.facts.roster)
        result = run(made, dataset, source=Seeded(1))
        del dataset
        for kept in (made.offers, made.chosen, made.facts, result):
            assert holds_exact(kept) == [], offer.mechanism


def test_the_walk_finds_what_is_hidden():
    """The exact counts of this table, however deep, are found: or the tests above would prove nothing."""
    assert holds_array({"deep": [({"x": AGES.astype(float)},)]}, EXACT)
    assert holds_array(json.loads(json.dumps({"counts": AGES.tolist()})), EXACT)
