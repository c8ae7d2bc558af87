"""Private ERM over a public schema: short rows, Laplace noise per coordinate, and the price of both."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from sfumato.classifiers.linear.erm import PrivateLogisticRegression, PrivateSVM
from sfumato.classifiers.linear.features import Indicators
from sfumato.classifiers.linear.objective import calibrate, minimise
from sfumato.classifiers.linear.output_perturbation import OutputPerturbation
from sfumato.errors import InputError
from sfumato.privacy import NANO, Seeded, noise
from sfumato.privacy.coded_rows import CodedColumn, CodedRows
from sfumato.privacy.objective import Objective, loss_bend, loss_slope
from sfumato.privacy.optimum import Perturbation
from sfumato.records.levels import Levels
from sfumato.tables import Categorical, Numeric, PrivacyUnit, Schema

TAXONOMIES = (
    Levels.numeric("age", [0, 1, 2, 3, 4]),
    Levels.flat("sex", ["F", "M"]),
    Levels.flat("job", ["a", "b", "c"]),
)
SCHEMA = Schema({"age": Numeric(0, 80, bins=8), "job": Categorical(["a", "b", "c"]), "ill": Categorical(["no", "yes"])})


@pytest.mark.parametrize("signal", [10, 50_000])
def test_every_row_is_as_short_as_the_noise_assumes(signal):
    features = Indicators.for_signal(TAXONOMIES, signal)
    leaves = np.array(list(product(range(-1, 4), range(-1, 2), range(-1, 3))))
    rows = features.rows(leaves).matrix()
    assert np.linalg.norm(rows, axis=1).max() <= 1
    assert np.abs(rows).sum(axis=1).max() <= features.length
    # The bounds are met, not only kept.
    assert np.linalg.norm(rows, axis=1).max() > 0.999
    assert np.abs(rows).sum(axis=1).max() > 0.999 * features.length
    unknown = rows[(leaves == -1).all(axis=1)][0]
    assert np.flatnonzero(unknown).tolist() == [rows.shape[1] - 1]


def _log_density(signed, at, length, grid):
    """Of the minimiser f on a grid: the density of the noise that leads to f, with its Jacobian."""
    margins = grid @ signed.T
    slope, bend = loss_slope("logistic", margins), loss_bend("logistic", margins)
    b = -slope @ signed - at.penalty * grid
    hessian = np.einsum("gn,ni,nj->gij", bend, signed, signed) + at.penalty * np.eye(2)
    return -at.beta / length * np.abs(b).sum(axis=1) + np.linalg.slogdet(hessian)[1]


def test_nobody_loses_more_than_epsilon_with_laplace_noise():
    """All tables of up to three of these short rows against the same with one row blank, on a plane of outputs."""
    length = 1.0
    at = calibrate(int(0.8 * NANO), kind="logistic", dimension=2, regularization=0.3, length=length)
    assert at.length == length
    line = np.concatenate([-np.geomspace(0.01, 100, 25)[::-1], np.geomspace(0.01, 100, 25)])
    grid = np.array(list(product(line, line)))
    records = [np.array(r) for r in ((1.0, 0), (-1.0, 0), (0, 1.0), (0, -1.0), (0.5, 0.5), (0.3, -0.7))]
    worst = largest_step = 0.0
    for others in [(), *((r,) for r in records), *product(records, repeat=2)]:
        for record in records:
            here, there = np.array([*others, record]), np.array([*others, np.zeros(2)])
            gap = np.abs(_log_density(here, at, length, grid) - _log_density(there, at, length, grid)).max()
            longer = np.abs(
                _log_density(np.array([*others, 2 * record]), at, length, grid) - _log_density(there, at, length, grid)
            ).max()
            worst, largest_step = max(worst, gap), max(largest_step, longer)
    assert worst <= 0.8 * (1 + 1e-9)
    assert worst > 0.5 * 0.8
    assert largest_step > 0.8, "rows of twice the length must be caught"


def test_noise_is_laplace_per_coordinate_at_the_same_price():
    short, round_one = (Perturbation("logistic", 20_000, 2.0, 0.5, length=length) for length in (3.0, None))
    assert [int(by.loss([1.0])[0]) - by.extra for by in (short, round_one)] == [617_783_036] * 2
    drawn = short.draw(Seeded(4))
    law = stats.laplace(scale=3.0 / 0.5)
    assert stats.kstest(drawn, law.cdf).pvalue > 1e-6
    assert stats.kstest(0.7 * drawn, law.cdf).pvalue < 1e-6


@pytest.mark.parametrize(("dimension", "rate"), [(0, 1.0), (3, 0.0), (3, np.nan), (3, -1.0)])
def test_coordinatewise_noise_refuses(dimension, rate):
    with pytest.raises(InputError):
        noise.coordinatewise(dimension, rate)


def test_the_lesser_noise_is_taken():
    assert calibrate(NANO, kind="logistic", dimension=40, length=4.0).length == 4.0
    assert calibrate(NANO, kind="logistic", dimension=30, length=4.0).length is None


def test_coded_and_plain_rows_have_the_same_minimum():
    rng = np.random.default_rng(0)
    columns = [
        CodedColumn(np.array([-0.4, 0.1, 0.4, 0.0]), 0, line=True),
        CodedColumn(np.array([0.5, 0.6, 0.0]), 1, line=False),
    ]
    coded = CodedRows.of(columns, [rng.integers(0, 4, 200), rng.integers(0, 3, 200)])
    coded = coded.beside(rng.integers(-1, 2, 200).astype(np.int8))
    plain = coded.matrix() * coded.sides[:, None]
    weights, b = rng.uniform(0, 1, 200), rng.normal(size=3)
    made, same = (Objective("logistic", r, weights, 0.7) for r in (coded, plain))
    np.testing.assert_allclose(minimise(made, b), minimise(same, b), rtol=1e-6)


def _table(n=4000, seed=0):
    draw = np.random.default_rng(seed)
    X = pd.DataFrame({"age": draw.integers(0, 80, n), "job": draw.choice(["a", "b", "c"], n)})
    middle = X["age"].between(20, 59)
    return X, np.where(middle ^ (draw.random(n) < 0.05), "yes", "no")


def test_indicators_learn_what_a_line_cannot():
    X, y = _table()
    fine = PrivateLogisticRegression(epsilon=4, schema=SCHEMA, target="ill", source=Seeded(1)).fit(X, y)
    assert fine.score(X, y) > 0.9
    line = PrivateLogisticRegression(epsilon=4, bounds=(0, 80), source=Seeded(1)).fit(X[["age"]], y)
    assert line.score(X[["age"]], y) < 0.75
    assert fine.coef_.shape == (1, fine._features.dimension - 1)


@pytest.mark.parametrize("mechanism", ["weighted", "minimum", "threshold", "sampling", "partition"])
def test_personal_budgets_with_a_schema(mechanism):
    X, y = _table()
    granted = np.random.default_rng(1).choice([1.0, 4.0], len(y))
    model = PrivateSVM(schema=SCHEMA, target="ill", budgeting=mechanism, source=Seeded(2)).fit(X, y, budgets=granted)
    assert (model.guarantee_.people <= model.guarantee_.budgets.levels).all()
    assert model.score(X, y) > 0.8
    vote = PrivateSVM(schema=SCHEMA, target="ill", budgeting="partition", ensemble="vote", source=Seeded(2))
    assert vote.fit(X, y, budgets=granted).score(X, y) > 0.8


def test_what_the_schema_does_not_know_adds_nothing():
    X, y = _table(300)
    strange = X.copy()
    strange.loc[0, "job"] = "pilot"
    labels = np.array(y, dtype=object)
    labels[1] = "perhaps"

    def fit(a, b):
        return PrivateLogisticRegression(epsilon=1, schema=SCHEMA, target="ill", source=Seeded(3)).fit(a, b).coef_

    blank = fit(strange, labels)
    assert np.isfinite(blank).all()
    assert not np.array_equal(blank, fit(X, y))
    labels[1] = "another"
    assert np.array_equal(blank, fit(strange, labels))


def test_contradictions_are_refused():
    X, y = _table(50)
    with pytest.raises(InputError, match="leave bounds and max_norm out"):
        PrivateSVM(schema=SCHEMA, target="ill", bounds=(0, 1)).fit(X, y)
    with pytest.raises(InputError, match="different lengths"):
        PrivateSVM(schema=SCHEMA, target="ill").fit(X, y[:-1])
    several = Schema(dict(SCHEMA.columns), unit=PrivacyUnit(person="age", rows_per_person=2))
    with pytest.raises(InputError, match="one row is one person"):
        PrivateSVM(schema=several, target="ill").fit(X, y)


@pytest.mark.parametrize("budgets", [None, np.resize([0.3, 1.0], 60)], ids=["one ε", "budgets"])
def test_the_last_digits_of_a_coefficient_do_not_tell_whether_anybody_has_the_feature(budgets):
    """Nobody is a "c": without rounding that coefficient is the noise over λ to the last bit, and noise has few values."""
    table = pd.DataFrame({"age": np.arange(60) % 80, "job": np.resize(["a", "b"], 60)})
    for seed in range(5):
        model = PrivateLogisticRegression(schema=SCHEMA, target="ill", source=Seeded(seed))
        model.fit(table, np.resize(["no", "yes"], 60), budgets=budgets)
        whole = model._models * 2.0**30  # the noise is of size one: a unit of this lattice holds millions of float64 values
        assert (whole == np.rint(whole)).all()
        assert np.unique(model._models).size > model._models.size / 2, "rounded to the point of saying nothing"


def test_output_perturbation_is_rounded_too():
    table = pd.DataFrame({"age": np.arange(60) % 80, "job": np.resize(["a", "b"], 60)})
    coef = OutputPerturbation(schema=SCHEMA, target="ill", source=Seeded(1)).fit(table, np.resize(["no", "yes"], 60)).coef_
    assert (coef * 2.0**30 == np.rint(coef * 2.0**30)).all()
    assert np.unique(coef).size > coef.size / 2
