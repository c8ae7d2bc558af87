"""`sfumato service ...` and the demo: set up, check, back up, restore, and what `--help` loads."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from sfumato.cli import app
from sfumato.cli.serve_demo import written
from sfumato.client import connect
from sfumato.errors import InputError
from sfumato.service.context import Service
from sfumato.service.http.app import create_app
from sfumato.service.operations.demo import code_now, demo_service
from sfumato.service.operations.examining import examine
from sfumato.service.settings import Settings

AT = "http://127.0.0.1:8000"


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passwords that cost little, and one process for previews instead of two."""
    monkeypatch.setenv("SFUMATO_SERVICE_PASSWORD_TIME", "1")
    monkeypatch.setenv("SFUMATO_SERVICE_PASSWORD_MEMORY", "8192")
    monkeypatch.setattr("sfumato.service.planning.previewing.Workers.warm", lambda _: None)


def said(*words: str) -> str:
    """What a command printed; its refusals are raised."""
    done = CliRunner().invoke(app, list(words))
    if isinstance(done.exception, InputError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def test_a_service_is_set_up_and_its_administrator_signs_in(tmp_path: Path) -> None:
    text = said("service", "init", str(tmp_path / "here"), "--administrator", "root")
    code = re.search(r"good once:\n(\S+)\n", text)
    assert code is not None
    config = tmp_path / "here" / "sfumato.toml"
    settings = Settings.read(config, os.environ)
    assert settings.state == tmp_path / "here" / "state"
    web = TestClient(create_app(Service.opened(settings)), AT)
    sent = {"code": code[1], "password": "a sentence of a few words"}
    assert web.post("/v1/set-password", json=sent).status_code == 204
    with pytest.raises(InputError, match="there is an administrator"):
        said("service", "code", "--config", str(config))
    with pytest.raises(InputError, match="is not empty"):
        said("service", "init", str(tmp_path / "here"))
    client = connect(AT, name="root", password="a sentence of a few words", transport=_loose(web))
    assert client.account["role"] == "administrator"

    assert "keys are not in it" in said("service", "backup", str(tmp_path / "copy"), "--config", str(config))
    for path in settings.state.glob("*.db*"):
        path.unlink()
    assert "0 faults" in said("service", "restore", str(tmp_path / "copy"), "--config", str(config))
    assert json.loads(said("service", "check", "--json", "--config", str(config)))["wrong"] == []
    assert connect(AT, name="root", password="a sentence of a few words", transport=_loose(web)).account["name"] == "root"


def _loose(web: TestClient) -> Any:
    return web._transport


def test_a_configuration_that_is_not_there_is_told(tmp_path: Path) -> None:
    for words in (["serve"], ["service", "check"], ["service", "backup", "x"]):
        with pytest.raises(InputError, match="service init"):
            said(*words, "--config", str(tmp_path / "none.toml"))
    with pytest.raises(InputError, match="add --demo"):
        said("serve", "--folder", str(tmp_path))


def test_the_demo_has_five_accounts_people_a_plan_in_the_queue_and_one_ready(tmp_path: Path) -> None:
    made = demo_service(tmp_path / "demo", lambda folder: written(folder, 300))
    assert made == demo_service(tmp_path / "demo", lambda folder: pytest.fail("it is there already"))
    assert [a.role for a in made.accounts] == ["person", "custodian", "officer", "analyst", "administrator"]
    service = Service.opened(Settings.read(made.config, {}, places=False))
    web = _loose(TestClient(create_app(service), AT))
    pia, cleo, otto, ana, _ = (connect(AT, name=a.name, password=a.password, transport=web) for a in made.accounts)
    (mine,) = pia.me
    assert (mine["dataset"], mine["mine"]["tier"]) == ("clinic", "open")
    assert sorted(p["state"] for p in cleo.plans) == ["approved", "submitted"]
    (waiting,) = otto.approvals
    decided = otto.approvals.approve(waiting, "it is fine", code=code_now(made.accounts[2]))
    assert decided["plan"]["state"] == "approved"
    assert [a["purpose"] for a in ana.allowances("clinic")] == ["research"]
    assert ana.open("clinic", purpose="research").preview("count", where="age >= 65", share="0.05").fits
    assert examine(service).wrong == ()
    shown = "".join(p.read_text(errors="ignore") for p in (tmp_path / "demo").rglob("*.db"))
    assert not [a.password for a in made.accounts if a.password in shown]


def test_help_loads_no_web_no_ledger_and_no_engine() -> None:
    code = """
import sys
sys.argv = ["sfumato", "serve", "--help"]
from sfumato.cli import main
try:
    main()
except SystemExit:
    pass
print(" ".join(m for m in sys.modules if "." not in m), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "--demo" in done.stdout
    loaded = set(done.stderr.split())
    assert not loaded & {"fastapi", "starlette", "uvicorn", "sqlalchemy", "httpx", "argon2", "ibis", "pandas"}
