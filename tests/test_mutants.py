"""Every mutant still fits the code, names tests that are there, and a few are killed every time."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from mutants.model import ROOT, run
from mutants.table import MUTANTS, QUICK

BY_NAME = {mutant.name: mutant for mutant in MUTANTS}


@pytest.mark.parametrize("name", BY_NAME)
def test_a_mutant_applies_once_and_compiles(name):
    mutant = BY_NAME[name]
    changed = mutant.mutated()
    compile(changed, mutant.file, "exec")
    assert changed != (ROOT / "src" / "sfumato" / mutant.file).read_text(encoding="utf-8")
    for test in mutant.tests:
        assert (ROOT / test.partition("::")[0]).exists(), test


def test_there_are_many_everywhere():
    assert len(BY_NAME) == len(MUTANTS) >= 120
    parts = Counter(mutant.file.partition("/")[0] for mutant in MUTANTS)
    assert set(parts) >= {"privacy", "ledger", "people", "histograms", "attributes", "grids", "classifiers", "records"}
    assert set(parts) >= {"tables", "releases"}
    alive = [mutant for mutant in MUTANTS if mutant.expected != "killed"]
    assert len(alive) <= 8
    assert all(len(mutant.expected) > 30 for mutant in alive)  # a reason, not a word


@pytest.mark.parametrize("name", QUICK)
def test_it_is_killed(name):
    outcome = run(BY_NAME[name])
    assert outcome.killed, outcome.line
    assert outcome.by


def test_a_change_that_loses_nothing_survives():
    harmless = replace(BY_NAME["more-rows-than-priced"], name="harmless", new=BY_NAME["more-rows-than-priced"].old + "  #")
    outcome = run(harmless)
    assert not outcome.killed
    assert not outcome.as_expected
    assert "SURVIVED" in outcome.line


def test_a_mutant_whose_text_is_gone_is_an_error():
    with pytest.raises(ValueError, match="0 times"):
        replace(MUTANTS[0], old="no such text").mutated()
