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
from sfumato.privacy import NANO, Exact, Meter
from sfumato.registry import mechanism, mechanisms
from sfumato.testing import LeakError, replay

NAMES = [m.name for m in mechanisms("histogram") if "personal budgets" not in m.needs]


def stated_moves_hold(pair, where):
    """A record of bin `where` moves the costs of intervals around it, and by no more than stated."""
    public, change = pair.here.public, np.abs(pair.here.exact - pair.there.exact)
    around = (public["starts"] <= where) & (where < public["stops"])
    return (change <= np.where(around, public["moves"], 0)).all()


def tables(size):
    g = np.random.default_rng(size)
    yield np.where(g.random(size) < 0.7, 0, g.geometric(0.02, size)).astype(np.int64)
    yield np.repeat(g.integers(0, 400, -(-size // 8)), 8)[:size].astype(np.int64)
    yield np.full(size, 3, dtype=np.int64)


SIZES = {"auto_shape": 140}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("budget", [NANO // 50, NANO])
def test_a_record_loses_at_most_the_budget_of_its_bin(name, budget):
    for counts in tables(SIZES.get(name, 70)):
        rates = np.full(counts.size, budget)
        rates[::3] = budget // 2  # these bins are protected more
        for where in (0, 1, counts.size - 1):
            there = counts.copy()
            there[where] += 1

            def run(table, source, rates=rates):
                meter = Meter(source=source)
                made = mechanism("histogram", name).make(Exact(table), rates=rates, meter=meter)
                return made.counts, made.losses, meter.spent().total

            found = replay(run, counts, there, source=11)
            _, losses, spent = found.published[0]
            assert found.loss <= losses[where] <= rates[where]
            assert found.same_output, "the output depends on more than the noisy values"
            assert all(pair.loss <= pair.charged for pair in found.calls)
            assert all(stated_moves_hold(pair, where) for pair in found.calls if pair.here.kind == "partition")
            assert (losses <= rates).all()
            assert spent <= rates.max()


def test_the_replay_finds_the_published_order():
    counts = np.full(9, 50)
    there = counts + (np.arange(9) == 0)
    shares = dpa_shares(9, 0.5)

    def run(table, source):
        return published(table, epsilon=1, shares=shares, meter=Meter(source=source))

    with pytest.raises(LeakError, match="its rate differs for the neighbour, so the noise depends on the data"):
        replay(run, counts, there)
