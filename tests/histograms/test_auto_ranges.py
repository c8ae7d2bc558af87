"""The tree for ranges: its layout, its noise, its price, and what empirical Bayes makes of it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from sfumato.histograms.estimation import splits
from sfumato.histograms.estimation.splits import EM_STEPS, FIRST_BELIEFS, IMAGINARY, STEPS, Level, divide, posterior
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
        assert all(a % b == 0 and a > b for a, b in pairwise(widths))
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
    for seed in range(15):
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


def by_brute_force(totals, variance, even, share, families):
    """The model as it is stated, with every integral a sum over a fine grid: children x (three points and steps)."""
    scale, top = np.sqrt(variance / 2), even / share
    edges = np.minimum(STEPS[: np.searchsorted(STEPS, 1 / share) + 1] * even, top)
    grids = [np.array([0.0]), np.array([even]), np.array([top])]
    grids += [low + (high - low) * (np.arange(3000) + 0.5) / 3000 for low, high in pairwise(edges)]
    density = [[np.exp(-np.abs(total - grid) / scale) for grid in grids] for total in totals]
    kernel = np.array([[d.mean() for d in row] for row in density])
    first = [np.array([(d * g).mean() for d, g in zip(row, grids, strict=True)]) for row in density]
    second = [np.array([(d * g**2).mean() for d, g in zip(row, grids, strict=True)]) for row in density]
    start = FIRST_BELIEFS[:, : len(grids)] / FIRST_BELIEFS[:, : len(grids)].sum(axis=1, keepdims=True)
    beliefs, common = start.copy(), np.array([0.5, 0.5])

    def kinds():
        chance = np.array([[common[t] * np.prod(kernel[f] @ beliefs[t]) for t in (0, 1)] for f in families])
        return chance / chance.sum(axis=1, keepdims=True)

    for _ in range(EM_STEPS):
        kind, new = kinds(), []
        for t in (0, 1):
            counted = IMAGINARY * start[t]
            for f, odds in zip(families, kind, strict=True):
                counted = counted + sum(odds[t] * kernel[i] * beliefs[t] / (kernel[i] @ beliefs[t]) for i in f)
            new.append(counted / counted.sum())
        beliefs = np.array(new)
        common = (kind.sum(axis=0) + IMAGINARY) / (len(families) + 2 * IMAGINARY)
    mean, square = np.zeros(len(totals)), np.zeros(len(totals))
    for f, odds in zip(families, kinds(), strict=True):
        for i in f:
            for t in (0, 1):
                mean[i] += odds[t] * (first[i] @ beliefs[t]) / (kernel[i] @ beliefs[t])
                square[i] += odds[t] * (second[i] @ beliefs[t]) / (kernel[i] @ beliefs[t])
    return mean, square - mean**2


def test_the_posterior_is_that_of_the_stated_model():
    totals = np.array([9.0, -4.0, 30.0, 2.0, 25.0, 1.0, -8.0, 96.0, 7.0, -2.0])
    same = np.ones(10)
    mean, spread = posterior(totals, 50 * same, 20 * same, 0.2 * same, np.array([0, 5]))
    expected, square = by_brute_force(totals, 50.0, 20.0, 0.2, [range(5), range(5, 10)])
    assert mean == pytest.approx(expected, rel=2e-3)
    assert spread == pytest.approx(square, rel=2e-2)
    # the second family is of the kind of which one holds all: its siblings fall further than those of the first
    assert mean[8] < mean[3] + 4 < mean[2]


def test_a_million_children_are_divided_as_a_few_are(monkeypatch):
    g = np.random.default_rng(8)
    totals, same = g.laplace(5, 4, 600), np.ones(600)
    arguments = (totals, 32 * same, 5 * same, 0.1 * same, np.arange(0, 600, 10))
    at_once = posterior(*arguments)
    monkeypatch.setattr(splits, "MOST_TO_LEARN", 150)
    in_parts = posterior(*arguments)
    assert in_parts[0].shape == (600,)
    # learned from a quarter of the families: not the same, but alike
    assert np.abs(in_parts[0] - at_once[0]).mean() < 0.5


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
