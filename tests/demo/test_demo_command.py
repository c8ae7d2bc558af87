"""What `sfumato demo` prints."""

import io
import json
import subprocess
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from sfumato.cli.demo import show_truth
from sfumato.demo import compare, write_clinic


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    return compare(write_clinic(tmp_path_factory.mktemp("demo") / "clinic").parent)


def printed(compared):
    screen = Console(record=True, width=80, file=io.StringIO())
    show_truth(screen, compared)
    return screen.export_text()


def test_the_table_says_what_misses_and_by_how_much(compared):
    first, last = compared[0], compared[-1]
    inside = round(first.affine.value)
    said = printed([replace(first, truth=inside + 5000), replace(last, truth=round(last.affine.value))])
    rows = said.splitlines()[1:3]
    assert rows[0].endswith("misses")
    assert rows[1].rstrip().endswith("holds")
    assert f"{inside + 5000:,}" in rows[0]
    assert "-5,000" in rows[0] or "-4,999" in rows[0] or "-5,001" in rows[0]
    assert "1 of 2 intervals miss" in said


def test_the_table_fits_a_narrow_screen(compared):
    said = printed(compared)
    assert len(said.splitlines()) == 2 + len(compared) + 1
    assert "…" not in said


@pytest.mark.slow
def test_the_demo_is_short_and_tells_the_truth(tmp_path):
    """All of it on one screen and a half; what it prints as JSON is what it compared."""
    command = [sys.executable, "-m", "sfumato.cli", "demo", "--folder", str(tmp_path / "clinic")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) <= 66
    assert "What is true" in done.stdout
    assert "Next" in done.stdout
    again = subprocess.run([*command, "--json"], capture_output=True, text=True, cwd=tmp_path, timeout=240, check=False)
    assert again.returncode == 0, again.stderr
    truth = json.loads(again.stdout)["truth"]
    # Affine is off by 2,400 people or more at a noise of scale below 80: e^-17 for less than 1,000.
    assert [t["affine"]["holds"] for t in truth[:3]] == [False] * 3
    assert all(t["affine"]["off_by"] < -1000 for t in truth[:3])
    assert all(abs(t["adaptive"]["off_by"]) < 6000 for t in truth)
