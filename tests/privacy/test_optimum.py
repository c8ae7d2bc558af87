"""The minimum that is published is the minimum: certified, and where float64 stops short of it, paid for."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pytest

from sfumato.classifiers.linear.objective import minimise
from sfumato.errors import BudgetError, PrivacyError
from sfumato.privacy import NANO, Charge, Exact, Meter, Seeded
from sfumato.privacy.coded_rows import CodedColumn, CodedRows
from sfumato.privacy.objective import WIDE, Objective
from sfumato.privacy.optimum import Perturbation, certified

KINDS = ["logistic", "huber"]


def true_gradient(objective, f, noise):
    """In decimals, far beyond float64."""
    with localcontext() as context:
        context.prec = 60
        rows = objective.rows.matrix() if isinstance(objective.rows, CodedRows) else objective.rows.matrix
        if objective.rows.sides is not None:
            rows = rows * objective.rows.sides[:, None]
        total = [
            Decimal(float(b)) + Decimal(float(objective.penalty)) * Decimal(float(x)) for b, x in zip(noise, f, strict=True)
        ]
        for row, weight in zip(rows, objective.weights, strict=True):
            margin = sum(Decimal(float(z)) * Decimal(float(x)) for z, x in zip(row, f, strict=True))
            if objective.kind == "logistic":
                slope = -1 / (1 + min(max(margin, Decimal(-5000)), Decimal(5000)).exp())
            else:
                slope = -min(max(Decimal("1.5") - margin, Decimal(0)), Decimal(1))
            for j, z in enumerate(row):
                total[j] += Decimal(float(weight)) * slope * Decimal(float(z))
        return total


def coded_rows(draw, n, d):
    """Rows of lines and of indicators with `d` places, some values not known, on either side or none."""
    columns, start = [], 0
    while start < d:
        line = bool(draw.random() < 0.4)
        size = int(draw.integers(2, 9)) if line else min(int(draw.integers(1, 9)), d - start)
        columns.append((np.append(draw.uniform(-1, 1, size), 0.0), start, line))
        start += 1 if line else size
    made = [CodedColumn(values / np.sqrt(len(columns)), at, line) for values, at, line in columns]
    rows = CodedRows.of(made, [draw.integers(0, c.values.size, n) for c in made])
    return rows.beside(draw.integers(-1, 2, n).astype(np.int8))


def random_objective(kind, seed, n=60, d=4, coded=False):
    draw = np.random.default_rng(seed)
    if coded:
        rows = coded_rows(draw, n, d)
    else:
        rows = draw.normal(size=(n, d)) * (draw.random((n, d)) < 0.6)
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    made = Objective(kind, rows, draw.uniform(0, 1e4, n), 0.01)
    return made, draw.normal(size=d) * 10 ** draw.uniform(-2, 2), draw.normal(size=d)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("coded", [False, True], ids=["numbers", "codes"])
@pytest.mark.parametrize("numbers", [np.float64, WIDE], ids=["float64", "wide"])
def test_a_gradient_is_as_near_to_the_true_one_as_it_says(kind, coded, numbers):
    for seed in range(12):
        objective, f, noise = random_objective(kind, seed, coded=coded, d=4 + 20 * (seed % 3))
        found, error = objective.gradient(f, noise, numbers=numbers)
        true = true_gradient(objective, f, noise)
        off = float(sum((Decimal(float(a)) - b) ** 2 for a, b in zip(found, true, strict=True)).sqrt())
        assert off <= error
        assert error < 1e-13 * objective.weights.sum() * (1 + np.linalg.norm(f))


# Rows of weight 4 million stand for as many records of either class: near 0 their losses cancel and only the penalty bends.
CROWD = Objective("huber", np.array([[1.0], [-1.0]]), np.array([4e6, 4e6]), 1e-3)


def test_the_solver_alone_stops_where_the_minimum_is_not():
    """Its last step, where little is left of the gradient, leaves the flat part of the loss. The certificate notices."""
    worst = {"solver": 0.0, "certified": 0.0}
    within = Perturbation("huber", 1, CROWD.penalty, 3.0, rows=8_000_000).within
    for k in range(-40, 41):
        noise = np.array([k * 1e-4])
        start = minimise(CROWD, noise)
        for name, point in {"solver": start, "certified": certified(CROWD, start, noise, within=within)}.items():
            worst[name] = max(worst[name], abs(float(true_gradient(CROWD, point, noise)[0])))
    assert worst["solver"] > 1000, "the hole that this test is about is not there: it would pass without a certificate"
    assert worst["certified"] <= within


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("penalty", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("rows", [10, 10**4, 10**7])
def test_the_minimum_is_certified_from_few_rows_to_many_and_at_any_penalty(kind, penalty, rows):
    draw = np.random.default_rng(rows)
    d = 3
    signed = draw.normal(size=(200, d))
    signed /= np.linalg.norm(signed, axis=1, keepdims=True) * (1 + 1e-12)
    signed[:120] *= np.sign(signed[:120, :1])  # many agree, and nobody has what only noise speaks of
    signed[:, 2] = 0.0
    objective = Objective(kind, signed, np.full(200, rows / 200), penalty)
    by = Perturbation(kind, d, penalty, 1.0, rows=rows)
    for _ in range(5):
        noise = by.draw(Seeded(int(draw.integers(1 << 30))))
        point = by.minimum(objective, minimise, noise)
        off = float(sum(g**2 for g in true_gradient(objective, point, noise)).sqrt())
        assert off <= by.within


@pytest.mark.parametrize("kind", KINDS)
def test_a_million_rows(kind):
    draw = np.random.default_rng(1)
    signed = draw.uniform(-1, 1, (1_000_000, 2)) / 2 + [0.2, 0.0]
    objective = Objective(kind, signed, np.ones(len(signed)), 0.05)
    by = Perturbation(kind, 2, 0.05, 1.0, rows=len(signed))
    noise = by.draw(Seeded(1))
    point = by.minimum(objective, minimise, noise)
    wide = signed.astype(np.longdouble)
    margin = wide @ point.astype(np.longdouble)
    slope = -1 / (1 + np.exp(margin)) if kind == "logistic" else -np.clip(1.5 - margin, 0, 1)
    gradient = (wide * slope[:, None]).sum(axis=0) + np.longdouble(0.05) * point + noise
    assert np.linalg.norm(gradient.astype(float)) <= by.within


@pytest.mark.parametrize("coded", [False, True], ids=["numbers", "codes"])
def test_many_features_and_large_coefficients_are_certified_in_wider_numbers(coded):
    kind = "huber"
    draw = np.random.default_rng(0)
    d, rows = 80, 2_000_000
    if coded:
        columns = [CodedColumn(np.append(draw.uniform(0.9, 1, 300) / np.sqrt(d), 0.0), j, line=True) for j in range(d)]
        signed = CodedRows.of(columns, [draw.integers(0, 300, 400) for _ in columns])
        signed = signed.beside(np.where(draw.random(400) < 0.7, 1, -1).astype(np.int8))
    else:
        signed = draw.normal(size=(400, d)) + 0.3 * draw.normal(size=d)
        signed /= np.linalg.norm(signed, axis=1, keepdims=True) * (1 + 1e-12)
    objective = Objective(kind, signed, np.full(400, rows / 400), 0.1)
    by = Perturbation(kind, d, 0.1, 1.0, rows=rows)
    noise = by.draw(Seeded(3))
    point = by.minimum(objective, minimise, noise)
    assert objective.gradient(point, noise)[1] > by.within / 2, "float64 is enough here: the test shows nothing"
    assert float(sum(g**2 for g in true_gradient(objective, point, noise)).sqrt()) <= by.within


def test_a_step_that_overshoots_is_shortened():
    """From far away the loss is linear there and curved here: a whole Newton step would go to and fro."""
    objective = Objective("logistic", np.array([[1.0]]), np.array([1e5]), 1e-3)
    noise = np.array([5e4 - 1.0])
    found = certified(objective, np.array([-30.0]), noise, within=1e-9)
    assert abs(float(true_gradient(objective, found, noise)[0])) <= 1e-9


def test_what_is_left_of_the_distance_is_paid_for():
    """Between any two points as near as the certificate says, the published integers differ by no more than was priced."""
    draw = np.random.default_rng(0)
    for d in (1, 3, 50):
        by = Perturbation("logistic", d, 0.3, 1.0)
        priced = by.extra / 2 / by.rate
        for _ in range(200):
            true, way = draw.normal(size=d), draw.normal(size=d)
            computed = true + way / np.linalg.norm(way) * by.error
            apart = np.abs(np.rint(true / by.step) - np.rint(computed / by.step)).sum()
            assert apart <= priced
        assert 0 < by.extra < 2e-4 * np.sqrt(d) * by.beta * NANO


def test_the_price_of_the_distance_is_small_at_every_budget():
    for beta in (1e-4, 0.01, 1.0, 100.0):
        for length, d in ((None, 10), (3.0, 200)):
            by = Perturbation("huber", d, max(1.0, d / beta / 10), beta, length=length, rows=10**6)
            assert by.extra < max(0.003 * beta * NANO, 2000 * d)


def test_the_second_noise_is_the_one_that_was_priced():
    by = Perturbation("logistic", 2000, 1.0, 1.0)
    drawn = by.published(np.zeros(2000), Seeded(1)) / by.step
    scale = NANO / by.rate
    assert np.abs(drawn).mean() == pytest.approx(scale, rel=0.15)


def test_a_minimum_that_float64_cannot_find_is_not_published():
    crowd = replace(CROWD, weights=np.array([1e12, 1e12]))
    by = Perturbation("huber", 1, CROWD.penalty, 3.0)
    meter = Meter(source=Seeded(1))
    with pytest.raises(PrivacyError, match="could not be certified"):
        meter.optimum(Exact(crowd), minimise, by=by)
    with pytest.raises(PrivacyError, match="why is not told"):
        Meter().optimum(Exact(crowd), minimise, by=by)


def test_another_objective_than_was_priced_is_refused():
    by = Perturbation("huber", 1, 2 * CROWD.penalty, 3.0, rows=8_000_000)
    with pytest.raises(PrivacyError, match="not the one that was priced"):
        Meter(source=Seeded(1)).optimum(Exact(CROWD), minimise, by=by)


def test_nothing_is_read_before_the_price_is_accepted():
    read = []
    table = Exact.reading(lambda: read.append(1) or CROWD)
    by = Perturbation("huber", 1, CROWD.penalty, 3.0, rows=8_000_000)
    with pytest.raises(BudgetError):
        Meter(limit=Charge.of(0.5)).optimum(table, minimise, by=by)
    assert not read


@pytest.mark.parametrize("kind", KINDS)
def test_the_distance_to_the_minimum_is_part_of_the_price(kind):
    from sfumato.privacy.losses import objective_loss

    by = Perturbation(kind, dimension=3, penalty=2.0, beta=0.5)
    plain = objective_loss([0.0, 1.0], beta=0.5, curvature=by.curvature, penalty=2.0)
    assert by.loss([0.0, 1.0]).tolist() == [0, int(plain[1]) + by.extra]
    assert by.extra > 0
