"""Which wheels the tests can count on here: said once, by the markers of the dev extra in pyproject.toml."""

from __future__ import annotations

import platform
import tomllib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def no_wheel(name: str, here: Mapping[str, str] | None = None) -> str | None:
    """Why the wheel `name` cannot be had on this platform; None where it can."""
    listed = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]["dev"]
    (asked,) = (r for r in map(Requirement, listed) if r.name == name)
    if asked.marker is None or asked.marker.evaluate(dict(here or {})):
        return None
    machine = (here or {}).get("platform_machine", platform.machine())
    version = (here or {}).get("python_version", platform.python_version())
    return f"no wheel of {name} for {platform.system()} on {machine} with Python {version}"


def need_wheel(name: str, module: str) -> None:
    """Skip, by name, where there is no such wheel; fail where there is one and it was not installed."""
    reason = no_wheel(name)
    if reason is not None:
        pytest.skip(reason)
    if find_spec(module) is None:
        pytest.fail(f"{name} is not installed: run `make test`, or install the project with its dev extra", pytrace=False)
