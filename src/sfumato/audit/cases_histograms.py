"""Histogram mechanisms on their worst pairs of neighbours, and the published ones that must be caught.

*Why the published DPA and SDPA are caught.* All bins hold the same count. One record more in the first bin moves it
from the first rank to the last, and with the rank its noise grows (from 0.5 to 21 times the plain noise for SDPA):
outputs far out in that bin are common on one table and all but impossible on the other, at any claimed ε. With a public
order nothing moves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.harness import AuditCase
from sfumato.audit.registry import attack_every, register
from sfumato.audit.transcripts import TranscriptCase, transcript_case
from sfumato.bench.histograms_published import published
from sfumato.privacy import NANO, Exact, Meter, Nano, Seeded, Source, as_epsilon
from sfumato.registry import Mechanism
from sfumato.testing import Tape, replay

_CLAIM = Nano(NANO // 5)
_EQUAL = np.full(21, 1000)
_PAIR = "equal bins, one record more or less in the first"


def _table(which: int) -> NDArray[np.int64]:
    counts = _EQUAL.copy()
    counts[0] += which
    return counts


def _stands_out(released: NDArray[np.float64]) -> float:
    """How far the first bin lies above the others."""
    return float(released[0] - np.median(released[1:]))


def _cases(entry: Mechanism) -> list[TranscriptCase]:
    """A histogram mechanism on equal bins with one record more or less in the bin that the record costs most."""
    if "personal budgets" in entry.needs:
        return []

    def fit(counts: NDArray[np.int64], meter: Meter) -> list[NDArray[Any]]:
        made = entry.make(Exact(counts), rates=np.full(counts.size, _CLAIM), meter=meter)
        return [made.counts, np.array(repr(made.parameters))]

    def run(counts: NDArray[np.int64], tape: Tape) -> list[NDArray[Any]]:
        return fit(counts, Meter(source=tape))

    tape = Tape(0)
    run(_EQUAL, tape)
    # The likelihood of a cut is known where there are two of them.
    size = 2 if any(call.kind == "partition" for call in tape.calls) else _EQUAL.size
    equal = _EQUAL[:size]
    tables = [equal + (np.arange(size) == place) for place in range(size)]
    worst = max(tables, key=lambda more: replay(run, equal, more).loss)
    where = int(np.flatnonzero(worst != equal)[0])
    words = f"{size} equal bins, one record more or less in bin {where + 1}"
    return [TranscriptCase(f"histogram-{entry.name}", _CLAIM, fit, (worst, equal), words)]


def _published(shares: NDArray[np.float64]) -> Callable[[int, int, Source], NDArray[np.float64]]:
    def draw(which: int, n: int, source: Source) -> NDArray[np.float64]:
        # Such a mechanism is refused with secure noise, so it gets a seed from the source it was offered.
        seeded = Seeded(int(source.words(1)[0]))
        made = published(_table(which), epsilon=as_epsilon(_CLAIM), shares=shares, meter=Meter(source=seeded), times=n)
        return np.array([_stands_out(row) for row in made])

    return draw


def _partition(which: int, meter: Meter) -> list[NDArray[Any]]:
    """Three bins, the middle one with its left or its right neighbour: a record there moves the two costs apart."""
    starts, stops = np.array([0, 0, 2, 1]), np.array([1, 2, 3, 3])
    moves, rates = np.array([0, 1, 0, 1]), np.array([2 * NANO, NANO, 2 * NANO, NANO])
    return [meter.partition(starts, stops, np.array([0, which, 0, -which]), rate=rates, moves=moves)]


def _register() -> None:
    from sfumato.histograms.mechanisms.dynamic import dpa_shares, sdpa_shares

    attack_every("histogram", _cases)
    moved = "a record that makes one interval dearer and another cheaper, each as far as it may"
    register(transcript_case("histogram-partition", _partition, (0, 1), moved))
    for name, shares in (("dpa", dpa_shares(_EQUAL.size, 0.9)), ("sdpa", sdpa_shares(_EQUAL.size))):
        register(AuditCase(f"control-{name}-published", _CLAIM, _published(shares), _PAIR, control=True, most=4_000))


_register()
