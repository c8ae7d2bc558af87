"""Density ratios of the released model, by brute force in one dimension, for every way of using budgets."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.classifiers.linear.erm import PrivateLogisticRegression
from sfumato.classifiers.linear.objective import calibrate, minimise
from sfumato.classifiers.linear.personal import PERSONAL, Training, train, weights_of
from sfumato.classifiers.linear.proportion import most_often
from sfumato.errors import BudgetError, InputError
from sfumato.privacy import NANO, Exact, Meter, PersonBudgets, Seeded
from sfumato.privacy.objective import CURVATURE, Objective, loss_bend, loss_slope, loss_value


@dataclass(frozen=True)
class Observed:
    """What an observer knows of a training table: its objective and the rate of the noise."""

    objective: Objective
    beta: float

    def log_density(self, f):
        gradient, _ = self.objective.gradient(f, np.zeros(f.size))
        return float(-self.beta * np.linalg.norm(gradient) + np.linalg.slogdet(self.objective.hessian(f))[1])


GRID = np.concatenate([-np.geomspace(1e-4, 400, 1500)[::-1], np.geomspace(1e-4, 400, 1500)])


def log_density(kind, z, w, penalty, beta):
    """Of the minimiser f: the noise that leads to f is b(f), with its Jacobian."""
    margins = GRID[:, None] * z[None, :]
    slope, bend = loss_slope(kind, margins), loss_bend(kind, margins)
    b = -(slope * z * w).sum(axis=1) - penalty * GRID
    jacobian = (bend * z**2 * w).sum(axis=1) + penalty
    return np.log(beta / 2) - beta * np.abs(b) + np.log(jacobian)


@pytest.mark.parametrize("kind", ["logistic", "huber"])
@pytest.mark.parametrize("moves", [1, 2])
def test_nobody_loses_more_than_their_budget(kind, moves):
    levels = np.array([0.05, 0.2, 0.5, 2.0]) * NANO
    at = calibrate(int(0.8 * NANO), kind=kind, dimension=1, moves=moves)
    weights = at.weights(np.minimum(levels, 0.8 * NANO).astype(np.int64))
    assert weights[-1] == 1.0
    worst = np.zeros(4)
    values = [-1.0, -0.4, 0.4, 1.0]
    for z in product([-1.0, 0.7], repeat=4):
        z = np.array(z)
        for person in range(4):
            for mine in values:
                z[person] = mine
                here = log_density(kind, z, weights, at.penalty, at.beta)
                # Absence: the record is blank and contributes nothing. Replacement: it is any other record.
                for other in [None] if moves == 1 else values:
                    w, changed = weights.copy(), z.copy()
                    if other is None:
                        w[person] = 0.0
                    else:
                        changed[person] = other
                    gap = np.abs(here - log_density(kind, changed, w, at.penalty, at.beta)).max()
                    worst[person] = max(worst[person], gap)
    granted = np.minimum(levels / NANO, 0.8)
    assert (worst <= granted * (1 + 1e-9)).all()
    # The bound is not far from what happens, and weights three times too large would be noticed.
    assert (worst >= 0.4 * granted).all()
    z = np.array([1.0, -1.0, -1.0, -1.0])
    gap = log_density(kind, z, 3 * weights, at.penalty, at.beta) - log_density(
        kind, z, 3 * weights * [0, 1, 1, 1], at.penalty, at.beta
    )
    assert np.abs(gap).max() > granted[0]


@pytest.mark.parametrize("kind", ["logistic", "huber"])
def test_density_ratios_in_several_dimensions(kind):
    """Tiny tables with and without their last record, at models near and far, along the record and across it."""
    rng, at, worst = np.random.default_rng(3), calibrate(NANO, kind=kind, dimension=3), 0.0
    for size in (1, 2, 3, 6):
        for _ in range(40):
            signed = rng.normal(size=(size, 3))
            signed /= np.maximum(np.linalg.norm(signed, axis=1, keepdims=True), 1.0)
            signed[-1] /= np.linalg.norm(signed[-1])
            tables = [Observed(Objective(kind, signed[:n], np.ones(n), at.penalty), at.beta) for n in (size, size - 1)]
            for length in (0.1, 1.0, 5.0, 50.0):
                for f in (-length * signed[-1], length * signed[-1], length * rng.normal(size=3)):
                    worst = max(worst, abs(tables[0].log_density(f) - tables[1].log_density(f)))
    assert 0.6 < worst <= 1 + 1e-9


@pytest.mark.parametrize("kind", ["logistic", "huber"])
def test_derivatives_and_their_bounds(kind):
    z = np.linspace(-6, 6, 4001)
    value, slope, bend = loss_value(kind, z), loss_slope(kind, z), loss_bend(kind, z)
    assert np.abs(np.gradient(value, z) - slope)[2:-2].max() < 1e-2
    assert np.abs(slope).max() <= 1
    assert (bend >= 0).all()
    assert bend.max() <= CURVATURE[kind] + 1e-12


def test_the_minimum_is_found_where_its_value_is_nearly_nothing():
    """Loss, penalty and noise cancel: what rounding leaves of the value is larger than what the last step gains."""
    rows = np.full((3, 2), (1 - 1e-12) / np.sqrt(2))
    rng = np.random.default_rng(0)
    for _ in range(500):
        noise = np.array([-1.28701954, 0.60250592]) + rng.normal(0, 1e-6, 2)
        f = minimise(Objective("logistic", rows, np.ones(3), 1.0), noise)
        gradient = rows.T @ loss_slope("logistic", rows @ f) + f + noise
        assert np.linalg.norm(gradient) < 1e-8


def _training(kind="logistic", seed=0, n=400):
    rng = np.random.default_rng(seed)
    nano = rng.choice([0.05, 0.3, 1.0], n, p=[0.5, 0.4, 0.1])
    budgets = PersonBudgets.of(nano)
    signed = rng.uniform(-1, 1, (n, 3)) / np.sqrt(3)
    return Training(kind, Exact(signed), 3, np.searchsorted(budgets.epsilons, nano - 1e-12), budgets, 1.0), budgets


@pytest.mark.parametrize("mechanism", PERSONAL)
@pytest.mark.parametrize("split", [1, 3])
def test_every_mechanism_stays_within_the_roster(mechanism, split):
    t, budgets = _training()
    t = replace(t, split=split)
    meter = Meter(budgets=budgets, source=Seeded(2))
    for _ in range(split):
        fitted = train(t, meter, mechanism=mechanism, threshold=None, parts=None)
        assert np.isfinite(fitted.models).all()
        assert fitted.weights.sum() == pytest.approx(1)
    spent = meter.spent().people
    assert (spent <= budgets.levels).all()
    if mechanism == "weighted":  # everybody at their own ε, up to the cap
        assert spent[0] > 0.999 * budgets.levels[0] - split


def test_a_budget_of_nothing_is_refused():
    with pytest.raises(BudgetError):
        calibrate(0, kind="logistic", dimension=3)


def test_sampling_keeps_the_records_it_should(monkeypatch):
    t, budgets = _training(n=3000)
    kept = []

    def watch(objective, noise):
        kept.append(objective.signed.shape[0])
        return minimise(objective, noise)

    monkeypatch.setattr("sfumato.classifiers.linear.personal.minimise", watch)
    for seed in range(20):
        train(t, Meter(budgets=budgets, source=Seeded(seed)), mechanism="sampling", threshold=None, parts=None)
    p = np.expm1(budgets.epsilons) / np.expm1(1.0)
    expected = float(np.dot(budgets.counts, p))
    spread = np.sqrt(float(np.dot(budgets.counts, p * (1 - p))) / 20)
    assert abs(np.mean(kept) - expected) < 5 * spread


@pytest.mark.parametrize("tiers", ["as granted", "in proportion", 1.7, 4])
@pytest.mark.parametrize("kind", ["logistic", "huber"])
@pytest.mark.parametrize("moves", [1, 2])
def test_nobody_loses_more_however_tiers_are_weighed(tiers, kind, moves):
    """By brute force on tables of four people, one of each budget."""
    budgets = PersonBudgets.of([0.05, 0.2, 0.5, 2.0])
    t = Training(kind, Exact(np.zeros((4, 1))), 1, np.arange(4), budgets, 1.0, tiers=tiers)
    at, weights, about = weights_of(t, Meter(neighbours="absence" if moves == 1 else "replacement", source=Seeded(0)))
    most = {"as granted": np.inf, "in proportion": 1.0}.get(tiers, tiers)
    assert weights.max() / weights.min() <= most * (1 + 1e-12)
    assert about["noise"] >= 1
    worst, values = np.zeros(4), [-1.0, -0.4, 0.4, 1.0]
    for z in product([-1.0, 0.7], repeat=4):
        for person, mine in product(range(4), values):
            here, changed, w = np.array(z), np.array(z), weights.copy()
            here[person] = mine
            others = [None] if moves == 1 else values
            density = log_density(kind, here, weights, at.penalty, at.beta)
            for other in others:
                changed[person] = 0.0 if other is None else other
                w[person] = 0.0 if other is None else weights[person]
                gap = np.abs(density - log_density(kind, changed, w, at.penalty, at.beta)).max()
                worst[person] = max(worst[person], gap)
    assert (worst <= budgets.epsilons * (1 + 1e-9)).all()
    # The strictest are used in full, whatever the others may weigh: weights three times as large would be too much.
    assert worst[0] >= 0.4 * budgets.epsilons[0]


@given(
    st.lists(st.floats(0.001, 5), min_size=1, max_size=6),
    st.sampled_from([1.0, 1.5, 3.0, 50.0]) | st.sampled_from(["as granted", "in proportion"]),
    st.integers(1, 3),
)
@settings(max_examples=60, deadline=None)
def test_charges_stay_within_the_roster_however_tiers_are_weighed(epsilons, tiers, split):
    budgets = PersonBudgets.of(epsilons)
    t = Training("logistic", Exact(np.zeros((len(epsilons), 3))), 3, np.zeros(1, int), budgets, 1.0, split, tiers=tiers)
    at, weights, about = weights_of(t, Meter(budgets=budgets, source=Seeded(0)))
    assert (at.loss(weights) <= t.levels).all()
    assert (weights > 0).all()
    if tiers in ("in proportion", 1.0):
        assert np.ptp(weights) <= 1e-12 * weights.max()
        assert about["lean"] == 0


def test_ways_to_weigh_tiers_that_are_none():
    for wrong in ("evenly", 0.5, True, None, float("nan")):
        with pytest.raises(InputError, match="tiers"):
            most_often(wrong)
    t, budgets = _training()
    with pytest.raises(InputError, match="weighted"):
        train(
            replace(t, tiers=2), Meter(budgets=budgets, source=Seeded(0)), mechanism="threshold", threshold=None, parts=None
        )


def test_a_fit_in_proportion_is_that_of_the_people():
    """Two tiers whose records point in opposite directions, the strict ones three times as many."""
    n = 2000
    granted = np.where(np.arange(n) % 4 == 0, 2.0, 0.1)
    x = np.ones((n, 1))
    y = np.where(granted == 2.0, 1, 0)
    leaning, even = (
        PrivateLogisticRegression(bounds=(-1, 1), classes=[0, 1], tiers=tiers, source=Seeded(4)).fit(x, y, budgets=granted)
        for tiers in ("as granted", "in proportion")
    )
    assert leaning.predict_proba(x[:1])[0, 1] > 0.6
    assert even.predict_proba(x[:1])[0, 1] == pytest.approx(0.25, abs=0.08)
    assert leaning.parameters_["lean"] > 0.3
    assert even.parameters_["lean"] == 0
    assert even.parameters_["noise"] > leaning.parameters_["noise"] == 1
