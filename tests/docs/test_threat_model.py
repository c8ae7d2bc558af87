"""The threat model names tests and commands: they are there."""

import re
from pathlib import Path

from sfumato import bench

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")


def test_every_threat_names_a_test_or_a_bench_that_is_there():
    table = PAGE.partition("## Threats")[2].partition("## What is not")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ") and not line.startswith("| threat")]
    assert len(lines) > 10
    for line in lines:
        named = line.rstrip(" |").rpartition("|")[2]
        files = re.findall(r"`(tests/[^`]+)`", named)
        parts = re.findall(r"`sfumato bench (\w+) --part (\w+)`", named)
        assert files or parts, line
        for file in files:
            assert "def test_" in (ROOT / file).read_text(encoding="utf-8"), file
        for name, part in parts:
            module = __import__(f"sfumato.bench.{name}", fromlist=["PARTS"])
            assert name in bench.NAMES
            assert part in module.PARTS


def test_what_is_not_protected_is_said():
    """What must be on the page whatever else is: without it the rest would promise too much."""
    for words in ("database host together with the officer", "Timing on the machine itself", "Denial of service"):
        assert words in PAGE.partition("## What is not protected against")[2]
