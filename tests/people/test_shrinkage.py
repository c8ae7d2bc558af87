"""The frontier between an answer that assumes nothing and one that assumes independence."""

import numpy as np
import pytest

from sfumato.people.shrinkage import Shrinkage

SPREADS = [0.02, 0.1, 0.3, 0.59, 1.0, 2.31, 6.0, 19.0]


def simulated(shrink, spread, gap, rng, draws=60_000):
    g = spread * rng.standard_normal(draws)
    d = gap + g + rng.laplace(size=draws)
    return np.sqrt(np.mean((shrink(d) - (gap + g)) ** 2) / 2)


@pytest.mark.parametrize("spread", SPREADS)
def test_it_is_on_the_frontier_and_its_worst_error_is_bounded(spread):
    shrink = Shrinkage.of(spread)
    assert 1.0 <= shrink.excess <= 1.005
    assert shrink.worst <= 1.33
    best = np.sqrt(spread**2 / (spread**2 + 2))  # of linear estimators at b = 0
    assert shrink.if_independent >= 0.95 * best
    assert shrink.if_independent <= 1.0


@pytest.mark.parametrize("spread", [0.1, 0.59, 2.31])
def test_its_risks_are_those_of_a_simulation(spread):
    shrink, rng = Shrinkage.of(spread), np.random.default_rng(1)
    for gap in (0.0, 0.7, 2.0, 5.0, -3.0, 15.0):
        assert simulated(shrink, spread, gap, rng) == pytest.approx(float(shrink.error(gap)), rel=0.03)
    for gap in (40.0, 200.0, -1e6):
        assert simulated(shrink, spread, gap, rng) <= 1.03 * max(1.0, shrink.worst)


def test_more_weight_on_independence_trades_one_end_for_the_other():
    found = [Shrinkage.of(0.59, weight=w) for w in (0.5, 0.7, 0.83, 0.9, 0.97)]
    assert np.all(np.diff([s.if_independent for s in found]) < 0)
    assert np.all(np.diff([s.worst for s in found]) > 0)


def test_psi_is_odd_and_grows():
    shrink = Shrinkage.of(0.59)
    d = np.linspace(0, 30, 500)
    assert shrink(-d) == pytest.approx(-shrink(d), abs=1e-6)
    assert np.all(np.diff(shrink(d)) > -1e-9)


def test_no_other_well_known_rule_beats_it_at_both_ends():
    rng, spread = np.random.default_rng(2), 0.59
    shrink = Shrinkage.of(spread)
    share = spread**2 / (spread**2 + 2)
    rules = {
        "soft threshold": lambda d: share * d + np.sign(d) * np.maximum(np.abs(d) - 1.2, 0) * (1 - share),
        "hard threshold": lambda d: np.where(np.abs(d) > 3, d, share * d),
        "d³/(d²+c)": lambda d: share * d + (1 - share) * d**3 / (d**2 + 5),
    }
    gaps = np.linspace(0, 12, 25)
    for name, rule in rules.items():
        errors = [simulated(rule, spread, gap, rng, 20_000) for gap in gaps]
        assert errors[0] > 0.98 * shrink.if_independent or max(errors) > 0.98 * shrink.worst, name
