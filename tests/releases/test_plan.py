"""A plan that is wrong says what, where and what to do."""

import pytest

from sfumato.errors import InputError
from sfumato.releases.batch import load, preview
from support import clinic


def expect_refusal(tmp_path, old, new, match):
    path = clinic.make(tmp_path, clinic.UNIFORM.replace(old, new, 1))
    with pytest.raises(InputError, match=match):
        preview(load(path))


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("[dataset]", "[datasets]", "unknown key 'datasets'; did you mean 'dataset'"),
        ("epsilon = 0.4", "epsillon = 0.4", "unknown key 'epsillon'; did you mean 'epsilon'"),
        ("epsilon = 0.4", "epsilon = 0", "must be greater than 0"),
        ("epsilon = 0.4", "epsilon = -1", "must not be negative"),
        ("epsilon = 0.4", "epsilon = nan", "must be a finite number"),
        ("epsilon = 0.4", "", "needs `epsilon`"),
        ("epsilon = 0.4", "epsilon = 0.4\nshare = 0.1", "both `epsilon`"),
        ('kind = "count"', 'kind = "cuont"', "did you mean 'count'"),
        ('name = "over65"', 'name = "../over65"', "cannot be a folder name"),
        ('name = "over65"', 'name = "wards"', "two releases are called 'wards'"),
        ('where = "age >= 65"', 'where = "aeg >= 65"', "aeg"),
        ('where = "age >= 65"', 'where = "age >= "', "age"),
        ('columns = ["ward"]', "", "needs `columns`"),
        ('columns = ["ward"]', 'columns = ["wrad"]', "did you mean 'ward'"),
        ('mechanism = "identity"', 'mechanism = "magic"', "applicable here"),
        ("rows = 2000", "rows = -3", "positive whole number"),
        ("rows = 2000", "", "public head count"),
        ('schema = "clinic.toml"', "", "needs `schema`"),
        ("epsilon = 1.0", "", "needs `epsilon`, the most that all releases"),
    ],
)
def test_mistakes_are_named(tmp_path, old, new, match):
    expect_refusal(tmp_path, old, new, match)


def test_broken_toml_and_missing_files_are_named(tmp_path):
    with pytest.raises(InputError, match="there is no plan"):
        load(tmp_path / "nothing.toml")
    (tmp_path / "broken.toml").write_text("[dataset")
    with pytest.raises(InputError, match="not valid TOML"):
        load(tmp_path / "broken.toml")
    path = clinic.make(tmp_path / "c", clinic.UNIFORM)
    (tmp_path / "c" / "clinic.toml").unlink()
    with pytest.raises(InputError, match=r"clinic\.toml"):
        preview(load(path))


def test_together_needs_recipients(tmp_path):
    expect_refusal(tmp_path, "epsilon = 1.0", "epsilon = 1.0\ntogether = 2.0", "name them under")


def test_paths_are_relative_to_the_plan(tmp_path, monkeypatch):
    path = clinic.make(tmp_path / "deep", clinic.UNIFORM.replace('"clinic.ledger"', '"duckdb:///x.db"'))
    monkeypatch.chdir(tmp_path)
    plan = load(path)
    assert plan.source == str(tmp_path / "deep" / "clinic.parquet")
    assert plan.ledger == f"duckdb:///{tmp_path / 'deep' / 'x.db'}"
