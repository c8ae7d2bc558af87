"""A plan is priced, charged, run, written and repeated for free."""

import hashlib
import json

import pandas as pd
import pytest

from sfumato.errors import BudgetError, InputError
from sfumato.ledger import Ledger
from sfumato.privacy import Seeded
from sfumato.releases.batch import StoppedError, load, preview, release
from support import clinic


@pytest.fixture
def plan(tmp_path):
    return load(clinic.make(tmp_path))


def test_a_personalized_plan_charges_everyone_their_own_budget_and_writes_the_folder(plan):
    outcomes = release(plan)
    assert [o.repeated for o in outcomes] == [False, False]
    for outcome in outcomes:
        files = {"data.parquet", "data.csv", "data.json", "certificate.json", "report.html"}
        assert {p.name for p in outcome.folder.iterdir()} == files
        made = json.loads((outcome.folder / "certificate.json").read_text())
        assert made["guarantee"]["private"] is True
        for name, digest in made["files"].items():
            assert hashlib.sha256((outcome.folder / name).read_bytes()).hexdigest() == digest
        for group in made["guarantee"]["people"]:
            assert float(group["used"]) <= float(group["granted"])
    balance = Ledger.open(plan.ledger).balance("clinic")
    assert (balance.people.left >= 0).all()
    assert balance.people.spent[0] == balance.people.levels[0]  # the strict tier gave all it had
    Ledger.open(plan.ledger).verify("clinic")


def test_the_estimates_are_near_the_truth(plan):
    table = pd.read_parquet(plan.source)
    errors = []
    made = json.loads((release(plan)[0].folder / "data.json").read_text())
    errors.append((made["value"] - (table["age"] >= 65).sum()) / made["expected_rmse"])
    ages = pd.read_parquet(release(plan)[1].folder / "data.parquet")
    assert abs(errors[0]) < 12  # Laplace tails: beyond 12 standard deviations once in a few million runs
    assert abs(ages["count"].sum() - len(table)) < 12 * ages["noise"].sum()


def test_the_same_request_again_is_free_and_a_new_one_is_not(plan):
    first = release(plan)
    spent = Ledger.open(plan.ledger).balance("clinic").people.spent.copy()
    again = release(plan)
    assert [o.repeated for o in again] == [True, True]
    assert (Ledger.open(plan.ledger).balance("clinic").people.spent == spent).all()
    assert again[0].certificate == first[0].certificate


def test_seeded_noise_is_reproducible_and_marked_not_private(tmp_path):
    made = []
    for name in ("a", "b"):
        plan = load(clinic.make(tmp_path / name))
        outcome = release(plan, only="over65", source=Seeded(5))[0]
        made.append(json.loads((outcome.folder / "data.json").read_text())["value"])
        assert outcome.certificate["guarantee"]["private"] is False
        assert "NOT PRIVATE" in (outcome.folder / "report.html").read_text()
    assert made[0] == made[1]


def test_one_epsilon_for_all_is_refused_beyond_the_cap_and_names_what_is_left(tmp_path):
    path = clinic.make(
        tmp_path, clinic.UNIFORM + '\n[[release]]\nname = "men"\nkind = "count"\nwhere = "sex = \'m\'"\nepsilon = 0.4\n'
    )
    plan = load(path)
    with pytest.raises(BudgetError, match=r"release 'men' would be refused. asked ε 0.4, 0.2 of 1 left for 'clinic'"):
        release(plan)
    assert not (tmp_path / "clinic.ledger").exists()
    for name in ("over65", "wards"):
        release(plan, only=name)
    with pytest.raises(BudgetError, match=r"asked ε 0.4, 0.2 of 1 left for 'clinic'"):
        release(plan, only="men")
    assert [h.state for h in Ledger.open(plan.ledger).history("clinic")] == ["committed", "committed"]
    assert not (tmp_path / "releases" / "men").exists()


def test_a_person_with_a_small_budget_cannot_be_overdrawn_by_an_epsilon_for_all(tmp_path):
    text = (
        (clinic.make(tmp_path))
        .read_text()
        .replace("share = 0.5                    # half of everyone's own budget", "epsilon = 0.1")
    )
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(BudgetError, match="strict"):
        release(load(path), only="over65")


def test_shares_default_to_equal_parts_and_cannot_exceed_one(tmp_path):
    text = clinic.make(tmp_path).read_text().replace("share = 0.5", "")
    (tmp_path / "plan.toml").write_text(text.replace("                    # half of everyone's own budget", ""))
    assert [str(p.request.share) for p in preview(load(tmp_path / "plan.toml"))] == ["1/2", "1/2"]
    (tmp_path / "plan.toml").write_text(clinic.make(tmp_path / "x").read_text().replace("share = 0.5", "share = 0.7"))
    with pytest.raises(InputError, match=r"add up to 1.4"):
        preview(load(tmp_path / "plan.toml"))


def test_a_folder_with_something_else_in_it_is_not_touched_and_nothing_is_spent(plan):
    folder = plan.folder / "over65"
    folder.mkdir(parents=True)
    (folder / "mine.txt").write_text("keep")
    with pytest.raises(InputError, match="already holds something else"):
        release(plan)
    assert (folder / "mine.txt").read_text() == "keep"
    assert Ledger.open(plan.ledger).datasets() == []  # not even a ledger was begun for it


def test_a_release_that_died_before_its_commit_is_settled_without_a_new_charge(plan, monkeypatch):
    def die(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(Ledger, "commit", die)
    with pytest.raises(StoppedError, match="stopped during release 'over65'"):
        release(plan, only="over65")
    monkeypatch.undo()
    ledger = Ledger.open(plan.ledger)
    assert [h.state for h in ledger.history("clinic")] == ["reserved"]
    spent = ledger.balance("clinic").people.spent.copy()
    assert release(plan, only="over65")[0].repeated
    assert [h.state for h in ledger.history("clinic")] == ["committed"]
    assert (ledger.balance("clinic").people.spent == spent).all()


def test_an_engine_error_after_the_charge_keeps_it_and_quotes_nothing(plan, monkeypatch):
    from sfumato.errors import SfumatoError
    from sfumato.tables.engines import Engine

    def explode(*_args, **_kwargs):
        raise RuntimeError("patient 4711 has age 203")

    monkeypatch.setattr(Engine, "fetch", explode)
    with pytest.raises(SfumatoError, match="failed while the table was read") as caught:
        release(plan, only="over65")
    assert "4711" not in str(caught.value)
    assert [h.state for h in Ledger.open(plan.ledger).history("clinic")] == ["failed"]
    assert Ledger.open(plan.ledger).balance("clinic").people.spent.max() > 0
    assert not (plan.folder / "over65").exists()


def test_a_full_disk_while_writing_keeps_the_charge_and_leaves_no_folder(plan, monkeypatch):
    from sfumato.errors import SfumatoError

    def full(_path, _data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sfumato.releases.folder._write_json", full)
    with pytest.raises(SfumatoError, match="No space left on device"):
        release(plan, only="over65")
    assert [h.state for h in Ledger.open(plan.ledger).history("clinic")] == ["failed"]
    assert list(plan.folder.iterdir()) == []


def test_a_picture_that_cannot_be_drawn_does_not_cost_the_release(plan, monkeypatch):
    from sfumato.people.estimate import Estimate

    def fail(*_args, **_kwargs):
        raise ValueError("no room")

    monkeypatch.setattr(Estimate, "plot", fail)
    outcome = release(plan, only="over65")[0]
    assert "No picture could be drawn" in (outcome.folder / "report.html").read_text()


@pytest.mark.pictures
@pytest.mark.parametrize("value", [-40.0, 140.0])
def test_an_estimate_beyond_its_public_bounds_is_drawn(value):
    from sfumato.people.error_law import LaplacePlusNormal
    from sfumato.people.estimate import Estimate
    from sfumato.privacy.guarantee import Guarantee
    from sfumato.releases.report import picture

    law = LaplacePlusNormal((10.0,), 0.0)
    estimate = Estimate(value, 100, law, Guarantee(1), "laplace", 10.0, bounds=(0.0, 100.0))
    assert picture(estimate).startswith(b"\x89PNG")
