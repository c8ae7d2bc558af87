"""Tables and lists from a plan: previewed, released, read back, reported; wrong ones refused before anything is spent."""

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import InputError, SfumatoError
from sfumato.privacy import Seeded
from sfumato.releases.batch import load, preview, release
from sfumato.statistics import CrossTable, TopValues
from support import clinic

PLAN = """
[dataset]
name = "clinic"
source = "clinic.parquet"
schema = "clinic.toml"
rows = 2000

[ledger]
location = "clinic.ledger"
epsilon = 2.0

[[release]]
name = "wards"
kind = "table"
columns = ["ward", "sex", "region"]
epsilon = 0.8
margins = "all"
nonnegative = true
whole = true

[[release]]
name = "frequent"
kind = "top"
column = "ward"
k = 2
epsilon = 0.8
counts = true
"""


def test_a_plan_makes_a_table_and_a_list(tmp_path):
    path = clinic.make(tmp_path, PLAN)
    assert [p.chosen.mechanism for p in preview(load(path))] == ["margins", "counts"]
    table, top = (o.result for o in release(load(path), source=Seeded(3)))
    assert isinstance(table, CrossTable)
    assert isinstance(top, TopValues)
    assert (table.value >= 0).all()
    assert (table.value == np.rint(table.value)).all()
    assert table.margin("ward").counts.sum() == table.margin("sex", "region").counts.sum() == table.total
    assert len(top.value) == 2
    again = [o.repeated for o in release(load(path), source=Seeded(4))]
    assert again == [True, True]
    report = (tmp_path / "releases" / "wards" / "report.html").read_text(encoding="utf-8")
    assert "The table, with its totals" in report
    assert "ward x sex" in report
    assert "cardiology" in report
    listed = (tmp_path / "releases" / "frequent" / "report.html").read_text(encoding="utf-8")
    assert "How good the list is" in listed
    assert "No picture could be drawn" not in report + listed


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return clinic.make(tmp_path_factory.mktemp("wrong"), PLAN).parent


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('"region"]', '"regoin"]', "did you mean 'region'"),
        ('"region"]', '"ward"]', "named twice"),
        ('columns = ["ward", "sex", "region"]', "", "needs `columns`"),
        ('columns = ["ward", "sex", "region"]', "columns = []", "`columns`"),
        ('columns = ["ward", "sex", "region"]', "columns = [1]", "`columns`"),
        ('margins = "all"', 'margins = "most"', "a number of columns from 1 to 3"),
        ('margins = "all"', "margins = 0", "a number of columns from 1 to 3"),
        ('margins = "all"', "margins = 4", "a number of columns from 1 to 3"),
        ('margins = "all"', "margins = true", "a number of columns from 1 to 3"),
        ('margins = "all"', "margins = [1, 9]", "a number of columns from 1 to 3"),
        ('margins = "all"', "margins = []", "a number of columns from 1 to 3"),
        ('margins = "all"', "margins = 2", "needs the whole table"),
        ('margins = "all"', 'margin = "all"', "did you mean 'margins'"),
        ("nonnegative = true", 'nonnegative = "yes"', "true or false"),
        ("epsilon = 0.8\nmargins", "margins", "needs `epsilon`"),
        ("epsilon = 0.8\nmargins", 'epsilon = 0.8\nmechanism = "affine"\nmargins', "applicable here"),
        ("k = 2\n", "", "needs `k`"),
        ("k = 2", "k = 0", "`k`"),
        ("k = 2", "k = 1.5", "`k`"),
        ("k = 2", 'k = "two"', "`k`"),
        ("k = 2", "k = 5", "which are all of them"),
        ('column = "ward"', "", "needs `column`"),
        ('column = "ward"', 'column = "ward"\ncolumns = ["sex"]', "not both"),
        ('column = "ward"', 'column = "wrad"', "did you mean 'ward'"),
        ("counts = true", "counts = 3", "true or false"),
    ],
)
def test_wrong_ones_are_named_before_anything_is_spent(folder, old, new, match):
    assert old in PLAN
    path = folder / "wrong.toml"
    path.write_text(PLAN.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError, match=match):
        release(load(path), source=Seeded(1))
    assert not (folder / "clinic.ledger").exists()


def test_more_columns_than_anybody_reads_are_refused():
    many = sf.Schema({f"c{i}": sf.Categorical(["a", "b"]) for i in range(9)})
    table = sf.open(pd.DataFrame({f"c{i}": ["a"] for i in range(9)}), schema=many, epsilon=1, rows=1, noise=Seeded(1))
    with pytest.raises(SfumatoError, match="at most 8"):
        table.preview("table", columns=list(many.names), epsilon=1)


def test_margins_of_a_table_too_large_to_hold():
    """More than ten million million cells, of which only the margins of single columns are asked for."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"c{i}": rng.integers(0, 50, 500) for i in range(8)})
    schema = sf.Schema({f"c{i}": sf.Numeric(0, 49, bins=50, integer=True) for i in range(8)})
    table = sf.open(frame, schema=schema, epsilon=1000, rows=500, noise=Seeded(1))
    with pytest.raises(SfumatoError, match="at most 20,000,000"):
        table.preview("table", columns=list(schema.names), epsilon=1)
    found = table.table(*schema.names, margins=1, epsilon=500)
    assert found.margin("c3").counts.round().tolist() == np.bincount(frame["c3"], minlength=50).tolist()
    with pytest.raises(InputError, match="was not released"):
        found.margin("c3", "c4")
