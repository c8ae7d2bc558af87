"""One mutant, how it is applied, and how its tests are run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE = 300  # seconds: a mutant that makes a test hang is killed too


@dataclass(frozen=True)
class Mutant:
    """A change that loses privacy.

    `expected` is "killed", or why the change loses nothing: then no test has to notice.
    """

    name: str
    loses: str
    file: str  # below src/sfumato
    old: str
    new: str
    tests: tuple[str, ...]  # files, or tests in them
    expected: str = "killed"

    def mutated(self, sources: Path = ROOT / "src") -> str:
        """The changed text of the file; an error if the piece to replace is not there exactly once."""
        text = (sources / "sfumato" / self.file).read_text(encoding="utf-8")
        found = text.count(self.old)
        if found != 1:
            raise ValueError(f"mutant {self.name!r}: its text occurs {found} times in {self.file}, not once")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant."""

    mutant: Mutant
    killed: bool
    by: str
    seconds: float

    @property
    def as_expected(self) -> bool:
        """Killed, or alive for a stated reason."""
        return self.killed == (self.mutant.expected == "killed")

    @property
    def line(self) -> str:
        """For people."""
        state = f"killed by {self.by}" if self.killed else "SURVIVED"
        if not self.killed and self.as_expected:
            state = f"alive, as stated: {self.mutant.expected}"
        return f"{self.mutant.name}: {state} ({self.seconds:.0f} s)"


def run(mutant: Mutant) -> Outcome:
    """Copy the project, change the copy, run its tests there until one fails."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sfumato-mutant-") as folder:
        copy = Path(folder)
        for name in ("src", "tests"):  # tests that read the sources must read the changed ones
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        (copy / "src" / "sfumato" / mutant.file).write_text(mutant.mutated(), encoding="utf-8")
        words = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider"]
        words += ["-m", "not postgres and not spark"]  # no server for each mutant
        python_path = os.pathsep.join([str(copy / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = os.environ | {"PYTHONPATH": python_path, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                [*words, *mutant.tests],
                cwd=copy,
                env=environment,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome(mutant, True, f"a test that took more than {PATIENCE} s", time.monotonic() - start)
    if done.returncode > 2:  # 1: a test failed, 2: one could not even be collected, below 0: Python crashed
        raise RuntimeError(f"mutant {mutant.name!r}: pytest could not run: {done.stdout[-800:]}{done.stderr[-800:]}")
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    by = failed[0].split(" - ")[0].partition(" ")[2] if failed else "a crash" if done.returncode else ""
    return Outcome(mutant, done.returncode != 0, by, time.monotonic() - start)
