"""The bench's own arithmetic, on small made sets."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.bench import histograms_accuracy as accuracy
from sfumato.bench import histograms_fresh as fresh
from sfumato.bench import histograms_ranges as ranges
from sfumato.bench import histograms_slides as slides
from sfumato.bench.histograms_data import Case, kept_aside, made


def test_summary_is_a_geometric_mean_of_ratios():
    rows = [{"set": "a", "ahp_greedy": 1.0, "geb": 0.5}, {"set": "b", "ahp_greedy": 2.0, "geb": 4.0}]
    found = accuracy.summary(rows)["geb"]
    expected = {"geometric_mean": 1.0, "geometric_mean_se": None, "worst": 2.0, "at_most_0.9": 1, "cells": 2}
    assert found == expected
    noisy = [row | {"geb_se": 0.1 * row["geb"], "ahp_greedy_se": 0.0} for row in rows]
    assert accuracy.summary(noisy)["geb"]["geometric_mean_se"] == pytest.approx(0.1 / np.sqrt(2), abs=1e-4)


def test_cells_skip_what_needs_order_and_use_independent_noise():
    counts = np.arange(80) % 9
    cases = [Case("one", counts), Case("two", counts, ordered=False)]
    rows = accuracy.cells(cases, purpose="shape", repeats=1, epsilons=(0.5,), progress=lambda _: None)
    assert "covariate" in rows[0]
    assert "covariate" not in rows[1]
    assert rows[0]["identity"] != rows[1]["identity"]
    ranges = accuracy.cells(cases, purpose="ranges", repeats=1, epsilons=(0.5,), progress=lambda _: None)
    assert [row["set"] for row in ranges] == ["one"]


def test_slides_state_the_true_cost():
    rows = slides.table({"TINY": [np.arange(9)]}, deltas=(0.0, 0.5), epsilons=(1.0,), repeats=1, progress=lambda _: None)
    assert rows[0]["true_cost"] == pytest.approx(1.0)
    assert rows[1]["true_cost"] == pytest.approx(1.4)
    assert all(np.isfinite(row[k]) for row in rows for k in ("published", "same_loss_ahp", "sound"))


def test_families_are_what_they_say():
    assert {c.name: c.counts.sum() for c in made()} == {"LOGNORMAL": 3544, "EXPONENTIAL": 25929, "ZIPFUSER": 27149}
    assert all(c.aside for c in kept_aside())


def test_fresh_histograms_span_all_strengths_of_signal_and_half_are_kept_aside():
    cases = fresh.fresh_cases()
    seen = {case.name.split("-")[0] for case in cases if not case.aside}
    apart = {case.name.split("-")[0] for case in cases if case.aside}
    assert len(seen) == len(apart) >= 6
    assert not seen & apart
    assert {fresh.signal_class(case.counts, epsilon) for case in cases for epsilon in fresh.EPSILONS} == set(range(6))


def test_the_yardstick_finds_steps_and_its_noise_follows_epsilon():
    counts = np.repeat([50, 400, 0, 90], 32)
    near, far = (fresh.dawa_reference(counts, epsilon, np.random.default_rng(3)) for epsilon in (5.0, 0.01))
    assert np.unique(near).size < 20
    assert np.abs(near - counts).max() < 10 < np.abs(far - counts).max()


def test_fresh_ranges_in_a_small_version():
    found = ranges.run(quick=True, data=None, progress=lambda _: None)["figures"]["fresh_ranges"]
    classes = found["all"]["classes"]
    assert len(classes) == 6
    assert sum(c["cells"] for c in classes) == sum(c["cells"] for part in ("seen", "aside") for c in found[part]["classes"])
    # few cells and one draw each: far from the limits of the claims, which the whole run keeps
    assert found["all"]["geometric_mean"] < 1.0
