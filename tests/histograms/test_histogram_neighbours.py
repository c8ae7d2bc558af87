"""One exact test of privacy per mechanism: replay.

A mechanism runs on a table and its noisy outputs are kept. It then runs on the neighbour with *the same outputs* replayed.
If everything it does with the data goes through a price, then (1) it makes the same calls with the same noise rates, because
decisions can only come from earlier outputs, (2) the exact values differ by so little that the densities of the outputs
differ by at most exp(budget of the record's bin), and (3) it returns the same numbers.
"""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.bench.histograms_published import published
from sfumato.histograms.mechanisms.dynamic import dpa_shares
from sfumato.privacy import NANO, Meter, Seeded
from sfumato.privacy.partition import partition_price
from sfumato.registry import mechanism, mechanisms

NAMES = [m.name for m in mechanisms("histogram") if "personal budgets" not in m.needs]


class Recorder(Meter):
    """Keeps every call's exact values, rates and outputs."""

    def __init__(self, replay=None):
        super().__init__(source=Seeded(11))
        self.calls, self.replay = [], list(replay or [])

    def _keep(self, kind, exact, rates, extra, draw):
        out = self.replay.pop(0)["out"] if self.replay else draw()
        self.calls.append({"kind": kind, "exact": np.asarray(exact), "rates": np.asarray(rates), "extra": extra, "out": out})
        return out

    def laplace(self, values, *, rate, weights=1, **more):
        exact = np.array(values() if callable(values) else values)
        draw = super().laplace
        return self._keep("laplace", exact, rate, weights, lambda: draw(exact, rate=rate, weights=weights, **more))

    def partition(self, starts, stops, costs, *, rate, moves, label=""):
        exact = np.array(costs() if callable(costs) else costs)
        draw = super().partition
        extra = (np.asarray(starts), np.asarray(stops), np.asarray(moves))
        return self._keep("partition", exact, rate, extra, lambda: draw(starts, stops, exact, rate=rate, moves=moves))


def loss_between(first, second, where):
    """The exact loss of the recorded outputs for a record of bin `where`, or an AssertionError if a decision leaked."""
    assert len(first) == len(second)
    total = 0
    for a, b in zip(first, second, strict=True):
        assert a["kind"] == b["kind"]
        assert np.array_equal(a["rates"], b["rates"]), "the noise depends on the data"
        assert a["exact"].shape == b["exact"].shape
        change = np.abs(a["exact"] - b["exact"])
        if a["kind"] == "laplace":
            total += int((change * a["rates"]).sum())
        else:
            starts, stops, moves = a["extra"]
            assert all(np.array_equal(x, y) for x, y in zip(a["extra"], b["extra"], strict=True))
            around = (starts <= where) & (where < stops)
            assert (change[~around] == 0).all()
            assert (change[around] <= moves[around]).all()
            total += partition_price(a["rates"], moves)
    return total


def tables(size):
    g = np.random.default_rng(size)
    yield np.where(g.random(size) < 0.7, 0, g.geometric(0.02, size)).astype(np.int64)
    yield np.repeat(g.integers(0, 400, -(-size // 8)), 8)[:size].astype(np.int64)
    yield np.full(size, 3, dtype=np.int64)


SIZES = {"auto_shape": 520, "auto_ranges": 520}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("budget", [NANO // 50, NANO])
def test_a_record_loses_at_most_the_budget_of_its_bin(name, budget):
    for counts in tables(SIZES.get(name, 70)):
        rates = np.full(counts.size, budget)
        rates[::3] = budget // 2  # these bins are protected more
        for where in (0, 1, counts.size - 1):
            there = counts.copy()
            there[where] += 1
            one = Recorder()
            made = mechanism("histogram", name).make(lambda c=counts: c, rates=rates, meter=one)
            two = Recorder(replay=one.calls)
            again = mechanism("histogram", name).make(lambda c=there: c, rates=rates, meter=two)
            assert loss_between(one.calls, two.calls, where) <= made.losses[where] <= rates[where]
            assert np.array_equal(made.counts, again.counts), "the output depends on more than the noisy values"
            assert (made.losses <= rates).all()
            assert one.spent().total <= rates.max()


def test_the_replay_finds_the_published_order():
    counts = np.full(9, 50)
    there = counts + (np.arange(9) == 0)
    shares = dpa_shares(9, 0.5)
    one = Recorder()
    published(counts, epsilon=NANO, shares=shares, meter=one)
    two = Recorder(replay=one.calls)
    published(there, epsilon=NANO, shares=shares, meter=two)
    with pytest.raises(AssertionError, match="noise depends on the data"):
        loss_between(one.calls, two.calls, 0)
