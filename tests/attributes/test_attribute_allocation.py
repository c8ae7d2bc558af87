"""Allocation against a reference conic solver, and feasibility in exact rational arithmetic."""

from __future__ import annotations

import warnings
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from sfumato.attributes import Catalogue, Policy, Utility, allocate, compose, expected_errors, least_epsilon, utility_bounds
from sfumato.errors import InputError
from sfumato.privacy import NANO


def case(rng: np.random.Generator) -> tuple[Catalogue, np.ndarray, float, str]:
    """A random catalogue (0/1, small integer or weighted), flat-Dirichlet budgets, an ε and a utility."""
    m, n = int(rng.integers(2, 21)), int(rng.integers(1, 400))
    kind = rng.integers(3)
    if kind == 0:
        matrix = (rng.random((n, m)) < rng.uniform(0.05, 0.6)).astype(np.int64)
    elif kind == 1:
        matrix = rng.integers(0, 6, (n, m)) * (rng.random((n, m)) < 0.4)
    else:
        matrix = np.round(rng.dirichlet(np.full(m, 0.5), n) * 3, 1)
    catalogue = Catalogue.from_matrix(matrix, [f"a{j}" for j in range(m)], step="0.1" if kind == 2 else 1)
    budgets = np.maximum((rng.dirichlet(np.ones(m)) * rng.uniform(0.5, 3) * NANO).astype(np.int64), 2_000_000)
    epsilon = round(float(np.exp(rng.uniform(np.log(0.05), np.log(2.0)))), 4)
    return catalogue, budgets, epsilon, ("mae", "mse", "mael")[rng.integers(3)]


def exactly_feasible(catalogue: Catalogue, policy: Policy, budgets: np.ndarray, epsilon: float) -> bool:
    """Recomputed from the whole matrix in rational arithmetic, sharing no code with the package."""
    dense = np.zeros((catalogue.size, len(catalogue.attributes)), dtype=object)
    owner = np.repeat(np.arange(catalogue.size), np.diff(catalogue.indptr))
    dense[owner, catalogue.indices] = [int(v) for v in catalogue.values]
    rates = [Fraction(int(r), NANO) for r in policy.rates]
    for row in {tuple(r) for r in dense.tolist()}:
        losses = [a * r for a, r in zip(row, rates, strict=True)]
        if sum(losses) > Fraction(str(epsilon)):
            return False
        if any(loss > Fraction(int(t), NANO) for loss, t in zip(losses, budgets, strict=True)):
            return False
    return True


def conic_optimum(rows, top, epsilon, weights, power):
    """The same program by a modelling layer and a conic solver, in the scaled variables of the notes."""
    scale = weights * top ** -float(power)
    z = cp.Variable(top.size)
    loss = cp.sum(cp.multiply(scale / scale.max(), cp.power(z, -power)))
    problem = cp.Problem(cp.Minimize(loss), [(rows * top / epsilon) @ z <= 1, z <= 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "may be inaccurate" at 1e-9: a thousandth of what is compared
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return float(problem.value) * float(scale.max())


@pytest.mark.slow
def test_random_cases_match_the_conic_solver_and_are_exactly_feasible():
    rng = np.random.default_rng(20240501)
    worst = 0.0
    for _ in range(90):
        catalogue, budgets, epsilon, utility = case(rng)
        policy = allocate(catalogue, budgets=budgets / NANO, epsilon=epsilon, utility=utility)
        assert exactly_feasible(catalogue, policy, budgets, epsilon)
        top = (budgets // catalogue.reach) / NANO
        weights = top if utility == "mael" else np.ones_like(top)
        power = 2 if utility == "mse" else 1
        mine = float(np.sum(weights * (policy.rates / NANO) ** -float(power)))
        reference = conic_optimum(catalogue.maximal.astype(float), top, epsilon, weights, power)
        assert reference > 0
        worst = max(worst, abs(mine - reference) / reference)
        assert policy.gap < 1e-6
    assert worst < 1e-6


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-6, 1e-3, 0.5, 50.0]))
@example(34, 1e-6)  # attributes that no item has keep their own budget
@example(150, 1e-6)  # once a singular Newton system: ε is a millionth of the budgets
def test_always_feasible_and_never_worse_than_composition(seed, epsilon):
    catalogue, budgets, _, utility = case(np.random.default_rng(seed))
    lightest = (budgets // catalogue.reach).min() * epsilon / float(max(least_epsilon(catalogue, budgets=budgets / NANO), 1))
    assume(lightest > 2)  # below that a rate would be under one nano-ε, which is refused (tested further down)
    policy = allocate(catalogue, budgets=budgets / NANO, epsilon=epsilon, utility=utility)
    baseline = compose(catalogue, budgets=budgets / NANO, epsilon=epsilon)
    assert exactly_feasible(catalogue, policy, budgets, epsilon)
    assert exactly_feasible(catalogue, baseline, budgets, epsilon)
    # At ε = 1e-6 a rate is a few dozen nano-ε and rounding shows; from 1e-3 on it does not.
    slack = 0.2 if epsilon < 1e-3 else 1e-4
    mine, theirs = expected_errors(policy)[utility], expected_errors(baseline)[utility]
    assert mine <= theirs * (1 + slack) + slack


def test_above_theorem_two_every_attribute_gets_its_best_noise():
    rng = np.random.default_rng(4)
    for _ in range(20):
        catalogue, budgets, _, utility = case(rng)
        enough = least_epsilon(catalogue, budgets=budgets / NANO)
        if enough == 0:
            continue
        policy = allocate(catalogue, budgets=budgets / NANO, epsilon=enough, utility=utility)
        np.testing.assert_array_equal(policy.rates, budgets // catalogue.reach)
        assert expected_errors(policy)["mael"] == pytest.approx(0.0, abs=1e-12)


def test_just_below_theorem_two_somebody_is_held_back():
    catalogue = Catalogue.of({"i": ["x", "y"], "k": ["y"]})
    budgets = np.array([300_000_000, 200_000_000])
    policy = allocate(catalogue, budgets=budgets / NANO, epsilon="0.499999999")
    assert (policy.rates <= budgets).all()
    assert policy.rates.sum() == 499_999_999


@pytest.mark.parametrize("utility", ["mae", "mse", "mael"])
def test_the_optimum_lies_between_the_bounds_of_theorem_three(utility):
    rng = np.random.default_rng(9)
    for _ in range(20):
        catalogue, budgets, epsilon, _ = case(rng)
        policy = allocate(catalogue, budgets=budgets / NANO, epsilon=epsilon, utility=utility)
        low, high = utility_bounds(catalogue, budgets=budgets / NANO, epsilon=epsilon)[utility]
        top = budgets / catalogue.reach / (NANO * float(catalogue.unit))
        value = {
            "mae": np.mean(policy.scales),
            "mse": 2 * np.mean(policy.scales**2),
            "mael": np.mean(policy.scales * top) - 1,
        }[utility]
        assert low - 1e-6 * abs(low) - 1e-6 <= value <= high * (1 + 1e-5) + 1e-5


def test_a_convex_utility_of_ones_own():
    # -Σ log x is maximised on the simplex x1 + x2 <= ε at equal shares, weighted at 1 : 3.
    catalogue = Catalogue.of({"i": ["x", "y"]})
    budgets = {"x": 1, "y": 1}
    w = np.array([1.0, 3.0])
    entropy = Utility("entropy", lambda x: float(-(w * np.log(x)).sum()), lambda x: -w / x, lambda x: w / x**2)
    policy = allocate(catalogue, budgets=budgets, epsilon=0.4, utility=entropy)
    np.testing.assert_allclose(policy.rates / NANO, [0.1, 0.3], rtol=1e-4)
    full = Utility("entropy", entropy.value, entropy.gradient, lambda x: np.diag(w / x**2))
    np.testing.assert_allclose(
        allocate(catalogue, budgets=budgets, epsilon=0.4, utility=full).rates, policy.rates, rtol=1e-4
    )


def test_the_same_question_is_answered_from_the_cache():
    catalogue = Catalogue.of({"i": ["x", "y"]})
    one = allocate(catalogue, budgets={"x": 1, "y": 1}, epsilon=0.1)
    assert allocate(catalogue, budgets={"y": "1.0", "x": 1}, epsilon="0.10") is one
    assert allocate(catalogue, budgets={"x": 1, "y": 1}, epsilon=0.1, utility="mse") is not one


def test_an_attribute_no_item_has_and_an_item_without_attributes():
    catalogue = Catalogue.of({"i": ["x"], "k": []}, ["x", "never"])
    policy = allocate(catalogue, budgets={"x": 0.1, "never": 0.2}, epsilon=1)
    assert policy.rates.tolist() == [100_000_000, 200_000_000]
    assert policy.charge.attributes["never"] == 0


@pytest.mark.parametrize(
    ("budgets", "epsilon", "utility"),
    [
        ({"x": 0.1}, 0.1, "mae"),
        ({"x": 0.1, "y": 0.1, "z": 1}, 0.1, "mae"),
        ({"x": 0, "y": 0.1}, 0.1, "mae"),
        ({"x": float("nan"), "y": 0.1}, 0.1, "mae"),
        ({"x": 0.1, "y": 0.1}, 0, "mae"),
        ({"x": 0.1, "y": 0.1}, -1, "mae"),
        ({"x": 0.1, "y": 0.1}, 0.1, "median"),
        (np.array([1, 0]), 0.1, "mae"),
        (np.array([0.5]), 0.1, "mae"),
        (np.array([500_000_000, 500_000_000]), 0.1, "mae"),  # nano-ε where ε is meant
        ({"x": 0.1, "y": 0.1}, "1e-9", "mae"),
    ],
)
def test_bad_questions_are_refused(budgets, epsilon, utility):
    with pytest.raises(InputError):
        allocate(Catalogue.of({"i": ["x", "y"]}), budgets=budgets, epsilon=epsilon, utility=utility)
