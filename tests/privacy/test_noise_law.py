"""The laws of the draws. Every test accepts the right law and, run on noise 30% too small, rejects it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import opendp.prelude as dp
import pytest
from scipy import integrate, stats

from sfumato.errors import InputError
from sfumato.privacy import noise
from sfumato.privacy.source import SECURE, Seeded
from sfumato.privacy.units import NANO

SURE = 1e-7  # a right law fails below this once in ten million runs
SMALLER = 10 / 7  # the rate of noise that is 30% too small


def two_sided_cells(rate: int, cells: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Integer edges and probabilities of P(X = x) ∝ exp(-|x| rate / 1e9): ``X <= edge`` cut into about equal cells."""
    q = math.exp(-rate / NANO)
    reach = math.ceil(12 * NANO / rate) + 2
    edges = np.unique(np.round(np.linspace(-1, 1, cells + 1)[1:-1] ** 3 * reach / 3).astype(np.int64))
    # For x < 0: P(X <= x) = q**-x / (1 + q); for x >= 0: 1 - q**(x + 1) / (1 + q).
    below = np.where(edges < 0, q ** np.abs(edges) / (1 + q), 1 - q ** (edges + 1.0) / (1 + q))
    return edges, np.diff(np.concatenate([[0.0], below, [1.0]]))


def fit(draws: np.ndarray, rate: int) -> float:
    """p-value of a chi-square test of `draws` against the exact law."""
    edges, p = two_sided_cells(rate)
    found = np.bincount(np.searchsorted(edges, draws, side="left"), minlength=p.size)
    return pooled(found, p * draws.size)


def pooled(found: np.ndarray, expected: np.ndarray) -> float:
    few = expected < 10
    if few.any():
        found = np.append(found[~few], found[few].sum())
        expected = np.append(expected[~few], expected[few].sum())
    keep = expected > 0
    assert found[~keep].sum() == 0
    return float(stats.chisquare(found[keep], expected[keep] * found.sum() / expected[keep].sum()).pvalue)


RATES = [1, 1000, 10**6, 10**8, NANO, 3 * NANO]


def test_each_coordinate_has_the_law_of_its_own_rate():
    n = 100_000
    draws = noise.laplace(np.tile(RATES, n), source=SECURE).reshape(n, len(RATES))
    p = [fit(draws[:, j], rate) for j, rate in enumerate(RATES)]
    assert min(p) > SURE, p


def test_noise_30_percent_too_small_is_rejected():
    n = 100_000
    small = np.array([round(r * SMALLER) for r in RATES[1:]])
    draws = noise.laplace(np.tile(small, n), source=SECURE).reshape(n, small.size)
    p = [fit(draws[:, j], rate) for j, rate in enumerate(RATES[1:])]
    assert max(p) < SURE, p


def test_coordinates_are_independent():
    draws = noise.laplace(np.full((50_000, 4), 10**8), source=SECURE).astype(float)
    correlation = np.corrcoef(draws, rowvar=False)[np.triu_indices(4, 1)]
    assert np.abs(correlation).max() < 6 / math.sqrt(50_000)
    assert abs(np.corrcoef(draws[:-1, 0], draws[1:, 0])[0, 1]) < 6 / math.sqrt(50_000)


def test_variance_formula():
    for rate in (10**6, 10**8, NANO, 5 * NANO):
        q = math.exp(-rate / NANO)
        assert noise.laplace_variance(rate) == pytest.approx(2 * q / (1 - q) ** 2, rel=1e-9)
    draws = noise.laplace(np.full(200_000, 10**8), source=SECURE).astype(float)
    # The kurtosis of a Laplace law is 6, so the variance of n draws has relative error sqrt(5 / n).
    assert draws.var() / noise.laplace_variance(10**8) == pytest.approx(1, abs=6 * math.sqrt(5 / 200_000))


def test_same_law_as_opendp():
    dp.enable_features("contrib")
    n, rate = 20_000, 10**8
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    theirs = np.array(dp.m.make_laplace(*space, scale=NANO / rate)([0] * n))
    edges, _ = two_sided_cells(rate, 20)

    def table(ours: np.ndarray) -> np.ndarray:
        cells = [np.bincount(np.searchsorted(edges, d), minlength=edges.size + 1) for d in (theirs, ours)]
        return np.array(cells)[:, np.sum(cells, axis=0) > 20]

    assert stats.chi2_contingency(table(noise.laplace(np.full(n, rate)))).pvalue > SURE
    assert stats.chi2_contingency(table(noise.laplace(np.full(n, round(rate * SMALLER))))).pvalue < SURE


# --- the choice ------------------------------------------------------------------------------------------------------


def noisy_max_probabilities(scores: list[float], eta: float) -> np.ndarray:
    """P(i wins) = ∫ e^-x Π_j P(E_j < x + η (s_i - s_j)) dx, by quadrature."""
    out = []
    for i, s in enumerate(scores):
        gaps = [eta * (s - t) for j, t in enumerate(scores) if j != i]

        def density(x: float, gaps: list[float] = gaps) -> float:
            return math.exp(-x) * math.prod(max(0.0, 1 - math.exp(-(x + g))) if x + g > 0 else 0.0 for g in gaps)

        cuts = [*sorted({max(0.0, -g) for g in gaps} | {0.0}), 60.0 + max(0.0, -min(gaps))]
        out.append(sum(integrate.quad(density, a, b, limit=200)[0] for a, b in itertools.pairwise(cuts)))
    return np.array(out)


def permute_and_flip_probabilities(scores: list[float], eta: float) -> np.ndarray:
    """By enumeration of every order: the first whose coin with P(heads) = exp(-η (best - score)) shows heads."""
    heads = [math.exp(-eta * (max(scores) - s)) for s in scores]
    out = np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        left = 1 / math.factorial(len(scores))
        for i in order:
            out[i] += left * heads[i]
            left *= 1 - heads[i]
    return out


SETS = [[0, 1, 3], [5, 5, 5, 5], [0, 2, 2, 7, 1], [0.5, 0.25, -3.0]]


@pytest.mark.parametrize("scores", SETS)
def test_noisy_maximum_is_permute_and_flip(scores):
    assert noisy_max_probabilities(scores, 0.7) == pytest.approx(permute_and_flip_probabilities(scores, 0.7), abs=1e-8)


@pytest.mark.parametrize("scores", SETS)
def test_choice_has_its_exact_probabilities(scores):
    n, rate = 6_000, 700_000_000
    p = permute_and_flip_probabilities(scores, rate / NANO)
    found = np.bincount([noise.choose(scores, rate=rate) for _ in range(n)], minlength=len(scores))
    assert pooled(found, n * p) > SURE


def test_choice_with_noise_30_percent_too_small_is_rejected():
    n, scores, rate = 12_000, [0, 1, 3], 700_000_000
    p = permute_and_flip_probabilities(scores, rate / NANO)
    found = np.bincount([noise.choose(scores, rate=round(rate * SMALLER)) for _ in range(n)], minlength=3)
    assert pooled(found, n * p) < SURE


@pytest.mark.parametrize("spread", [1, 2])
def test_loss_of_the_choice_is_rate_times_spread(spread):
    """Brute force over all changes in {0..spread}: the loss never passes the price and comes close to it."""
    eta, worst = 0.4, 0.0
    for scores in itertools.product(range(3), repeat=3):
        before = permute_and_flip_probabilities(list(scores), eta)
        for change in itertools.product(range(spread + 1), repeat=3):
            after = permute_and_flip_probabilities([s + c for s, c in zip(scores, change, strict=True)], eta)
            worst = max(worst, float(np.abs(np.log(after / before)).max()))
    assert worst <= eta * spread + 1e-12
    assert worst > 0.6 * eta * spread


def test_a_million_scores():
    scores = np.zeros(1_000_000)
    scores[123_456] = 40
    assert noise.choose(scores, rate=NANO) == 123_456
    assert noise.choose(scores.astype(np.int64), rate=NANO) == 123_456


# --- sampling and spherical noise -------------------------------------------------------------------------------------


def test_binomial_law():
    n, p = 6, 0.3
    kept = noise.binomial(np.full(40_000, n), np.full(40_000, int(p * 2**63)))
    law = stats.binom.pmf(np.arange(n + 1), n, p)
    assert pooled(np.bincount(kept, minlength=n + 1), law * kept.size) > SURE
    wrong = stats.binom.pmf(np.arange(n + 1), n, 0.7 * p)
    assert pooled(np.bincount(kept, minlength=n + 1), wrong * kept.size) < SURE


def test_binomial_of_many_and_of_certainties():
    whole = 1 << 63
    assert noise.binomial([3_000_000, 9, 4], [whole, 0, np.uint64(whole)]).tolist() == [3_000_000, 0, 4]
    kept = int(noise.binomial(3_000_000, whole >> 1))
    assert abs(kept - 1_500_000) < 7 * math.sqrt(750_000)


@pytest.mark.parametrize(
    ("counts", "thresholds"), [([1], [0.5]), ([-1], [1]), ([1.5], [1]), ([1], [-1]), ([1], [(1 << 63) + 1])]
)
def test_binomial_refuses_what_is_no_count_or_probability(counts, thresholds):
    with pytest.raises(InputError, match=r"probability|counts"):
        noise.binomial(counts, thresholds)


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_spherical_noise(dimension):
    beta, source = 2.5, Seeded(dimension)
    draws = np.array([noise.spherical(dimension, beta, source=source) for _ in range(6_000)])
    norm = np.linalg.norm(draws, axis=1)
    assert stats.kstest(norm, stats.gamma(dimension, scale=1 / beta).cdf).pvalue > SURE
    assert stats.kstest(0.7 * norm, stats.gamma(dimension, scale=1 / beta).cdf).pvalue < SURE
    direction = draws / norm[:, None]
    assert np.abs(direction.mean(axis=0)).max() < 6 / math.sqrt(6_000)
    if (
        dimension > 1
    ):  # the square of a coordinate of a uniform direction is Beta(1/2, (d - 1)/2), and no coordinate is special
        for j in range(dimension):
            assert stats.kstest(direction[:, j] ** 2, stats.beta(0.5, (dimension - 1) / 2).cdf).pvalue > SURE
        assert abs(np.corrcoef(norm, direction[:, 0] ** 2)[0, 1]) < 6 / math.sqrt(6_000)


def test_coordinatewise_noise():
    rate = 2.5
    draws = noise.coordinatewise(20_000, rate, source=Seeded(3))
    assert stats.kstest(draws, stats.laplace(scale=1 / rate).cdf).pvalue > SURE
    assert stats.kstest(0.7 * draws, stats.laplace(scale=1 / rate).cdf).pvalue < SURE


@pytest.mark.parametrize(("dimension", "beta"), [(0, 1.0), (3, 0.0), (3, math.nan), (3, -1.0)])
def test_spherical_noise_refuses(dimension, beta):
    with pytest.raises(InputError):
        noise.spherical(dimension, beta)
