"""The price of choosing a partition, against the exact law of the choice on a line of three bins."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sfumato.privacy import NANO, Meter, Seeded
from sfumato.privacy.partition import least_cost, partition_price

STARTS = np.array([0, 1, 2, 0, 1, 0])
STOPS = np.array([1, 2, 3, 2, 3, 3])
# Every partition, in the order in which ties are broken: from the right end, the interval listed first wins.
PARTITIONS = sorted([[0, 1, 2], [0, 4], [3, 2], [5]], key=lambda p: p[::-1])
ETA, REACH = 2.0, 6  # what lies beyond has probability 6e-6: the laws below are exact to that


NOISE = np.array(list(itertools.product(range(REACH + 1), repeat=6)))
EACH = np.append((1 - np.exp(-ETA)) * np.exp(-ETA * np.arange(REACH)), np.exp(-ETA * REACH))
CHANCE = EACH[NOISE].prod(axis=1)


def law(costs: np.ndarray) -> np.ndarray:
    """Probability of every partition when each interval's cost is lowered by geometric noise."""
    winner = np.argmin([costs[p].sum() - NOISE[:, p].sum(axis=1) for p in PARTITIONS], axis=0)
    return np.bincount(winner, weights=CHANCE, minlength=len(PARTITIONS))


def test_ties_are_broken_as_the_proof_says():
    rng = np.random.default_rng(0)
    for _ in range(300):
        costs = rng.integers(0, 3, 6)
        first = int(np.argmin([costs[p].sum() for p in PARTITIONS]))
        assert least_cost(STARTS, STOPS, costs).tolist() == PARTITIONS[first]


@pytest.mark.parametrize("bin_", [0, 1])
def test_the_loss_stays_below_the_price(bin_):
    """One record moves every interval around its bin by one unit, up or down, in every combination."""
    around = np.flatnonzero((bin_ >= STARTS) & (bin_ < STOPS))
    price = partition_price(np.full(6, round(ETA * NANO)), np.ones(6, dtype=np.int64)) / NANO
    costs = np.array([2, 2, 2, 4, 4, 6])
    before = law(costs)
    worst = 0.0
    for change in itertools.product([-1, 1], repeat=around.size):
        moved = costs.copy()
        moved[around] += change
        worst = max(worst, float(np.abs(np.log(law(moved) / before)).max()))
    assert worst <= price + 1e-4
    assert worst > 0.95 * price  # it is tight: half of it, as in some published code, would not be enough


def test_the_meter_charges_it_once_and_before_it_looks():
    meter = Meter(source=Seeded(0))
    chosen = meter.partition(
        STARTS, STOPS, lambda: np.array([0, 0, 0, 9, 9, 9]), rate=np.full(6, NANO), moves=np.ones(6, dtype=int)
    )
    assert sorted(chosen.tolist()) in [sorted(p) for p in PARTITIONS]
    assert meter.spent().total == 2 * NANO
