"""A preview knows public facts only: the private table may not even exist."""

import builtins

import pytest

from sfumato.errors import InputError
from sfumato.releases.batch import load, preview, release
from support import clinic


def test_preview_works_without_the_table(tmp_path):
    path = clinic.make(tmp_path)
    (tmp_path / "clinic.parquet").unlink()
    priced = preview(load(path))
    assert priced[0].chosen.expected_rmse > 0
    assert {o.mechanism for o in priced[0].offers} >= {"affine", "minimum", "threshold", "sampling"}
    assert not (tmp_path / "clinic.ledger").exists()


def test_preview_opens_no_file_but_the_public_ones(tmp_path, monkeypatch):
    path = clinic.make(tmp_path)
    opened = []
    real = builtins.open

    def watch(file, *args, **kwargs):
        opened.append(str(file))
        return real(file, *args, **kwargs)

    monkeypatch.setattr(builtins, "open", watch)
    preview(load(path))
    assert not any("clinic.parquet" in name for name in opened)


def test_a_missing_table_costs_nothing(tmp_path):
    path = clinic.make(tmp_path)
    (tmp_path / "clinic.parquet").unlink()
    plan = load(path)
    with pytest.raises(InputError, match=r"clinic\.parquet"):
        release(plan)
    assert not (tmp_path / "clinic.ledger").exists()


def test_budgets_in_the_private_table_need_public_head_counts(tmp_path):
    text = clinic.make(tmp_path).read_text()
    start, end = text.index("[people]"), text.index("[ledger]")
    (tmp_path / "plan.toml").write_text(text[:start] + '[people]\ncolumn = "consent"\ntiers = { open = 1.0 }\n' + text[end:])
    with pytest.raises(InputError, match="head counts"):
        preview(load(tmp_path / "plan.toml"))
