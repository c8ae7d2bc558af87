"""The tree for ranges: its layout, its noise, its price, and what empirical Bayes makes of it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sfumato.histograms.estimation.splits import EM_STEPS, FIRST_BELIEF, IMAGINARY, STEPS, Level, divide, posterior
from sfumato.histograms.mechanisms.auto_ranges import TOTAL_PERCENT, auto_ranges, plan
from sfumato.privacy import NANO, Exact, Meter, Seeded
from sfumato.privacy.noise import laplace_variance
from sfumato.testing import replay


def run(counts, epsilon, seed):
    rates = np.full(counts.size, int(epsilon * NANO))
    return auto_ranges(Exact(counts), rates=rates, meter=Meter(source=Seeded(seed)))


def range_rmse(counts, made):
    """Over all pairs of ends."""
    return float(np.sqrt(2 * np.concatenate([[0.0], np.cumsum(made - counts)]).var()))


@pytest.mark.parametrize("bins", [1, 2, 3, 47, 100, 257, 1000, 4096, 100_003])
def test_every_layout_is_a_tree_whose_shares_fit_into_the_budget(bins):
    deepest = 0
    for signal in (-5.0, 0.0, 3.0, 40.0, 300.0, 5e3, 1e5, 1e9):
        widths, shares = plan(bins, signal)
        assert len(widths) == len(shares)
        assert all(a % b == 0 and a > b for a, b in itertools.pairwise(widths))
        assert 990 <= sum(shares) <= 1000
        assert min(shares) > 0
        finest = -(-bins // widths[-1])
        assert finest >= deepest or bins < 50  # a stronger signal never sees less
        deepest = max(deepest, finest)
    assert deepest == bins


def test_the_layout_follows_the_noisy_number_of_records_only():
    counts = np.full(600, 3)
    found = replay(lambda table, source: run_with(table, source), counts, counts + (np.arange(600) == 17))
    assert found.same_output
    assert found.calls[0].here.exact.tolist() == [1800]
    assert found.calls[0].charged == NANO * TOTAL_PERCENT // 100
    # nothing of the budget is left lying about: the record loses nearly all of it
    assert 0.99 * NANO < found.loss <= NANO


def run_with(table, source):
    made = auto_ranges(Exact(table), rates=np.full(table.size, NANO), meter=Meter(source=source))
    return made.counts, made.losses, made.parameters


def test_bins_pay_by_their_own_budget_and_their_node_by_the_smallest():
    rates = np.where(np.arange(300) < 150, NANO // 10, NANO)
    meter = Meter(source=Seeded(2))
    made = auto_ranges(Exact(np.full(300, 40)), rates=rates, meter=meter)
    assert (made.losses <= rates).all()
    assert made.losses[0] > 0.98 * NANO // 10
    assert made.losses[-1] > 0.9 * NANO
    assert meter.spent().total <= NANO
    for level in made.measurements:
        smallest = [rates[level.labels == node].min() for node in range(level.totals.size)]
        assert (level.rates <= smallest).all()


def test_the_noise_is_what_is_stated_and_noise_30_percent_too_small_is_rejected():
    counts = np.arange(900) % 7
    ratios = []
    for seed in range(40):
        for level in run(counts, 0.3, seed).measurements:
            exact = np.bincount(level.labels, weights=counts)
            ratios.append((level.totals - exact) ** 2 / laplace_variance(level.rates))
    squares = np.concatenate(ratios)
    error = squares.std() / np.sqrt(squares.size)
    assert abs(squares.mean() - 1) < 4 * error
    assert 8 * error < 1 - 0.49


def test_a_faint_histogram_is_nearly_flat_and_a_strong_one_nearly_exact():
    counts = np.random.default_rng(1).multinomial(300, np.full(1000, 1e-3))
    faint = [run(counts, 0.02, seed).counts for seed in range(8)]
    assert np.median([made.std() / made.mean() for made in faint]) < 0.5
    strong = np.random.default_rng(2).integers(0, 3000, 300)
    assert np.mean([range_rmse(strong, run(strong, 1.0, seed).counts) for seed in range(5)]) < 12


def test_a_few_huge_bins_on_an_empty_floor_are_found():
    counts = np.zeros(1000, dtype=np.int64)
    counts[[130, 515, 770]] = 4000
    for seed in range(3):
        made = run(counts, 0.1, seed).counts
        assert set(np.argsort(made)[-3:].tolist()) == {130, 515, 770}
        assert range_rmse(counts, made) < 150  # a fifth of what plain noise leaves


def reference_posterior(total, variance, even, share, belief):
    """One child by brute force: the belief on a fine grid of its total."""
    scale = np.sqrt(variance / 2)
    points, weights, values = [], [], []
    top = 1 / share
    for p, value in zip(belief[:3], (0.0, even, even / share), strict=True):
        points.append(p * np.exp(-abs(total - value) / scale) / (2 * scale))
        values.append(value)
    for p, low, high in zip(belief[3:], STEPS[:-1], STEPS[1:], strict=False):
        low, high = min(low, top) * even, min(high, top) * even
        if high > low:
            grid = low + (high - low) * (np.arange(4000) + 0.5) / 4000
            points.extend(p * np.exp(-np.abs(total - grid) / scale) / (2 * scale) / 4000)
            values.extend(grid)
    weights, values = np.array(points), np.array(values)
    mean = (weights * values).sum() / weights.sum()
    return mean, (weights * values**2).sum() / weights.sum() - mean**2


def test_the_integrals_are_those_of_the_stated_belief():
    totals = np.array([9.0, -4.0, 30.0, 2.0, 260.0])
    variance, even, share = np.full(5, 50.0), np.full(5, 20.0), np.full(5, 0.1)
    mean, spread = posterior(totals, variance, even, share)
    # the belief, learned once more by brute force
    size = np.searchsorted(STEPS, 10.0) + 3
    start = FIRST_BELIEF[:size]
    scale = 5.0
    rows = []
    for total in np.clip(totals, 0, 200):
        edges = np.minimum(STEPS[: size - 2], 10) * 20
        steps = []
        for low, high in itertools.pairwise(edges):
            grid = low + (high - low) * (np.arange(4000) + 0.5) / 4000
            steps.append(np.exp(-np.abs(total - grid) / scale).mean() if high > low else 0.0)
        rows.append([*np.exp(-np.abs(total - np.array([0, 20, 200])) / scale), *steps])
    kernel = np.array(rows)
    belief = start
    for _ in range(EM_STEPS):
        trust = kernel * belief / (kernel @ belief)[:, None]
        belief = (trust.sum(axis=0) + IMAGINARY * start) / (5 + IMAGINARY)
    for i, total in enumerate(np.clip(totals, 0, 200)):
        expected, square = reference_posterior(total, 50.0, 20.0, 0.1, belief)
        assert mean[i] == pytest.approx(expected, rel=1e-3)
        assert spread[i] == pytest.approx(square, rel=1e-2)


def test_dividing_keeps_totals_and_never_falls_below_nothing():
    g = np.random.default_rng(5)
    for bins, widths in ((1000, (64, 8, 1)), (7, (3, 1)), (10, (10,)), (1, (1,))):
        levels = []
        for width in widths:
            starts = np.arange(0, bins, width)
            levels.append(Level(starts, g.laplace(5, 10, starts.size), np.full(starts.size, 200.0)))
        leaves, spread = divide(levels, bins=bins, total=500.0, variance=100.0)
        assert (leaves >= 0).all()
        assert (spread > 0).all()
        assert leaves.size == levels[-1].starts.size
        known = 200.0 * levels[0].starts.size
        if len(levels) == 1:
            assert leaves.sum() == pytest.approx((500 * known + levels[0].totals.sum() * 100) / (known + 100))


def test_a_budget_beyond_measure_and_none_at_all_do_no_harm():
    for counts in (np.array([2**62, 2**62, 0]), np.zeros(5, dtype=np.int64), np.array([-(2**63), 5, 7])):
        for epsilon in (1e-6, 50.0):
            made = run(counts, epsilon, 1)
            assert np.isfinite(made.counts).all()
            assert np.isfinite(made.noise).all()
