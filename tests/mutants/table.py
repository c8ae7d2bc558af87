"""All mutants, and the few that the normal test run kills every time."""

from __future__ import annotations

from . import of_ledger, of_privacy

MUTANTS = (*of_privacy.MUTANTS, *of_ledger.MUTANTS)
QUICK = ("scale-too-small", "factor-forgotten", "more-rows-than-priced", "device-together")
