"""The fit against brute force, its limits, and what it does to noise."""

import json
import time
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from sfumato.errors import InputError
from sfumato.grids.graphical import Fitted, Marginal, fit, fitting
from sfumato.grids.graphical.descent import lowest
from sfumato.grids.graphical.fitting import own_shares
from sfumato.grids.graphical.marginal import merged, summed, total_of
from sfumato.grids.graphical.shrinking import best_softness, shrunk

SIZES = (3, 2, 4)
SETS = [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2)]


def noisy_marginals(joint, sets, noise, rng):
    every = tuple(range(joint.ndim))
    made = []
    for s in sets:
        counts = summed(joint, every, s)
        made.append(Marginal(s, counts + rng.laplace(0, noise / np.sqrt(2), counts.shape), noise))
    return made


def softness_of(marginals, base, total):
    """The softness of each marginal, by the equation of a cell by itself and Stein's estimate of its error."""
    found = []
    for m in marginals:
        if len(m.columns) == 1:
            found.append(m.noise / np.sqrt(2))
            continue
        aim = m.counts - (m.counts.sum() - total) / m.counts.size
        expected = total * np.exp(np.add.outer(*(base[c] for c in m.columns)))
        found.append(best_softness(aim, expected, m.noise))
    return found


def objective(log_shares, marginals, softness, base, total):
    """What the module says is minimised, over the explicit joint distribution."""
    p = np.exp(log_shares - log_shares.max())
    p = (p / p.sum()).reshape(SIZES)
    every = tuple(range(len(SIZES)))
    q = np.exp(sum(b.reshape([-1 if c == j else 1 for c in every]) for j, b in enumerate(base)))
    loss = total * float((p * np.log(p / q)).sum())
    for m, soft in zip(marginals, softness, strict=True):
        aim = m.counts - (m.counts.sum() - total) / m.counts.size
        loss += float(((total * summed(p, every, m.columns) - aim) ** 2).sum()) / (2 * soft)
    return loss


@pytest.mark.parametrize("seed", [0, 1])
def test_the_fit_is_the_minimum_that_a_general_optimiser_finds(seed, monkeypatch):
    monkeypatch.setattr(fitting, "_NEAREST", 1e-7)
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.full(24, 0.5)).reshape(SIZES) * 200
    marginals = noisy_marginals(joint, SETS, 6.0, rng)
    model = fit(SIZES, marginals)
    mine = model.marginal((0, 1, 2)) / model.total
    assert mine.sum() == pytest.approx(1.0)
    arguments = (marginals, softness_of(marginals, model.base, model.total), model.base, model.total)
    best = minimize(objective, np.log(mine).reshape(-1), args=arguments, method="BFGS")
    anew = minimize(objective, np.zeros(24), args=arguments, method="BFGS", options={"maxiter": 2000})
    assert objective(np.log(mine).reshape(-1), *arguments) == pytest.approx(min(best.fun, anew.fun), rel=1e-6, abs=1e-4)


def test_without_noise_the_marginals_are_met_and_the_rest_is_of_highest_entropy():
    rng = np.random.default_rng(5)
    joint = rng.dirichlet(np.ones(24)).reshape(SIZES) * 1e6
    model = fit(SIZES, noisy_marginals(joint, [(0, 1), (1, 2)], 1e-3, rng))
    np.testing.assert_allclose(model.marginal((0, 1)), joint.sum(axis=2), rtol=2e-3, atol=20)
    left, right, middle = joint.sum(axis=2), joint.sum(axis=0), joint.sum(axis=(0, 2))
    conditional = left[:, :, None] * right[None] / middle[None, :, None]  # 0 and 2 are independent given 1
    np.testing.assert_allclose(model.marginal((0, 1, 2)), conditional, rtol=5e-3, atol=50)


def test_all_marginals_of_the_model_agree_with_each_other():
    rng = np.random.default_rng(1)
    joint = rng.dirichlet(np.full(24, 0.3)).reshape(SIZES) * 500
    model = fit(SIZES, noisy_marginals(joint, SETS, 20.0, rng))
    for a, b in combinations(range(3), 2):
        pair = model.marginal((a, b))
        assert pair.min() >= 0
        assert pair.sum() == pytest.approx(model.total)
        np.testing.assert_allclose(pair.sum(axis=1), model.marginal((a,)), rtol=1e-9)


def test_the_fit_is_nearer_to_the_truth_than_cleaned_counts():
    rng = np.random.default_rng(2)
    shape = (12, 10, 8)
    weights = rng.dirichlet(np.full(960, 0.05)).reshape(shape)
    joint = np.rint(weights * 5000)
    sets = [(0,), (1,), (2,), (0, 1), (1, 2)]
    ours, clipped = [], []
    for _ in range(5):
        marginals = noisy_marginals(joint, sets, 15.0, rng)
        model = fit(shape, marginals)
        for m in marginals[3:]:
            truth = summed(joint, (0, 1, 2), m.columns)
            counts = np.maximum(m.counts, 0)
            clipped.append(np.abs(counts / counts.sum() - truth / truth.sum()).sum())
            ours.append(np.abs(model.marginal(m.columns) / model.total - truth / truth.sum()).sum())
    assert np.mean(ours) < 0.97 * np.mean(clipped)  # what is expected here says nothing of what is there


def test_where_columns_are_nearly_independent_the_fit_leaves_little_of_the_noise():
    rng = np.random.default_rng(2)
    joint = np.rint(np.multiply.outer(rng.dirichlet(np.ones(12)), rng.dirichlet(np.ones(10))) * 5000)
    ours, clipped = [], []
    for _ in range(5):
        m = noisy_marginals(joint, [(0,), (1,), (0, 1)], 15.0, rng)
        counts = np.maximum(m[2].counts, 0)
        clipped.append(np.abs(counts / counts.sum() - joint / joint.sum()).sum())
        model = fit((12, 10), m)
        ours.append(np.abs(model.marginal((0, 1)) / model.total - joint / joint.sum()).sum())
    assert np.mean(ours) < 0.5 * np.mean(clipped)


def test_the_softness_is_near_the_best_that_knows_the_truth():
    rng = np.random.default_rng(8)
    for alpha in (0.05, 0.5, 50.0):
        truth = rng.dirichlet(np.full(300, alpha)) * 6000
        expected = np.full(300, 20.0)
        for noise in (2.0, 20.0):
            worse = []
            for _ in range(10):
                counts = truth + rng.laplace(0, noise / np.sqrt(2), 300)
                tried = noise * 2.0 ** np.arange(-3, 5)
                errors = {s: float(((expected * np.exp(shrunk(counts, expected, s)) - truth) ** 2).sum()) for s in tried}
                worse.append(errors[best_softness(counts, expected, noise)] - min(errors.values()))
            assert np.mean(worse) < 0.08 * 300 * noise**2  # of what the noise itself is off by


def test_three_columns_are_expected_to_be_as_their_pairs_say():
    # 0 and 2 depend on each other through 1 alone: the noisy triple adds nothing, and the softness must see it.
    rng = np.random.default_rng(9)
    first, second = rng.dirichlet(np.full(6, 0.3), size=5), rng.dirichlet(np.full(7, 0.3), size=5)
    joint = np.einsum("b,ba,bc->abc", rng.dirichlet(np.ones(5)), first, second) * 4000
    pairs = noisy_marginals(joint, [(0,), (1,), (2,), (0, 1), (1, 2)], 3.0, rng)
    (triple,) = noisy_marginals(joint, [(0, 1, 2)], 40.0, rng)
    with_pairs, alone = (fit(joint.shape, seen, total=4000.0).marginal((0, 1, 2)) for seen in ([*pairs, triple], [triple]))
    assert np.abs(with_pairs - joint).sum() < 0.3 * np.abs(alone - joint).sum()


def test_an_earlier_fit_is_a_start_and_changes_nothing_else(monkeypatch):
    monkeypatch.setattr(fitting, "_NEAREST", 1e-7)
    rng = np.random.default_rng(3)
    joint = rng.dirichlet(np.ones(24)).reshape(SIZES) * 1000
    marginals = noisy_marginals(joint, SETS, 5.0, rng)
    early = fit(SIZES, marginals[:-1], total=1000.0)
    passes = []
    real = fitting.lowest

    def counted(function, start, **limits):
        calls = []
        found = real(lambda z: calls.append(1) or function(z), start, **limits)
        passes.append(len(calls))
        return found

    monkeypatch.setattr(fitting, "lowest", counted)
    cold, warm, again = (fit(SIZES, marginals, total=1000.0, start=s) for s in (None, early, None))
    np.testing.assert_allclose(warm.marginal((0, 1, 2)), cold.marginal((0, 1, 2)), rtol=1e-3, atol=1e-3)
    fit(SIZES, marginals, total=1000.0, start=again)
    assert passes[3] <= 2 < passes[0]
    with pytest.raises(InputError, match="earlier fit is over columns of sizes"):
        fit((3, 2, 5), [], start=early)


def test_columns_in_no_marginal_are_uniform_and_parts_apart_are_independent():
    model = fit((2, 3, 2, 1), [Marginal((0, 2), np.array([[80.0, 3.0], [1.0, 116.0]]), 1.0)])
    assert model.total == pytest.approx(200.0)
    np.testing.assert_allclose(model.marginal((1,)), 200 / 3)
    expected = np.multiply.outer(model.marginal((0,)), model.marginal((1,))) / model.total
    np.testing.assert_allclose(model.marginal((0, 1)), expected)
    assert model.marginal((3,)).tolist() == pytest.approx([200.0])
    nothing = fit((2, 2), [])
    assert nothing.total == 1.0
    assert nothing.marginal((0, 1)).tolist() == [[0.25, 0.25], [0.25, 0.25]]


@pytest.mark.parametrize("counts", [[[-5.0, -3.0], [-8.0, -1.0]], [[0.0, 0.0], [0.0, 0.0]], [[-900.0, 901.0], [2.0, -3.0]]])
def test_totals_of_nothing_still_give_a_distribution(counts):
    model = fit((2, 2), [Marginal((0, 1), np.array(counts), 2.0), Marginal((0,), np.array([1.0, -4.0]), 1.0)])
    found = model.marginal((0, 1))
    assert model.total > 0
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(model.total)
    assert model.sample(7, np.random.default_rng(1)).shape == (7, 2)


def test_the_total_is_public_or_weighed_by_precision():
    seen = [Marginal((0,), np.array([60.0, 44.0]), 1.0), Marginal((0, 1), np.array([[30.0, 30.0], [30.0, 30.0]]), 3.0)]
    assert total_of(seen) == pytest.approx((104 / 2 + 120 / 36) / (1 / 2 + 1 / 36))
    assert fit((2, 2), seen).total == total_of(seen)
    assert fit((2, 2), seen, total=110).total == 110.0


def test_what_was_measured_twice_counts_twice():
    first, second = Marginal((0,), np.array([70.0, 30.0]), 3.0), Marginal((0,), np.array([40.0, 60.0]), 4.0)
    (both,) = merged([first, second])
    assert both.noise == pytest.approx(12 / 5)
    np.testing.assert_allclose(both.counts, [(70 * 16 + 40 * 9) / 25, (30 * 16 + 60 * 9) / 25])
    twice, once = fit((2,), [first, second], total=100), fit((2,), [both], total=100)
    np.testing.assert_allclose(twice.marginal((0,)), once.marginal((0,)))


def test_values_counted_in_groups_are_divided_as_their_column_is():
    ones = [Marginal((0,), np.array([50.0, 30.0, 20.0]), 0.1), Marginal((1,), np.array([60.0, 40.0]), 0.1)]
    rough = Marginal((0, 1), np.array([[50.0, 0.0], [10.0, 40.0]]), 0.1, (np.array([0, 1, 1]), np.array([0, 1])))
    found = fit((3, 2), [*ones, rough]).marginal((0, 1))
    np.testing.assert_allclose(found, [[50, 0], [6, 24], [4, 16]], atol=0.5)


def test_an_equation_per_cell_is_solved():
    counts = np.array([-300.0, -1.0, 0.0, 0.5, 3.0, 1e6])
    for expected in (1e-9, 0.3, 40.0, 1e5):
        t = shrunk(counts, np.full(6, expected), 2.0)
        np.testing.assert_allclose(expected * np.exp(t) + 2.0 * t, counts, rtol=1e-9, atol=1e-7)


def test_shares_of_a_column_use_every_marginal_that_holds_it():
    one, two = Marginal((0,), np.array([90.0, 10.0]), 10.0), Marginal((0, 1), np.array([[25.0, 25.0], [25.0, 25.0]]), 10.0)
    alone, both = own_shares(0, 2, [one], 100.0), own_shares(0, 2, [one, two], 100.0)
    assert alone[0] == pytest.approx((90 + 1) / 102)
    noise = 0.1 * (1 / 100 + 1 / 200) ** -0.5
    assert both[0] == pytest.approx(((90 * 2 + 50) / 3 + noise) / ((100 * 2 + 100) / 3 + 2 * noise))
    assert (own_shares(0, 2, [Marginal((0,), np.array([99.0, -40.0]), 1.0)], 100.0) > 0).all()


def test_the_way_down_stops_where_it_should():
    def bowl(x):
        return float((x**4).sum() + (x**2) @ [1.0, 50.0]), 4 * x**3 + 2 * x * np.array([1.0, 50.0])

    found = lowest(bowl, np.array([3.0, -2.0]), near=1e-8, steps=100)
    assert np.abs(found).max() < 1e-8
    np.testing.assert_array_equal(lowest(bowl, np.array([3.0, -2.0]), near=1e-8, steps=0), [3.0, -2.0])
    np.testing.assert_array_equal(lowest(bowl, np.array([0.0, 0.0]), near=1e-8, steps=9), [0.0, 0.0])


@pytest.mark.parametrize(
    ("marginals", "words"),
    [
        ([((0, 1), np.zeros((2, 2)))], "does not have the shape"),
        ([((0, 5), np.zeros((2, 2)))], "does not have the shape"),
        ([((1, 0), np.zeros((2, 2)))], "ascending"),
        ([((0,), np.zeros((2, 2)))], "as many axes"),
        ([((0,), np.array([1.0, np.nan]))], "finite"),
    ],
)
def test_marginals_that_do_not_fit_are_refused(marginals, words):
    with pytest.raises(InputError, match=words):
        fit((2, 3), [Marginal(columns, counts, 1.0) for columns, counts in marginals])


def test_noise_totals_and_trees_are_checked(monkeypatch):
    for noise in (0.0, -1.0, np.inf):
        with pytest.raises(InputError, match="positive standard deviation"):
            Marginal((0,), np.zeros(2), noise)
    with pytest.raises(InputError, match="must be positive"):
        fit((2,), [], total=0)
    monkeypatch.setattr(fitting, "MOST_CELLS", 3)
    with pytest.raises(InputError, match="has 4 cells, at most 3 are kept"):
        fit((2, 2), [Marginal((0, 1), np.zeros((2, 2)), 1.0)])


def test_a_model_comes_back_as_it_was():
    rng = np.random.default_rng(4)
    joint = rng.dirichlet(np.ones(24)).reshape(SIZES) * 1000
    model = fit(SIZES, noisy_marginals(joint, SETS, 5.0, rng))
    again = Fitted.from_dict(json.loads(json.dumps(model.to_dict())))
    assert (again.sizes, again.total, again.cliques) == (model.sizes, model.total, model.cliques)
    np.testing.assert_array_equal(again.marginal((0, 1, 2)), model.marginal((0, 1, 2)))
    draws = [m.sample(50, np.random.default_rng(1)) for m in (model, again)]
    np.testing.assert_array_equal(*draws)
    m = Marginal((0, 2), np.array([[1.5, -2.0]]), 0.3, (np.array([0, 0]), np.array([1, 0])))
    back = Marginal.from_dict(json.loads(json.dumps(m.to_dict())))
    assert back.key == m.key
    assert back.counts.tolist() == m.counts.tolist()


def test_time_grows_with_the_cells_of_the_tree_and_not_with_their_square():
    def seconds(size):
        rng = np.random.default_rng(0)
        sets = [(j,) for j in range(8)] + [(j, j + 1) for j in range(7)]
        tables = [Marginal(s, rng.poisson(50, [size] * len(s)) + rng.laplace(0, 5, [size] * len(s)), 7.0) for s in sets]
        best = np.inf
        for _ in range(2):
            start = time.process_time()
            model = fit([size] * 8, tables, total=1e5)
            model.sample(1000, rng)
            best = min(best, time.process_time() - start)
        return best

    assert seconds(64) < 16 * 4 * seconds(16)  # 16 times the cells
