"""The primitives that every mechanism is made of, each on the pair of neighbours for which its price is tight.

Where independent runs of a mechanism are coordinates of one vector, one call of the Meter makes all of them; the price is
that of a single run, because one person is in one run.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.harness import AuditCase
from sfumato.audit.registry import register
from sfumato.privacy import NANO, Meter, PersonBudgets, Seeded, Source

TIERS = PersonBudgets.from_tiers({"strict": (0.6, 3), "standard": (1.2, 2), "open": (2, 1)})
_BINS = np.array([4, 7, 2])
_BIN_RATES = np.array([3 * NANO // 10, NANO, NANO // 2])


def _weighted_count(meter: Meter, counts: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    exact = int(counts @ TIERS.levels)
    return meter.laplace(np.full(n, exact), rate=1, weights=TIERS.levels)


def _count_case(group: int) -> AuditCase:
    def draw(which: int, n: int, source: Source) -> NDArray[np.int64]:
        counts = TIERS.counts.copy()
        counts[group] -= which
        return _weighted_count(Meter(budgets=TIERS, source=source), counts, n)

    meter = Meter(budgets=TIERS, source=Seeded(0))
    _weighted_count(meter, TIERS.counts, 1)
    claimed = meter.spent().people
    assert claimed is not None
    tier = TIERS.name(group)
    return AuditCase(f"weighted-count-{tier}", int(claimed[group]), draw, f"one person of tier {tier!r} present or absent")


def _histogram(which: int, n: int, source: Source) -> NDArray[np.int64]:
    """The bin that one record leaves; the other bins' noise is independent of it and tells nothing."""
    counts = _BINS - np.array([0, which, 0])
    meter = Meter(source=source)
    return meter.laplace(np.tile(counts, (n, 1)), rate=np.tile(_BIN_RATES, (n, 1)))[:, 1]


def _moved(which: int, n: int, source: Source) -> NDArray[np.int64]:
    """A record moves from one bin to the other: its log-likelihood ratio from both bins, up to a factor."""
    counts = np.array([5, 5]) + (np.array([-1, 1]) if which else 0)
    noisy = Meter(neighbours="replacement", source=source).laplace(np.tile(counts, (n, 1)), rate=NANO // 2)
    sides = np.clip(noisy - np.array([4, 5]), 0, 1)
    return np.asarray(sides[:, 0] - sides[:, 1])


def _choice(which: int, n: int, source: Source) -> NDArray[np.int64]:
    scores = [1, 1 + 2 * which]
    made = (Meter(source=source).choose(scores, rate=NANO, spread=2) for _ in range(n))
    return np.array(list(made), dtype=np.int64)


def _sampled(which: int, n: int, source: Source) -> NDArray[np.int64]:
    meter = Meter(source=source)
    with meter.sampled(1 << 62) as sample:
        return meter.laplace(lambda: sample(np.full((n, 1), 3 - which))[:, 0], rate=NANO)


def _price_of_sampling() -> int:
    meter = Meter(source=Seeded(0))
    with meter.sampled(1 << 62) as sample:
        meter.laplace(lambda: sample([1]), rate=NANO)
    return meter.spent().total


for _group in range(TIERS.groups):
    register(_count_case(_group))
register(AuditCase("laplace-histogram", NANO, _histogram, "one record of the bin with the least noise present or absent"))
register(AuditCase("laplace-histogram-replacement", NANO, _moved, "one record moved from one bin to another"))
register(AuditCase("choice", 2 * NANO, _choice, "one of two equal scores rises by the whole spread", most=16_000))
register(
    AuditCase("sampled-count", _price_of_sampling(), _sampled, "one person present or absent, kept with probability 1/2")
)
