"""The default for the shape: what it costs, what its parts compute, and that it helps where it says."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from sfumato.histograms.estimation import around, partitions
from sfumato.histograms.estimation.blurred import seen_through_noise
from sfumato.histograms.estimation.metrics import kld
from sfumato.histograms.estimation.partitions import Levels, levels
from sfumato.histograms.mechanisms.shape import LOOKS, auto_shape, hold_total, look_at_total
from sfumato.privacy import NANO, Exact, Meter, Seeded
from sfumato.privacy.noise import laplace, laplace_variance
from sfumato.registry import mechanism
from sfumato.testing import replay


def run(name, counts, epsilon, seed):
    rates = np.full(counts.size, int(epsilon * NANO))
    return mechanism("histogram", name).make(Exact(counts), rates=rates, meter=Meter(source=Seeded(seed)))


def looked(counts, rates, source):
    return look_at_total(Exact(counts), rates, Meter(source=source))


@pytest.mark.parametrize(("each", "fewest"), [(0, 3), (10_000, 1)])
def test_a_clear_total_is_looked_at_once_and_the_loss_is_the_budget_however_often(each, fewest):
    counts, rates = np.full(200, each), np.full(200, NANO // 10)
    rates[::2] //= 2
    seen = set()
    for seed in range(20):
        meter = Meter(source=Seeded(seed))
        made = auto_shape(Exact(counts), rates=rates, meter=meter)
        seen.add(made.parameters["looks"])
        assert (made.losses == rates).all()
        assert meter.spent().total == int(rates.max())
        bins, *totals = made.measurements
        assert (bins.rates + sum(int(m.rates[0]) for m in totals) == rates).all()
        assert [int(m.rates[0]) for m in totals] == [int(rates.min()) * k // 1000 for k in LOOKS[: len(totals)]]
    assert fewest in seen


def test_every_call_differs_by_one_unit_for_a_neighbour_and_whether_there_is_another_follows_from_the_noise():
    here = np.full(150, 2)
    for where in (0, 149):
        there = here + (np.arange(150) == where)

        def release(table, source):
            return auto_shape(Exact(table), rates=np.full(150, NANO // 5), meter=Meter(source=source)).counts

        for seed in range(6):
            found = replay(release, here, there, source=seed)
            assert found.same_output
            assert found.loss == sum(int(np.max(pair.here.public["rate"])) for pair in found.calls) == NANO // 5
            assert all(np.abs(pair.here.exact - pair.there.exact).sum() == 1 for pair in found.calls)


def test_the_total_has_the_noise_it_pays_for_and_noise_30_percent_too_small_is_rejected():
    rates = np.full(128, 200 * NANO)
    drawn = np.array([looked(np.full(128, 50), rates, Seeded(seed))[0].totals[0] for seed in range(1500)]) - 6400
    stated = float(laplace_variance(np.array([NANO]))[0])
    reach = 5 * (drawn**2).std() / np.sqrt(drawn.size)
    assert abs((drawn**2).mean() - stated) < reach
    assert abs((0.7 * drawn) ** 2).mean() < stated - reach / 2


def test_a_budget_or_histogram_too_small_for_a_look_has_none():
    assert looked(np.zeros(500, dtype=int), np.full(500, 100), Seeded(0)) == ()
    assert looked(np.zeros(100, dtype=int), np.full(100, NANO), Seeded(0)) == ()


def partitions_of(low, high):
    """All ways to cut [low, high) in halves again and again, with their probabilities beforehand."""
    yield ((low, high),), 0.5 if high - low > 2 else 1.0
    if high - low > 2:
        middle = (low + high) // 2
        for (left, p), (right, q) in product(partitions_of(low, middle), partitions_of(middle, high)):
            yield left + right, 0.5 * p * q


def test_one_pass_averages_over_all_partitions():
    g = np.random.default_rng(5)
    pulls, weights = g.normal(0, 2, 16), g.gamma(2.0, 0.3, 16)
    found, evidence = partitions._over_partitions(pulls[None], weights[None], 1.5, 2.0)
    total, mean = 0.0, np.zeros(16)
    for cuts, chance in partitions_of(0, 16):
        likely, level = chance, np.zeros(16)
        for low, high in cuts:
            one, at = partitions._one_stretch(
                pulls[None, low:high].sum(axis=1, keepdims=True),
                weights[None, low:high].sum(axis=1, keepdims=True),
                1.5,
                2.0,
            )
            likely *= float(np.exp(one[0, 0]))
            level[low:high] = at[0, 0]
        total += likely
        mean += likely * level
    assert np.isclose(evidence[0], np.log(total))
    assert np.allclose(found[0], mean / total)


def test_the_evidence_of_a_stretch_is_the_integral_over_its_level():
    pull, weight, middle, size = 1.7, 0.8, 1.5, 2.0
    at = np.linspace(0, 200, 2_000_001)
    likely = np.exp(pull * (at - middle) - weight * (at - middle) ** 2 / 2)
    expected, mean = likely[0], 0.0
    for centre, factors in ((middle, partitions.SIZES), (0.0, partitions.SMALL)):
        for factor in factors:
            prior = np.exp(-(((at - centre) / (factor * size)) ** 2) / 2)
            prior[0] /= 2  # half a step of the grid lies above 0
            prior /= prior.sum()
            expected += (prior * likely).sum()
            mean += (prior * likely * at).sum()
    one, level = partitions._one_stretch(np.array([[pull]]), np.array([[weight]]), middle, size)
    assert np.isclose(np.exp(one[0, 0]), expected / (1 + len(partitions.SIZES) + len(partitions.SMALL)), rtol=1e-4)
    assert np.isclose(level[0, 0] + middle, mean / expected, rtol=1e-4)


@pytest.mark.parametrize(("apart", "spread", "scale"), [(0.5, 2.0, 1.0), (-7.0, 1.0, 3.0), (30.0, 4.0, 2.0)])
def test_a_normal_count_through_laplace_noise_is_the_integral(apart, spread, scale):
    x = np.linspace(-60, 60, 400_001)
    joint = (
        np.exp(-((x / spread) ** 2) / 2) / (spread * np.sqrt(2 * np.pi)) * np.exp(-np.abs(apart - x) / scale) / (2 * scale)
    )
    density, shift, variance = seen_through_noise(np.array(apart), np.array(spread), np.array(scale))
    assert np.isclose(density, np.log(np.trapezoid(joint, x)), rtol=1e-5)
    assert np.isclose(shift, (joint * x).sum() / joint.sum(), rtol=1e-4)
    assert np.isclose(variance, (joint * (x - shift) ** 2).sum() / joint.sum(), rtol=1e-4)


def test_a_level_for_others_has_not_seen_the_bin_itself():
    noise = laplace(np.full(512, NANO // 10), source=Seeded(4)) + 40
    more = noise.copy()
    more[100::8] += 25  # one fold, from bin 100 on (100 mod 8 = 4)
    rates = np.full(512, NANO // 10)
    before, after = levels(noise, rates), levels(more, rates)
    same = np.arange(512) % 8 == 4
    # what the fold itself is told moves only by the levels' common settings, what the others are told moves with it
    assert np.abs(after.others - before.others)[same].mean() < 0.25 * np.abs(after.others - before.others)[~same].mean()


def test_the_total_is_held_by_what_is_unsure():
    mean, spread = np.array([1.0, 1.0, 500.0]), np.array([4.0, 4.0, 2.0])
    moved = hold_total(mean, spread, np.full(3, NANO), 510.0, 1e-9)
    assert np.isclose(moved.sum(), 510, rtol=1e-3)
    assert moved[0] > 3 * abs(moved[2] - 500) / 2
    assert (hold_total(mean, spread, np.full(3, NANO), 0.0, 1e-9) >= 0).all()


def test_small_moves_are_taken_back_where_that_gains_absolute_error():
    counts, rates = np.random.default_rng(2).poisson(30, 4000), np.full(4000, NANO)
    for seed in range(3):
        noisy = counts + laplace(rates, source=Seeded(seed))
        kept = run("geb", counts, 1.0, seed).counts
        assert np.abs(kept - counts).mean() < 1.03 * np.abs(noisy - counts).mean()
        assert ((kept - counts) ** 2).mean() < 0.98 * ((noisy - counts) ** 2).mean()


def test_stretches_are_found_in_the_noise_and_spikes_are_kept():
    smooth, rough = np.repeat([2, 9, 1, 4], 256), np.random.default_rng(3).integers(0, 5000, 1024)
    lone = np.where(np.arange(1024) % 100 == 7, 900, 0)

    def error(name, counts, epsilon):
        return np.mean([kld(counts, run(name, counts, epsilon, seed).counts) for seed in range(4)])

    assert error("auto_shape", smooth, 0.5) < 0.5 * error("geb", smooth, 0.5)
    assert error("auto_shape", rough, 1.0) < 1.05 * error("identity", rough, 1.0)
    assert error("auto_shape", lone, 0.1) < 0.2 * error("identity", lone, 0.1)


def test_uneven_full_stretches_do_not_blur_the_empty_ones_between_them():
    full = np.repeat(np.arange(36) % 3 == 0, 7)
    counts = np.where(full, np.where(np.arange(full.size) % 2 == 0, 6000, 14_000), 0)
    rates = np.full(full.size, NANO // 100)  # noise of 141 in a bin
    for seed in range(4):
        found = levels(counts + laplace(rates, source=Seeded(seed)), rates)
        assert found.all[~full].mean() < 400
        assert found.others[~full].mean() < 1200  # without a bin's own noise the edges are less clear
        assert found.all[full].mean() > 5000


def test_that_all_bins_but_those_at_their_level_are_empty_is_one_of_the_explanations_and_only_once():
    noisy = laplace(np.full(400, NANO), source=Seeded(0)).astype(float)
    parts, _ = around._parts(noisy, np.ones(400), Levels(np.full(400, 0.3), np.full(400, 0.3)))
    gaps = [m for m in around._explanations(parts, np.full(400, 0.3), 1.0) if m.beyond is not None]
    empty = [m for m in gaps if not m.prior[around.NEAR + 1 :].any()]
    assert len(gaps) > len(empty) == 1
    assert (parts.posterior(empty[0])[0] < 1e-3).all()
