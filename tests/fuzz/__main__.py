"""The long version: 45 seconds for each subject, from a seed that is said."""

from __future__ import annotations

import argparse
import sys

from sfumato.testing import LeakError, fuzz

from .subjects import SUBJECTS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Replay random runs to a neighbour.")
    parser.add_argument("names", nargs="*", help="subjects; a part of a name will do")
    parser.add_argument("--seconds", type=float, default=45.0, help="for each subject")
    parser.add_argument("--seed", type=int, default=0, help="of the first table")
    asked = parser.parse_args()
    leaks = 0
    for name, (run, tables) in SUBJECTS.items():
        if asked.names and not any(part in name for part in asked.names):
            continue
        try:
            tried = fuzz(run, tables, seconds=asked.seconds, seed=asked.seed)
            print(f"{name}: {tried} tables, nothing differs", flush=True)
        except LeakError as leak:
            leaks += 1
            print(f"{name}: LEAK: {leak}", flush=True)
    return 1 if leaks else 0


sys.exit(main())
