"""What every private classifier promises to its user: scikit-learn conventions, public input only, nothing private kept."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from sfumato import classifiers as c
from sfumato.bench.classify_noise_free import NoiseFree
from sfumato.errors import InputError, PrivacyError, SfumatoError
from sfumato.privacy import Seeded
from sfumato.tables import Categorical, Numeric, PrivacyUnit, Schema

COLUMNS = {"age": Numeric(0, 80, bins=8), "place": Categorical(["oslo", "bern", "nice"]), "height": Numeric(0, 2, bins=4)}
SCHEMA = Schema({**COLUMNS, "ill": Categorical(["no", "yes"])})
FAMILY = {
    "additive": c.PrivateAdditive,
    "auto": c.AutoClassifier,
    "naive Bayes": c.PrivateNaiveBayes,
    "majority": c.Majority,
    "tree": c.PrivateDecisionTree,
    "forest": c.PrivateForest,
    "functional": c.FunctionalMechanism,
    "local": c.PrivLocal,
    "gene": c.PrivGene,
    "output": c.OutputPerturbation,
    "histogram": c.HistogramClassifier,
    "logistic": c.PrivateLogisticRegression,
}
LEARNERS = [name for name in FAMILY if name != "majority"]


def people(n=1500, seed=0, classes=("no", "yes")):
    draw = np.random.default_rng(seed)
    age = draw.integers(0, 80, n)
    table = pd.DataFrame(
        {"age": age, "place": draw.choice(["oslo", "bern", "nice"], n), "height": draw.uniform(0, 2, n).round(3)}
    )
    number = np.minimum((age * len(classes)) // 80, len(classes) - 1)
    wrong = draw.random(n) < 0.05
    return table, np.array(classes)[np.where(wrong, draw.integers(len(classes), size=n), number)]


@pytest.mark.parametrize("name", FAMILY)
def test_fit_predict_and_guarantee(name):
    X, y = people()
    model = FAMILY[name](epsilon=3, schema=SCHEMA, target="ill", source=Seeded(1)).fit(X, y)
    assert model.guarantee_.nano <= 3 * 10**9
    assert model.guarantee_.nano > 2.7 * 10**9, "budget left unused"
    assert model.meter_.spent().total == model.guarantee_.nano
    assert not model.guarantee_.private
    proba = model.predict_proba(X)
    assert proba.shape == (1500, 2)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert (model.classes_[proba.argmax(axis=1)] == model.predict(X)).all()
    # Columns are found by name; an array must have the schema's order.
    assert (model.predict(X[["height", "age", "place"]]) == model.predict(X.to_numpy(dtype=object))).all()


@pytest.mark.parametrize("name", LEARNERS)
def test_it_learns_and_secure_noise_is_the_default(name):
    X, y = people()
    model = FAMILY[name](epsilon=8, schema=SCHEMA, target="ill").fit(X, y)
    assert model.guarantee_.private
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("name", LEARNERS)
def test_three_classes(name):
    X, y = people(3000, classes=("a", "b", "c"))
    model = FAMILY[name](epsilon=20, schema=Schema(COLUMNS), classes=["a", "b", "c"], source=Seeded(2)).fit(X, y)
    assert model.predict_proba(X).shape == (3000, 3)
    # A line cannot cut out a middle class one against the rest; two of three is what it can reach.
    assert model.score(X, y) > (0.55 if name in ("functional", "local", "gene", "output") else 0.8)
    assert model.guarantee_.nano <= 20 * 10**9


@pytest.mark.parametrize("name", FAMILY)
def test_scikit_learn_conventions(name):
    X, y = people(600)
    model = FAMILY[name](epsilon=5, schema=SCHEMA, target="ill", source=Seeded(3))
    copy = clone(model)
    assert copy.get_params().keys() == model.get_params().keys()
    assert copy.schema == SCHEMA
    assert copy.set_params(epsilon=2).epsilon == 2
    pipe = Pipeline([("same", FunctionTransformer()), ("model", model)])
    assert len(cross_val_score(pipe, X, y, cv=3)) == 3
    fitted = model.fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.predict(X) == fitted.predict(X)).all()
    assert again.guarantee_.nano == fitted.guarantee_.nano


@pytest.mark.parametrize("name", FAMILY)
def test_nothing_private_is_kept(name):
    X, y = people(613)
    model = FAMILY[name](epsilon=5, schema=SCHEMA, target="ill", source=Seeded(3)).fit(X, y)
    seen = set()

    def arrays(thing):
        if id(thing) in seen:
            return
        seen.add(id(thing))
        if isinstance(thing, np.ndarray):
            yield thing
        elif isinstance(thing, dict):
            for value in thing.values():
                yield from arrays(value)
        elif isinstance(thing, list | tuple):
            for value in thing:
                yield from arrays(value)
        elif callable(thing) and getattr(thing, "__closure__", None):
            for cell in thing.__closure__:
                yield from arrays(cell.cell_contents)
        elif hasattr(thing, "__dict__"):
            yield from arrays(vars(thing))

    sizes = [a.shape for a in arrays({k: v for k, v in vars(model).items() if k not in ("schema", "source")})]
    assert all(613 not in shape for shape in sizes)
    assert 613 not in [v for v in vars(model).values() if isinstance(v, int | float)]


@pytest.mark.parametrize("name", FAMILY)
def test_values_outside_the_schema_never_fail_nor_show(name):
    X, y = people(400)
    X = X.astype(object)
    X.iloc[0] = ["secret-age", "secret-place", None]
    X.iloc[1] = [float("inf"), 7, -float("inf")]
    X.iloc[2] = [float("nan"), ["secret-list"], 10**300]
    y = y.astype(object)
    y[3] = "secret-label"
    y[4] = None
    model = FAMILY[name](epsilon=5, schema=SCHEMA, target="ill", source=Seeded(3)).fit(X, y)
    assert set(model.predict(X)) <= {"no", "yes"}
    assert np.isfinite(model.predict_proba(X)).all()
    assert "secret" not in repr(model) + str(model.guarantee_) + str(vars(model))


@pytest.mark.parametrize("name", FAMILY)
def test_empty_and_one_class_tables_are_no_error(name):
    """Whether a table is empty or holds one class only is private too."""
    X, y = people(50)
    for rows in (0, 1):
        model = FAMILY[name](epsilon=1, schema=SCHEMA, target="ill", source=Seeded(5)).fit(X[:rows], y[:rows])
        assert set(model.predict(X)) <= {"no", "yes"}
    same = FAMILY[name](epsilon=1, schema=SCHEMA, target="ill", source=Seeded(5)).fit(X, ["no"] * 50)
    assert len(same.predict(X)) == 50


def test_what_is_public_must_be_given():
    X, y = people(100)
    with pytest.raises(InputError, match="never taken from the data"):
        c.PrivateAdditive(epsilon=1, target="ill").fit(X, y)
    with pytest.raises(InputError, match="classes are public input"):
        c.PrivateAdditive(epsilon=1, schema=Schema(COLUMNS)).fit(X, y)
    with pytest.raises(InputError, match="no column 'height'"):
        c.PrivateAdditive(epsilon=1, schema=SCHEMA, target="ill").fit(X.drop(columns="height"), y)
    with pytest.raises(InputError, match="expected a table with the 3 columns"):
        c.PrivateAdditive(epsilon=1, schema=SCHEMA, target="ill").fit(np.zeros((5, 2)), y[:5])
    with pytest.raises(InputError, match="at least two different classes"):
        c.PrivateAdditive(epsilon=1, schema=Schema(COLUMNS), classes=["no", "no"]).fit(X, y)
    with pytest.raises(SfumatoError, match="greater than 0"):
        c.PrivateAdditive(epsilon=0, schema=SCHEMA, target="ill").fit(X, y)


def test_noise_free_is_refused_for_a_real_release():
    X, y = people(300)
    with pytest.raises(PrivacyError, match="no noise"):
        NoiseFree(schema=SCHEMA, target="ill").fit(X, y)
    model = NoiseFree(schema=SCHEMA, target="ill", source=Seeded(0)).fit(X, y)
    assert any("no noise" in reason for reason in model.guarantee_.not_private)
    assert model.score(X, y) > 0.9


def test_a_person_with_many_rows_costs_what_their_rows_cost():
    schema = Schema({**COLUMNS, "ill": Categorical(["no", "yes"])}, PrivacyUnit(person="who", rows_per_person=2))
    X, y = people(900)
    X["who"] = np.arange(900) // 5  # five rows each: three of them must not count
    model = c.Majority(epsilon=1, schema=schema, target="ill", source=Seeded(1)).fit(X, y)
    assert model.guarantee_.rows_per_person == 2
    assert model.guarantee_.nano == 10**9
    assert abs(np.exp(model.log_counts_).sum() - 360) < 60
    with pytest.raises(InputError, match="data frame with that column"):
        c.Majority(epsilon=1, schema=schema, target="ill").fit(X.drop(columns="who"), y)


def test_noise_has_the_scale_that_was_paid_for():
    """Accepts the right noise and rejects noise 30% too small: the tail of a published count over many fits."""
    schema = Schema({"age": COLUMNS["age"]})
    X, y = np.array([[3.0], [70.0]]), ["no", "yes"]
    noise = []
    for seed in range(700):
        model = c.Majority(epsilon=0.02, schema=schema, classes=["no", "yes"], source=Seeded(seed)).fit(X, y)
        noise.extend(np.exp(model.log_counts_) - 50 - 1)  # the prior of one noise scale, and one record
    tail = np.array(noise)
    tail = tail[tail > 0.5] - 0.5  # below, a published count is held at 0; beyond it the noise is exponential

    def fits(scale):
        return abs(tail.mean() / scale - 1) < 3.5 / np.sqrt(tail.size)

    assert fits(50)
    assert not fits(50 * 0.7)
    assert not fits(50 / 0.7)


def test_additive_model_shows_its_shape():
    import matplotlib

    matplotlib.use("Agg")
    X, y = people()
    model = c.PrivateAdditive(epsilon=3, schema=SCHEMA, target="ill", source=Seeded(1)).fit(X, y)
    shape = model.shape("age")
    assert shape.shape == (2, 8)
    assert shape[1][-1] - shape[0][-1] > 1 > -1 > shape[1][0] - shape[0][0]
    assert model.plot(column="age").get_title() == "age"
    assert len(model.plot().flat) >= 1
    with pytest.raises(InputError, match="no column"):
        model.shape("weight")
