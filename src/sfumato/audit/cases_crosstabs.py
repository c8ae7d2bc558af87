"""Tables and lists of the most frequent values on their worst pairs of neighbours.

A record more in a cell is a record more in one cell of every measured margin: all of them together are what it costs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.cases import TIERS
from sfumato.audit.registry import attack_every
from sfumato.audit.transcripts import TranscriptCase
from sfumato.histograms import Axis, Bins
from sfumato.privacy import NANO, Exact, Meter, PersonBudgets, Source
from sfumato.privacy.terms import Terms
from sfumato.registry import Mechanism
from sfumato.statistics.margin_fit import summed
from sfumato.statistics.margin_plan import subsets

_CLAIM = NANO // 2
_SHAPE = (3, 12)
_BINS = Bins(tuple(Axis.categories(f"c{i}", [str(j) for j in range(n)]) for i, n in enumerate(_SHAPE)))
_ASKED = tuple(s for s in subsets(range(len(_SHAPE))) if s)
# Of few people an adaptive plan would not need its second sum; the roster may name more than are in the table.
_ROSTER = PersonBudgets(TIERS.levels, TIERS.counts * 100, TIERS.names)
_GROUP = 2


def _read(cells: NDArray[np.int64]) -> Callable[..., Exact[Any]]:
    """Weighted margins of counts per person group."""

    def read(weights: NDArray[np.int64], margin: tuple[int, ...]) -> Exact[Any]:
        table = np.tensordot(weights, cells, axes=1).astype(np.float64)
        return Exact(summed(table, tuple(range(table.ndim)), margin).astype(np.int64))

    return read


def _tables(groups: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    counts = np.full((groups, *_SHAPE), 5, dtype=np.int64)
    more = counts.copy()
    more[-1, 0, 0] += 1
    return counts, more


def _case(name: str, plan: Any, fit: Any, pair: tuple[Any, Any], claimed: int, words: str) -> TranscriptCase:
    def meter(source: Source) -> Meter:
        return Meter.under(plan.terms.up_to(plan.charge), source=source)

    return TranscriptCase(name, claimed, fit, pair, words, meter=meter)


def _table_cases(entry: Mechanism) -> list[TranscriptCase]:
    personal = "personal budgets" in entry.needs
    if personal:
        plan = entry.make(Terms(budgets=_ROSTER), _BINS, _ASKED)
        claimed = int(plan.charge.people[_GROUP])
    else:
        plan = entry.make(Terms(), _BINS, _ASKED, _CLAIM)
        claimed = int(plan.charge.total)

    def fit(cells: NDArray[np.int64], meter: Meter) -> list[Any]:
        made = plan.run(_read(cells), meter)
        return [*made.counts.values(), *made.interval("c0"), np.array(repr(made.parameters)), np.array(repr(made.warnings))]

    pair = _tables(_ROSTER.groups if personal else 1)
    return [_case(f"table-{entry.name}", plan, fit, pair, claimed, "one record more or less in a cell")]


class _Listed:
    """A plan over people with the terms under which it is charged."""

    def __init__(self, plan: Any) -> None:
        self.run, self.charge, self.terms = plan.run, plan.charge, plan.histogram.terms


def _top_cases(entry: Mechanism) -> list[TranscriptCase]:
    values, k = Bins.numbered(5, ordered=False), 2
    if "personal budgets" in entry.needs:
        plan: Any = _Listed(entry.make(Terms(budgets=_ROSTER), values, k, True))
        cells = np.full((_ROSTER.groups, values.size), 5)
        claimed = int(plan.charge.people[_GROUP])
    else:
        plan = entry.make(Terms(), values, k, 4 * _CLAIM, True)
        cells, claimed = np.full((1, values.size), 5), int(plan.charge.total)
    more = cells.copy()
    # A value that is not listed presses on all that are; one that is counted too shows in its count.
    more[-1, values.size - 1] += 1

    def fit(table: NDArray[np.int64], meter: Meter) -> list[Any]:
        counts: Any = Exact(table[0]) if table.shape[0] == 1 else (lambda weights: Exact(weights @ table))
        made = plan.run(counts, meter)
        return [made.places, np.array(repr(made.shortfalls)), *([] if made.counts is None else [made.counts])]

    return [_case(f"top-{entry.name}", plan, fit, (cells, more), claimed, "one record more or less of the last value")]


attack_every("table", _table_cases)
attack_every("top", _top_cases)
