"""A misspelt keyword or kind is found by a type checker, before it is run."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CALLS = """
import sfumato as sf
from sfumato.histograms import Histogram
from sfumato.people import Estimate

def good(table: sf.releases.session.Table) -> tuple[Estimate, Histogram]:
    table.preview("count", where="age >= 65", share=0.5)
    return table.count(where="age >= 65", epsilon=0.1), table.histogram("age", share=0.1, parameters={"delta": 0.1})

def bad(table: sf.releases.session.Table) -> None:
    table.preview("cuont")
    table.preview("count", wher="age >= 65")
    table.count(wehre="age >= 65")
    table.mean("age", epsilom=1)
"""


@pytest.mark.slow
def test_mypy_rejects_what_is_misspelt_and_nothing_else(tmp_path):
    calls = tmp_path / "calls.py"
    calls.write_text(
        CALLS.replace("sf.releases.session.Table", "Table").replace(
            "import sfumato as sf\n", "from sfumato.releases.session import Table\n"
        )
    )
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file", ROOT / "pyproject.toml", calls],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    lines = [line for line in checked.stdout.splitlines() if "calls.py" in line and "error" in line]
    numbers = {int(line.split(":")[1]) for line in lines}
    first = calls.read_text().splitlines().index('    table.preview("cuont")') + 1
    assert numbers == {first, first + 1, first + 2, first + 3}, checked.stdout + checked.stderr
