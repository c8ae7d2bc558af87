"""A folder is only believed where the ledger says so, and the ledger keeps nothing it should not."""

import json

import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import InputError, SfumatoError
from sfumato.ledger import Ledger
from sfumato.privacy import Seeded
from sfumato.releases.batch import load, release
from support import clinic

FOR_ALICE = clinic.UNIFORM.replace("epsilon = 1.0", "epsilon = 1.0\nrecipients = { alice = 1, bob = 1 }").replace(
    'name = "over65"', 'name = "over65"\nrecipient = "alice"'
)


@pytest.fixture
def plan(tmp_path):
    return load(clinic.make(tmp_path, clinic.UNIFORM))


def spent(plan):
    return Ledger.open(plan.ledger).balance("clinic").total.spent


def test_a_folder_of_a_lost_ledger_is_not_settled_by_another_entry_of_the_same_number(plan):
    release(plan, only="over65")
    for path in plan.home.glob("clinic.ledger*"):
        path.unlink()
    release(plan, only="wards")  # entry 1 of the new ledger
    with pytest.raises(InputError, match="never charged"):
        release(plan, only="over65")


def test_another_recipient_is_charged_and_not_handed_the_folder(tmp_path):
    path = clinic.make(tmp_path, FOR_ALICE)
    release(load(path), only="over65")
    path.write_text(FOR_ALICE.replace('recipient = "alice"', 'recipient = "bob"'))
    with pytest.raises(InputError, match="for recipient 'alice'"):
        release(load(path), only="over65")
    path.write_text(FOR_ALICE.replace('recipient = "alice"', ""))
    with pytest.raises(InputError, match="what everybody may see"):
        release(load(path), only="over65")


def test_data_that_is_not_what_the_certificate_says_is_not_passed_on(plan):
    folder = release(plan, only="over65")[0].folder
    data = json.loads((folder / "data.json").read_text())
    (folder / "data.json").write_text(json.dumps(data | {"value": 3}))
    with pytest.raises(InputError, match="not those of its certificate"):
        release(plan, only="over65")


def test_a_certificate_that_the_ledger_did_not_record_is_not_passed_on(plan):
    folder = release(plan, only="over65")[0].folder
    made = json.loads((folder / "certificate.json").read_text())
    (folder / "certificate.json").write_text(json.dumps(made | {"expected_rmse": 0.1}))
    with pytest.raises(InputError, match="not what the ledger recorded"):
        release(plan, only="over65")


def test_an_experiment_never_answers_a_real_request(plan):
    release(plan, only="over65", source=Seeded(1))
    with pytest.raises(InputError, match="already holds something else"):
        release(plan, only="over65")
    frame = pd.DataFrame({"age": [1, 70, 80]})
    schema = sf.Schema({"age": sf.Numeric(0, 99, bins=3, integer=True)})
    place = plan.home / "frame.ledger"
    sf.open(frame, schema=schema, epsilon=1, rows=3, ledger=place, name="f", noise=Seeded(1)).count(epsilon=0.1)
    again = sf.open(frame, schema=schema, epsilon=1, rows=3, ledger=place, name="f").count(epsilon=0.1)
    assert not again.repeated
    assert again.guarantee.private


def test_a_folder_that_moved_is_the_same_request_and_is_not_charged_again(tmp_path):
    frame = pd.DataFrame({"age": [1, 2, 3]})
    schema = sf.Schema({"age": sf.Numeric(0, 99, bins=3, integer=True)})
    ledger = tmp_path / "x.ledger"
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        frame.to_parquet(tmp_path / folder / f"{folder}.parquet")
    first, again = (
        sf.open(tmp_path / f / f"{f}.parquet", schema=schema, epsilon=1, rows=3, ledger=ledger, name="d").count(epsilon=0.1)
        for f in ("here", "there")
    )
    assert again.repeated
    assert again.value == first.value
    assert str(tmp_path) not in sf.Ledger.open(ledger).history("d")[0].request


def test_the_kind_of_a_failure_after_the_charge_is_not_told(plan, monkeypatch):
    from sfumato.tables import Dataset

    def explode(*_args, **_kwargs):
        raise OverflowError("row 17")

    monkeypatch.setattr(Dataset, "count", explode)
    with pytest.raises(SfumatoError, match="failed while the table was read") as caught:
        release(plan, only="over65")
    assert "Overflow" not in str(caught.value)
    entry = Ledger.open(plan.ledger).history("clinic")[0]
    assert (entry.name, entry.kind, entry.state) == ("over65", "count", "failed")


def test_a_line_of_the_ledger_names_the_release_and_its_columns(plan):
    release(plan)
    told = {line.name: (line.kind, line.columns, line.where) for line in Ledger.open(plan.ledger).history("clinic")}
    assert told["over65"] == ("count", (), "age >= 65")
    assert told["wards"] == ("histogram", ("ward",), None)


def test_the_ledger_does_not_tell_one_failure_from_another(tmp_path, monkeypatch):
    """The engine stops, the release is refused after the table was read, or its folder cannot be written."""
    from sfumato.releases import folder
    from sfumato.tables import Dataset

    plan = load(clinic.make(tmp_path, clinic.UNIFORM.replace("epsilon = 1.0", "epsilon = 2.0")))
    for owner, what, error in (
        (Dataset, "count", OverflowError("row 17")),
        (Dataset, "count", InputError("the column does not fit")),
        (folder, "write", OSError("no space")),
    ):

        def stop(*_args, error=error, **_kwargs):
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(owner, what, stop)
            with pytest.raises(SfumatoError, match="stays spent"):
                release(plan, only="over65")
    lines = [entry.to_dict() for entry in Ledger.open(plan.ledger).history("clinic")]
    told = [{k: v for k, v in line.items() if k not in ("id", "reserved_at", "finished_at")} for line in lines]
    assert len(told) == 3
    assert told[0] == told[1] == told[2]


def test_a_refusal_before_any_charge_says_nothing_about_a_new_ledger(plan):
    heard = []
    (plan.home / "clinic.parquet").unlink()
    with pytest.raises(InputError, match="no file"):
        release(plan, only="over65", notice=heard.append)
    assert heard == []


def test_charges_on_a_new_ledger_are_noticed(plan):
    heard = []
    release(plan, only="over65", notice=heard.append)
    release(plan, only="wards", notice=heard.append)
    assert len(heard) == 1
    assert "new ledger" in heard[0]
