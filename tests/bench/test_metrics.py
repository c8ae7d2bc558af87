"""What is measured of a classifier, and how means are told, against scikit-learn and by hand."""

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from sfumato.bench.metrics import (
    auc,
    balanced_accuracy,
    chosen_across,
    halves,
    mean_and_error,
    measured_by_halves,
    summarise,
)


def test_the_area_agrees_with_scikit_learn_with_ties_and_several_classes():
    rng = np.random.default_rng(1)
    two = rng.integers(0, 2, 400)
    scores = np.round(two + rng.normal(0, 1.0, 400), 1)  # rounded, so that there are ties
    assert auc(two, scores) == pytest.approx(roc_auc_score(two, scores))
    assert auc(two, np.column_stack([-scores, scores])) == pytest.approx(roc_auc_score(two, scores))
    four = rng.integers(0, 4, 500)
    shares = rng.dirichlet(np.ones(4), 500) + 0.3 * np.eye(4)[four]
    shares /= shares.sum(axis=1, keepdims=True)
    assert auc(four, shares) == pytest.approx(roc_auc_score(four, shares, multi_class="ovr", average="macro"))


def test_a_class_that_nobody_has_is_left_out_of_the_area():
    shares = np.array([[0.9, 0.1, 0.0], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.2, 0.7, 0.1]])
    assert auc([0, 0, 1, 1], shares) == 1.0
    assert auc([1, 1, 1, 1], shares) == 0.5


def test_balanced_accuracy_agrees_with_scikit_learn():
    rng = np.random.default_rng(2)
    truth, said = rng.choice(3, 300, p=[0.8, 0.15, 0.05]), rng.integers(0, 3, 300)
    assert balanced_accuracy(truth, said) == pytest.approx(balanced_accuracy_score(truth, said))


def test_the_error_of_a_mean_is_that_of_the_mean():
    values = np.random.default_rng(3).normal(size=(4000, 6))
    found = np.array([mean_and_error(row) for row in values])
    assert found[:, 0].std() == pytest.approx(1 / np.sqrt(6), rel=0.05)
    assert np.mean(found[:, 1] ** 2) == pytest.approx(1 / 6, rel=0.05)  # n - 1 below the line: not biased
    assert summarise([{"error": 0.5}])["error_se"] is None


def test_halves_are_the_same_for_a_row_in_every_split():
    one, other = (np.random.default_rng(s).permutation(100)[:40] for s in (1, 2))
    for rows in (one, other):
        even, odd = halves(rows)
        assert (even ^ odd).all()
    shared = np.intersect1d(one, other)
    assert shared.size > 5
    sides = [dict(zip(rows.tolist(), halves(rows)[0].tolist(), strict=True)) for rows in (one, other)]
    assert all(sides[0][row] == sides[1][row] for row in shared.tolist())


def test_the_best_of_many_useless_settings_is_not_better_than_chance():
    rng = np.random.default_rng(4)
    rows, truth = np.arange(200), rng.integers(0, 2, 200)
    candidates = {}
    for number in range(60):
        said = rng.integers(0, 2, 200)
        candidates[str(number)] = [measured_by_halves(rows, truth, said, said.astype(float))]
    flattered = min(whole["error"] for ((_, _, whole),) in candidates.values())
    ((honest,), _) = chosen_across(candidates)
    assert flattered < 0.45
    assert abs(honest["error"] - 0.5) < 3 * np.sqrt(0.25 / 200)
