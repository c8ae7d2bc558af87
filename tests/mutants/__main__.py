"""The command: run mutants, print what became of each, fail if one survives unexplained."""

from __future__ import annotations

import argparse
import sys

from .model import run
from .table import MUTANTS, QUICK


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Do the tests notice lost privacy?")
    parser.add_argument("names", nargs="*", help="mutants to run; a part of a name will do")
    parser.add_argument("--quick", action="store_true", help="a sample, in about a minute")
    parser.add_argument("--list", action="store_true", help="say what each loses and run nothing")
    asked = parser.parse_args()
    chosen = [m for m in MUTANTS if not asked.names or any(part in m.name for part in asked.names)]
    if asked.quick:
        chosen = [m for m in chosen if m.name in QUICK]
    if asked.list:
        for mutant in chosen:
            print(f"{mutant.name}: {mutant.loses} ({mutant.file})")
        return 0
    bad = 0
    for mutant in chosen:
        outcome = run(mutant)
        bad += not outcome.as_expected
        print(outcome.line, flush=True)
    print(f"{len(chosen)} mutants, {bad} not as expected")
    return 1 if bad or not chosen else 0


sys.exit(main())
