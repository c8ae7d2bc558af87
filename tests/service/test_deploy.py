"""The container file and the units: hardened, and without anything of one machine."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = ("sfumato-web.service", "sfumato-runner.service")
HARD = {
    "NoNewPrivileges": "yes",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "PrivateTmp": "yes",
    "PrivateDevices": "yes",
    "CapabilityBoundingSet": "",
    "AmbientCapabilities": "",
    "LimitCORE": "0",
    "RestrictSUIDSGID": "yes",
}


def unit(name: str) -> dict[str, dict[str, list[str]]]:
    """Sections, keys, values: a key may stand several times."""
    found: dict[str, dict[str, list[str]]] = {}
    for line in (DEPLOY / name).read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        if heading := re.fullmatch(r"\[(\w+)\]", line):
            section = found.setdefault(heading[1], {})
            continue
        key, sign, value = line.partition("=")
        assert sign, line
        assert key.isidentifier(), line
        section.setdefault(key, []).append(value)
    return found


@pytest.mark.parametrize("name", UNITS)
def test_units_are_hardened(name: str, tmp_path: Path) -> None:
    parts = unit(name)
    assert set(parts) == {"Unit", "Service", "Install"}
    assert {key: parts["Service"][key] for key in HARD} == {key: [value] for key, value in HARD.items()}
    assert "@system-service" in parts["Service"]["SystemCallFilter"]
    assert all("root" not in user for user in parts["Service"]["User"])
    if (tool := shutil.which("systemd-analyze")) is not None:  # what the unit starts need not be installed here
        text = re.sub(r"ExecStart=\S+", "ExecStart=/bin/true", (DEPLOY / name).read_text())
        (tmp_path / name).write_text(re.sub(r"(User|Group)=.*", r"\1=daemon", text))
        done = subprocess.run([tool, "verify", "--man=no", str(tmp_path / name)], capture_output=True, text=True)
        assert name not in done.stderr, done.stderr


def test_web_and_runner_are_different_users_of_one_group_with_different_secrets() -> None:
    web, runner = (unit(name)["Service"] for name in UNITS)
    assert web["User"] != runner["User"]
    assert web["Group"] == runner["Group"]
    assert web["EnvironmentFile"] != runner["EnvironmentFile"]
    assert "--web-only" in web["ExecStart"][0]
    assert "sfumato.service.runner" in runner["ExecStart"][0]
    assert "InaccessiblePaths" in web
    assert "InaccessiblePaths" not in runner


def test_the_container_is_small_not_root_and_from_no_registry_in_particular() -> None:
    lines = [line for line in (DEPLOY / "Containerfile").read_text().splitlines() if line and not line.startswith("#")]
    bases = [line.split()[1] for line in lines if line.startswith("FROM ")]
    assert bases == ["python:3.13-slim"] * 2
    assert all("/" not in base for base in bases)
    last = lines[max(i for i, line in enumerate(lines) if line.startswith("FROM ")) :]
    assert [line for line in last if line.startswith("USER ")] == ["USER 10001:10001"]
    assert any(line.startswith("HEALTHCHECK") for line in last)
    assert not [
        line for line in last if line.startswith(("RUN", "COPY")) and last.index(line) > last.index("USER 10001:10001")
    ]


def test_what_the_container_copies_is_there_and_in_the_source_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert "deploy" in listed
    for line in (DEPLOY / "Containerfile").read_text().splitlines():
        if line.startswith("COPY ") and "--from" not in line:
            for name in line.split()[1:-1]:
                assert (ROOT / name).exists(), name
    extras = re.search(r'"\.\[([\w,]+)\]"', (DEPLOY / "Containerfile").read_text())
    assert extras is not None
    assert set(extras[1].split(",")) <= set(project["project"]["optional-dependencies"])


def test_nothing_of_one_machine_is_in_them() -> None:
    text = "".join(p.read_text() for p in DEPLOY.iterdir())
    assert not re.search(r"/home/|/root/|https?://(?!127\.0\.0\.1)|\b[\w-]+\.(io|com|org)/", text)
