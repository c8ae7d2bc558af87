"""Error formulas against simulation, intervals against the truth, shrinking against plain noise."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.histograms import Bins, release_histogram
from sfumato.histograms.estimation.measurements import noise_quantile
from sfumato.histograms.estimation.metrics import kld, l1, range_mse
from sfumato.histograms.mechanisms.hierarchical import best_branching
from sfumato.privacy import NANO, Exact, Meter, Seeded
from sfumato.privacy.noise import laplace
from sfumato.registry import mechanism, mechanisms

NAMES = [m.name for m in mechanisms("histogram") if "personal budgets" not in m.needs]


def run(name, counts, epsilon, seed, **options):
    rates = np.full(counts.size, int(epsilon * NANO))
    return mechanism("histogram", name).make(Exact(counts), rates=rates, meter=Meter(source=Seeded(seed)), **options)


def within(errors, expected):
    """Whether a mean squared error is the expected one, by the spread of the squares themselves (5 standard errors)."""
    squares = np.asarray(errors, dtype=float).reshape(-1) ** 2
    return abs(squares.mean() - expected) < 5 * squares.std() / np.sqrt(squares.size)


@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_identity_has_the_stated_error_and_noise_30_percent_too_small_is_rejected(epsilon):
    counts = np.arange(40_000) % 50
    made = run("identity", counts, epsilon, 1)
    assert within(made.counts - counts, made.expected_rmse**2)
    small = run("identity", counts, epsilon / 0.7, 2)
    assert not within(small.counts - counts, made.expected_rmse**2)


def test_the_tree_has_the_stated_error_and_a_wrong_one_is_rejected():
    counts = np.arange(64) * 3
    made = [run("hierarchical", counts, 0.5, seed, branching=4) for seed in range(150)]
    stated = made[0].expected_rmse ** 2
    # bins of one tree are correlated: compare whole trees
    per_tree = np.array([((m.counts - counts) ** 2).mean() for m in made])
    assert abs(per_tree.mean() - stated) < 5 * per_tree.std() / np.sqrt(per_tree.size)
    assert abs(per_tree.mean() - stated / 0.49) > 5 * per_tree.std() / np.sqrt(per_tree.size)


def test_branching_follows_the_formula():
    assert best_branching(4096) == (16, 3)
    assert best_branching(1)[1] == 1


@pytest.mark.parametrize(
    "name",
    ["identity", "ahp", "geb", "covariate", "dawa", "dawa_shape", "hierarchical", "uniform", "auto_ranges", "auto_shape"],
)
def test_intervals_cover_the_truth(name):
    counts = np.repeat([0, 40, 3, 90], 16)
    covered = []
    for seed in range(60):
        meter = Meter(source=Seeded(seed))
        h = release_histogram(counts, epsilon=0.5, bins=64, meter=meter, mechanism=name)
        for low, high in ((0, 64), (10, 30), (5, 6), (16, 32)):
            start, stop = h.range(low, high).interval(0.9)
            covered.append(start <= counts[low:high].sum() <= stop)
    # 240 answers, four per release and correlated: 0.9 less three standard errors of 60 releases
    assert np.mean(covered) > 0.9 - 3 * np.sqrt(0.09 / 60)


@pytest.mark.parametrize("name", ["identity", "ahp", "dawa", "hierarchical", "auto_ranges", "auto_shape"])
def test_intervals_of_all_bins_are_those_of_single_bins(name):
    meter = Meter(source=Seeded(8))
    h = release_histogram(np.arange(40) // 4, epsilon=0.5, bins=40, meter=meter, mechanism=name, bin_budgets=[0.2, 0.5] * 20)
    low, high = h.interval(0.8)
    for i in (0, 1, 17, 39):
        start, stop = h.range(i, i + 1).interval(0.8)
        assert (low[i], high[i]) == (start, stop)


@pytest.mark.parametrize("rates", [[NANO], [NANO // 10] * 2, [NANO // 10] * 30, [NANO // 100, NANO // 5, NANO]])
def test_noise_quantiles_are_those_of_the_noise(rates):
    drawn = np.abs(laplace(np.tile(rates, (40_000, 1)), source=Seeded(5)).sum(axis=1))
    for confidence in (0.5, 0.95, 0.99):
        reach = noise_quantile(np.array(rates), confidence)
        assert (drawn <= reach).mean() > confidence - 0.02
        assert (drawn <= 0.7 * reach - 1).mean() < confidence - 0.005


@pytest.mark.parametrize("epsilon", [0.02, 0.3])
def test_shrinking_beats_plain_noise_where_many_bins_are_empty(epsilon):
    counts = np.where(np.arange(2000) % 20 == 0, 300, 0)
    plain = np.mean([kld(counts, run("identity", counts, epsilon, s).counts) for s in range(3)])
    shrunk = np.mean([kld(counts, run("geb", counts, epsilon, s).counts) for s in range(3)])
    assert shrunk < 0.6 * plain


def test_neighbours_help_where_the_histogram_is_smooth():
    counts = (200 * np.exp(-(((np.arange(1024) - 400) / 120) ** 2))).astype(np.int64)
    alone = np.mean([kld(counts, run("geb", counts, 0.05, s).counts) for s in range(2)])
    together = np.mean([kld(counts, run("covariate", counts, 0.05, s).counts) for s in range(2)])
    assert together < 0.7 * alone


def test_bins_without_an_order_get_the_estimate_that_needs_none():
    rough = np.random.default_rng(3).integers(0, 5000, 1024)
    unordered = Bins.numbered(rough.size, ordered=False)
    assert release_histogram(rough, epsilon=1, bins=unordered, meter=Meter(source=Seeded(0))).mechanism == "geb"


def test_ranges_by_the_default_are_far_better_than_by_ahp():
    counts = np.random.default_rng(3).integers(0, 60, 600)
    g = np.random.default_rng(4)
    ends = np.sort(g.integers(0, 601, (200, 2)), axis=1)

    def error(name):
        return np.mean([range_mse(counts, run(name, counts, 0.3, s).counts, ends[:, 0], ends[:, 1]) for s in range(8)])

    assert error("auto_ranges") < 0.6 * error("ahp")


def test_budgets_per_bin_put_the_noise_where_it_is_asked():
    counts = np.full(4000, 100)
    budgets = np.where(np.arange(4000) < 2000, 0.1, 1.0)
    for name in ("identity", "hierarchical"):
        meter = Meter(source=Seeded(1))
        h = release_histogram(counts, epsilon=1, bins=4000, meter=meter, mechanism=name, bin_budgets=budgets)
        assert h.flat[:2000].std() > 5 * h.flat[2000:].std()
        assert h.noise[:2000].mean() > 5 * h.noise[2000:].mean()


def test_metrics():
    assert kld([3, 1], [30, 10]) < 1e-3  # only the mixture with uniform is left
    assert np.isfinite(kld([3, 1], [0, 0]))
    assert np.isfinite(kld([3, 1], [-5, 1]))
    assert l1([1, 1], [1, 1]) == 0
    assert range_mse([1, 1], [2, 2], np.array([0]), np.array([2])) == 4.0


def test_one_bin_and_empty_histograms_work_everywhere():
    for name in NAMES:
        for size in (1, 2, 3):
            h = release_histogram(
                np.zeros(size, dtype=int), epsilon=1, bins=Bins.numbered(size), meter=Meter(source=Seeded(0)), mechanism=name
            )
            assert h.counts.shape == (size,)
            assert np.isfinite(h.counts).all()
            assert np.isfinite(h.noise).all()
