"""A certificate proves that its charge is in the log; a byte changed anywhere in it is noticed, offline."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.cli import app
from sfumato.errors import InputError
from sfumato.ledger import Ledger
from sfumato.ledger.signing import Keys, signed_json
from sfumato.releases import verify
from sfumato.releases.folder import certificate_text
from sfumato.releases.proving import Known, log_checks
from sfumato.tables import Numeric, Schema

run = CliRunner().invoke


class Released:
    """A signed release, what was kept of the log before and after it, and the custodian's keys."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.keys = Keys.opened(home / "keys")
        frame = pd.DataFrame({"age": [30, 40, 70, 80] * 50})
        schema = Schema({"age": Numeric(0, 99, bins=10, integer=True)})
        ledger = home / "clinic.ledger"
        table = sf.open(frame, schema=schema, epsilon=10, rows=200, ledger=ledger, name="clinic")
        table.count(epsilon=1)
        self.ledger = Ledger.open(ledger, keys=home / "keys")
        self.before = self.ledger.signed_checkpoint("clinic")
        table.count(where="age >= 65", epsilon=1, recipient="ministry").save(home / "over65")
        table.count(where="age >= 75", epsilon=1).save(home / "over75")
        self.after = self.ledger.signed_checkpoint("clinic")
        self.folder = home / "over65"
        self.size = json.loads((self.folder / "certificate.json").read_text())["log"]["size"]


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Released:
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("proving")
        patch.setenv("SFUMATO_SIGNING_KEYS", str(home / "keys"))
        return Released(home)


def failing(folder: Path, **known: Any) -> set[str]:
    return {check.what for check in verify(folder, **known).checks if not check.holds}


def test_everything_agrees(released: Released, tmp_path: Path) -> None:
    keys = released.keys.public()
    assert not failing(released.folder, keys=keys)
    found = {check.what for check in verify(released.folder, keys=keys).checks}
    said = {"the certificate is signed", "the charge is in the log", "the log says what the certificate says"}
    assert found >= said | {"the checkpoint is that of the log", "the certificate is spelt as it was"}
    (tmp_path / "keys.json").write_text(json.dumps({"keys": keys}))
    assert run(app, ["verify", str(released.folder), "--keys", str(tmp_path / "keys.json")]).exit_code == 0


@pytest.mark.parametrize("kept", ["before", "after"])
def test_the_log_goes_on_from_a_checkpoint_that_was_kept(released: Released, tmp_path: Path, kept: str) -> None:
    checkpoint = getattr(released, kept)
    old, new = sorted((checkpoint["size"], released.size))
    assert old < new
    proof = released.ledger.consistency("clinic", old, new).to_dict()
    known: dict[str, Any] = {"keys": released.keys.public(), "checkpoint": checkpoint}
    assert failing(released.folder, **known) == {"the log is the one of the checkpoint you kept"}  # a proof is needed
    assert not failing(released.folder, **known, consistency=proof)
    for number in range(len(proof["path"])):
        path = [*proof["path"][:number], "0" * 64, *proof["path"][number + 1 :]]
        assert failing(released.folder, **known, consistency={"path": path})
    forged = signed_json(Keys.opened(tmp_path / "other"), {**checkpoint, "root": "1" * 64})
    assert failing(released.folder, **{**known, "checkpoint": forged}, consistency=proof)
    unsigned = {**checkpoint, "root": "1" * 64}
    assert failing(released.folder, checkpoint=unsigned, consistency=proof)
    files = {"checkpoint": checkpoint, "consistency": proof}
    for name, data in files.items():
        (tmp_path / name).write_text(json.dumps(data))
    arguments = [part for name in files for part in (f"--{name}", str(tmp_path / name))]
    assert run(app, ["verify", str(released.folder), *arguments]).exit_code == 0


def holds(raw: bytes, known: Known) -> bool:
    """What `verify` says of a certificate, without the files beside it."""
    try:
        made = json.loads(raw.decode())
        return certificate_text(made).encode() == raw and all(check.holds for check in log_checks(made, known))
    except (ValueError, AttributeError):
        return False


def test_no_byte_of_a_signed_certificate_can_change(released: Released) -> None:
    raw = (released.folder / "certificate.json").read_bytes()
    known = Known(keys=released.keys.public())
    assert holds(raw, known)
    begin = raw.index(b'"log"')
    places = {*range(begin, raw.index(b'"files"'), 2), *range(0, len(raw), 17), *range(len(raw) - 260, len(raw))}
    for place in places:
        for bit in (1, 32):
            assert not holds(raw[:place] + bytes([raw[place] ^ bit]) + raw[place + 1 :], known)
    for place in range(0, len(raw), 101):
        assert not holds(raw[:place] + b" " + raw[place:], known)
        assert not holds(raw[:place] + raw[place + 1 :], known)


def test_no_byte_of_an_unsigned_proof_can_change(released: Released) -> None:
    """Without keys the path and the entry still hold each other."""
    made = json.loads((released.folder / "certificate.json").read_bytes())
    del made["signature"], made["log"]["checkpoint"]
    assert all(check.holds for check in log_checks(made, Known()))
    for name in ("body", "index", "path", "size", "root"):
        value = made["log"][name]
        other = value + 1 if isinstance(value, int) else value[1:] if isinstance(value, list) else value.swapcase()
        assert not all(check.holds for check in log_checks({**made, "log": {**made["log"], name: other}}, Known()))
    for name in ("dataset", "release", "recipient", "reservation", "fingerprint"):
        other = made[name] + 1 if isinstance(made[name], int) else made[name] + "x"
        assert not all(check.holds for check in log_checks({**made, name: other}, Known()))
    assert not all(check.holds for check in log_checks({**made, "charged": {"epsilon": "0.5"}}, Known()))
    assert not all(check.holds for check in log_checks({k: v for k, v in made.items() if k != "log"}, Known()))


def test_another_release_s_proof_is_not_this_one_s(released: Released, tmp_path: Path) -> None:
    shutil.copytree(released.folder, tmp_path / "a")
    made = json.loads((tmp_path / "a" / "certificate.json").read_text())
    other = json.loads((released.home / "over75" / "certificate.json").read_text())
    forged = signed_json(released.keys, {**made, "log": other["log"]})
    (tmp_path / "a" / "certificate.json").write_text(certificate_text(forged), encoding="utf-8")
    assert failing(tmp_path / "a", keys=released.keys.public()) == {"the log says what the certificate says"}


def test_an_unknown_key_says_what_to_do(released: Released, tmp_path: Path) -> None:
    strangers = Keys.opened(tmp_path / "strangers").public()
    (one, *_) = [c for c in verify(released.folder, keys=strangers).checks if not c.holds]
    assert released.keys.current in one.found
    assert "GET /v1/keys" in one.found
    for wrong in ([], [{"key_id": "a"}], {"keys": [{"key_id": "0" * 16, "ed25519": "00" * 32}]}, "nowhere.json"):
        with pytest.raises(InputError):
            verify(released.folder, keys=wrong)  # type: ignore[arg-type]


def test_a_release_that_is_saved_again_is_signed_again(released: Released, tmp_path: Path) -> None:
    result = sf.releases.read_result(released.folder)
    result.save(tmp_path / "again")
    assert not failing(tmp_path / "again")  # who only read it has no keys: it is not signed
    assert failing(tmp_path / "again", keys=released.keys.public()) == {"the certificate is signed"}


def test_older_certificates_still_verify(released: Released, tmp_path: Path) -> None:
    shutil.copytree(released.folder, tmp_path / "old")
    made = json.loads((tmp_path / "old" / "certificate.json").read_text())
    del made["log"], made["signature"]
    (tmp_path / "old" / "certificate.json").write_text(json.dumps({**made, "certificate_version": 2}), encoding="utf-8")
    assert not failing(tmp_path / "old")
    (tmp_path / "old" / "certificate.json").write_text(certificate_text(made), encoding="utf-8")
    assert failing(tmp_path / "old") == {"the charge is in the log"}  # a new one must say where


def test_what_a_certificate_says_of_the_log_does_not_depend_on_how_long_it_took(released: Released) -> None:
    """The proof is for the state right after the charge, at its minute, whatever happened until it was written."""
    reserved = json.loads((released.folder / "certificate.json").read_text())["log"]
    assert reserved["size"] == reserved["index"] + 1
    assert reserved["checkpoint"]["at"] == json.loads(reserved["body"])["reserved"]
