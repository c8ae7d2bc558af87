"""Intervals hold as often as they say: ε from .01 to 100, 10 to 10 million people; also by mechanism, and they can fail."""

from dataclasses import replace

import numpy as np
import pytest

from sfumato.bench.people_coverage import BUDGETS, EPSILONS, SIZES, coverage_claims, covered, estimates
from sfumato.people.error_law import LaplacePlusNormal, RatioLaw

RUNS = {"count": 50, "sum": 50, "shifted sum": 25, "mean": 20, "histogram": 4}


def _least(runs, confidence):
    """A binomial count that is undercut once in about 100,000 runs: 4.3 standard errors below its mean, and a bit."""
    return runs * confidence - 4.5 * np.sqrt(runs * confidence * (1 - confidence)) - 1


@pytest.mark.parametrize("budgets", BUDGETS)
@pytest.mark.parametrize("kind", RUNS)
def test_intervals_hold(kind, budgets):
    everything = []
    for epsilon in EPSILONS:
        for n in SIZES:
            inside = covered(kind, budgets, epsilon, n, runs=RUNS[kind], confidence=0.9)
            # The bins of one histogram are not independent of each other: only all of them together are judged.
            if kind != "histogram":
                assert sum(inside) >= _least(len(inside), 0.9), (epsilon, n)
            everything += inside
    runs = len(everything) if kind != "histogram" else len(everything) / 5
    assert np.mean(everything) >= _least(runs, 0.9) / runs


@pytest.mark.parametrize(
    "mechanism", ["affine", "minimum", "threshold", "stretching", "robust", "partition", "privacy-aware"]
)
@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_intervals_of_every_mechanism_hold(kind, mechanism):
    inside = covered(kind, "three tiers", 1.0, 20_000, runs=60, confidence=0.9, mechanism=mechanism)
    assert sum(inside) >= _least(60, 0.9)


@pytest.mark.parametrize("kind", ["sum", "shifted sum", "mean"])
def test_what_a_coarse_lattice_rounds_is_what_the_interval_needs(kind):
    """The check above must be able to fail: the same intervals without their rounding are too narrow."""
    found = list(estimates(kind, "one ε", 20.0, 100_000, runs=40, steps=1000))
    with_rounding = [low <= truth <= high for low, high, truth in ((*e.interval(0.9), t) for e, t in found)]
    bare = [low <= truth <= high for low, high, truth in ((*replace(e, rounding=0.0).interval(0.9), t) for e, t in found)]
    assert sum(with_rounding) >= _least(40, 0.9)
    assert sum(bare) < _least(40, 0.9)


def test_noise_that_is_larger_than_its_law_is_noticed():
    found = list(estimates("mean", "one ε", 0.1, 100_000, runs=300))
    half = [e.law.halfwidth(0.9) for e, _ in found]
    off = [abs(e.value - truth) for e, truth in found]
    assert np.mean(np.less_equal(off, half)) >= _least(300, 0.9) / 300
    assert np.mean(np.less_equal(off, np.multiply(half, 0.7))) < _least(300, 0.9) / 300


def test_the_law_of_a_ratio_holds_where_the_count_is_as_noisy_as_it_may_be():
    """To first order such intervals fail: the count has noise of a fifth of its size."""
    rng = np.random.default_rng(3)
    total, count, reach = 45.0, 50.0, 1.0
    inside = []
    for e, f in rng.laplace(size=(4000, 2)) * 10:
        law = RatioLaw(LaplacePlusNormal((10.0,)), LaplacePlusNormal((10.0,)), (total + e) / (count + f), count + f, reach)
        inside.append(count + f <= 0 or abs(law.ratio - total / count) <= law.halfwidth(0.9))
        if len(inside) == 600:
            break
    assert sum(inside) >= _least(600, 0.9)


def test_claims_of_the_bench_are_about_the_smallest_cell():
    table = {f"count, {b}": {"1.0": {"10": 0.95, "1000": 0.5 if b == "one ε" else 0.96}} for b in BUDGETS}
    claims = coverage_claims(table, runs=400)
    assert [c["holds"] for c in claims] == [False, True, False, True]
    assert claims[0]["figure"] == 0.5
