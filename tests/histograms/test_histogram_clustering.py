"""AHP's clustering: the optimum equals brute force, the greedy one is never better."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.histograms.estimation.clustering import clustering_cost, greedy_clusters, optimal_clusters


def brute_force(values, penalty):
    n = len(values)
    best = [0.0] + [np.inf] * n
    for j in range(1, n + 1):
        for i in range(j):
            part = values[i:j].astype(float)
            best[j] = min(best[j], best[i] + ((part - part.mean()) ** 2).sum() + penalty / (j - i))
    return best[n]


VALUES = st.one_of(
    st.lists(st.integers(0, 6), min_size=1, max_size=18),
    st.lists(st.integers(0, 60), min_size=1, max_size=18),
    st.lists(st.sampled_from([0, 0, 0, 1, 2, 9, 10, 400, 10**7]), min_size=1, max_size=18),
)
PENALTY = st.sampled_from([0.01, 0.5, 1.0, 1.02, 4.0, 30.0, 89.0, 2000.0])


@settings(max_examples=150, deadline=None)
@given(VALUES, PENALTY)
def test_the_optimum_is_that_of_brute_force(values, penalty):
    ordered = np.sort(np.array(values, dtype=np.int64))
    least = brute_force(ordered, penalty)
    found = clustering_cost(ordered, optimal_clusters(ordered, penalty), penalty)
    greedy = clustering_cost(ordered, greedy_clusters(ordered, penalty), penalty)
    assert abs(found - least) <= 1e-9 * (1 + least)
    assert greedy >= least - 1e-9 * (1 + least)


def test_a_run_of_equal_values_may_be_cut_and_then_is():
    values = np.array([0, 99, 99, 198], dtype=np.int64)
    penalty = 10_000.0
    starts = optimal_clusters(values, penalty)
    assert starts.tolist() == [0, 2]
    assert abs(clustering_cost(values, starts, penalty) - brute_force(values, penalty)) < 1e-6


def test_long_runs_are_quick_and_optimal_against_thinned_brute_force():
    values = np.sort(np.concatenate([np.zeros(200_000), np.full(5, 7), np.arange(40, 60)])).astype(np.int64)
    starts = optimal_clusters(values, 89.0)
    assert clustering_cost(values, starts, 89.0) <= clustering_cost(values, greedy_clusters(values, 89.0), 89.0)
    assert starts[0] == 0
    assert starts[1] >= 200_000 - 1
