import numpy as np
import pytest

from sfumato.classifiers.counting.main_effects import main_effects
from sfumato.classifiers.counting.terms import cell_scores


@pytest.mark.parametrize("classes", [2, 3])
def test_shares_add_up_and_are_near_the_truth_through_noise(classes):
    draw = np.random.default_rng(5)
    effects = [draw.normal(size=(classes, n)) for n in (6, 5, 4)]
    logits = effects[0][:, :, None, None] + effects[1][:, None, :, None] + effects[2][:, None, None, :]
    true = np.exp(logits) / np.exp(logits).sum(axis=0)
    noisy = np.maximum(20 * true + draw.laplace(size=true.shape), 0)
    found = main_effects(noisy)
    assert found.sum(axis=0) == pytest.approx(np.ones(true.shape[1:]))
    raw = (noisy + 1e-9) / (noisy + 1e-9).sum(axis=0)
    assert np.abs(found - true).mean() < 0.7 * np.abs(raw - true).mean()


def test_one_class_or_none_gives_the_overall_shares():
    counts = np.zeros((3, 2, 2))
    assert main_effects(counts) == pytest.approx(np.full((3, 2, 2), 1 / 3))
    counts[1] = 5.0
    shares = main_effects(counts)
    assert (shares[1] > 0.8).all()
    assert shares == pytest.approx(np.broadcast_to(shares[:, :1, :1], shares.shape))


def test_a_class_without_counts_gets_no_share_and_the_scores_stay_finite():
    counts = np.array([[[9, 0], [4, 4]], [[0, 9], [4, 4]], [[-3, 0], [0, -1]]])
    scores = cell_scores(counts, noise=2.0, prior=1.0)
    assert np.isfinite(scores).all()
    assert scores.sum(axis=0) == pytest.approx(np.zeros((2, 2)))
    assert scores[:, 0, 0].argmax() == 0
    assert scores[:, 0, 1].argmax() == 1


def test_where_noise_drowns_a_cell_the_columns_decide():
    counts = np.array([[[900, 100, 800], [0, 90, 700]], [[100, 900, 200], [0, 910, 300]]])
    assert cell_scores(counts, noise=1.0, prior=1.0)[:, 1, 0].argmax() == 0
