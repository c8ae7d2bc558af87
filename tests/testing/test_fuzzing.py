"""Nothing that is released differs when a person is missing from anywhere; and what does differ is found.

Every subject gets half a second here, and six tables at least; ``python -m tests.fuzz`` gives each 45.
"""

from __future__ import annotations

from zlib import crc32

import numpy as np
import pytest

from fuzz.subjects import SUBJECTS
from sfumato import classifiers, grids
from sfumato.errors import InputError
from sfumato.privacy import NANO, Exact, Meter
from sfumato.registry import mechanisms
from sfumato.testing import LeakError, Rows, Tape, fuzz


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_person_missing_from_anywhere_changes_nothing_but_the_exact_values(name):
    run, tables = SUBJECTS[name]
    assert fuzz(run, tables, seconds=0.3, least=4, seed=crc32(name.encode()) % 1000) >= 4


def test_everything_that_releases_something_is_fuzzed():
    tried = set(SUBJECTS)
    assert set(classifiers.__all__) - {"NoiseFree"} <= tried
    kinds = {
        n for n in grids.__all__ if isinstance(getattr(grids, n), type) and issubclass(getattr(grids, n), grids.Publisher)
    }
    assert kinds - {"Publisher"} <= tried
    histograms = {f"histogram {m.name}" for m in mechanisms("histogram") if "personal budgets" not in m.needs}
    assert histograms <= tried
    counts = {f"count {m.name}" for m in mechanisms("count") if "one epsilon" not in m.needs}
    assert counts <= tried


# --- what it finds ------------------------------------------------------------------------------------------------------


def tables(random):
    ages = random.integers(0, 3, size=10)
    return Rows(np.repeat(np.arange(5), 2), lambda mask: ages[mask])


def counted(ages, source, rate=NANO // 10, rows=2):
    meter = Meter(source=source, rows_per_person=rows)
    return meter.laplace(Exact(np.bincount(ages, minlength=3), rows_per_person=rows), rate=rate, label="ages")


class Remembering:
    """Says nothing of what it holds, and stores it."""

    def __init__(self, noisy, exact):
        self.noisy, self.exact = noisy, exact

    def __eq__(self, other):
        return bool((self.noisy == other.noisy).all())

    __hash__ = None


def failing(ages, source):
    if len(ages) < 10:
        raise ValueError("too few")
    return counted(ages, source)


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (lambda ages, source: counted(ages, source, rate=NANO // len(ages)), "its rate differs"),
        (lambda ages, source: counted(np.append(ages, ages), source), "moves by more than it was charged"),
        (lambda ages, source: (counted(ages, source), len(ages)), "something else is published"),
        (lambda ages, source: Remembering(counted(ages, source), len(ages)), "other bytes are stored"),
        (failing, "other questions|something else is published"),
    ],
)
def test_what_differs_is_found(run, said):
    with pytest.raises(LeakError, match=said):
        fuzz(run, tables, seconds=0)


def test_two_rows_of_a_person_that_are_priced_as_one_are_found():
    def one_row(ages, source):
        return Meter(source=source).laplace(Exact(np.bincount(ages, minlength=3)), rate=NANO, label="ages")

    with pytest.raises(LeakError, match=r"table \d+ without person \d+: call 1 \('ages'\) moves by more"):
        fuzz(one_row, tables, seconds=1)


def test_a_group_is_held_to_what_it_is_charged():
    from sfumato.privacy import PersonBudgets

    budgets = PersonBudgets.of([0.1, 1.0])

    def rows(random):
        return Rows([0, 1], lambda mask: mask, groups=np.array([0, 1]))

    def fair(mask, source):
        return Meter(budgets=budgets, source=source).laplace(
            Exact([int(budgets.levels @ mask)]), rate=1, weights=budgets.levels, label="sum"
        )

    def unfair(mask, source):
        return Meter(budgets=budgets, source=source).laplace(
            Exact([int(budgets.levels[1] * mask.sum())]), rate=1, weights=budgets.levels, label="sum"
        )

    assert fuzz(fair, rows, seconds=0.05) > 1
    with pytest.raises(LeakError, match="moves by more"):
        fuzz(unfair, rows, seconds=1)


@pytest.mark.parametrize("lacks", [[0], [4], [2, 5], [9]])
def test_a_deal_follows_the_records_wherever_one_is_missing(lacks):
    first = Tape(3)
    mine = Meter(source=first).deal(10, 4)
    again = Meter(source=first.again(lacks=lacks)).deal(10 - len(lacks), 4)
    assert again.tolist() == np.delete(mine, lacks).tolist()


def test_runs_that_always_fail_try_nothing():
    def broken(ages, source):
        raise ZeroDivisionError("always")

    with pytest.raises(InputError, match="every run fails, the last one with ZeroDivisionError: always"):
        fuzz(broken, tables, seconds=1)


def test_the_seed_of_a_finding_finds_it_again():
    def sometimes(ages, source):
        return counted(ages, source), bool(ages.sum() > 12)

    with pytest.raises(LeakError) as found:
        fuzz(sometimes, tables, seconds=5)
    seed = int(str(found.value).split()[1])
    with pytest.raises(LeakError, match=f"table {seed} "):
        fuzz(sometimes, tables, seconds=0, seed=seed)
