"""scikit-learn conventions, and that models are useful."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator

from sfumato.classifiers.linear.erm import PrivateLogisticRegression, PrivateSVM
from sfumato.classifiers.linear.scaling import Scaling
from sfumato.errors import InputError, PrivacyWarning
from sfumato.privacy import Seeded

BOTH = [PrivateLogisticRegression, PrivateSVM]


def _data(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 4))
    y = (rng.random(n) < 1 / (1 + np.exp(-6 * X[:, 0] + 3 * X[:, 1]))).astype(int)
    return X, y, rng


@pytest.mark.parametrize("estimator", BOTH)
def test_one_epsilon(estimator):
    X, y, _ = _data()
    model = estimator(epsilon=1, bounds=(-1, 1), source=Seeded(1)).fit(X[:4000], y[:4000])
    assert roc_auc_score(y[4000:], model.decision_function(X[4000:])) > 0.85
    assert 0.99 < float(model.guarantee_.epsilon) <= 1
    inside = X[4000:] @ model.coef_[0] + model.intercept_[0]
    assert np.allclose(inside, model.decision_function(X[4000:]))


@pytest.mark.parametrize("estimator", BOTH)
@pytest.mark.parametrize("mechanism", ["weighted", "minimum", "threshold", "sampling", "partition"])
def test_personal_budgets(estimator, mechanism):
    X, y, rng = _data()
    granted = rng.choice([0.05, 0.3, 1.0], 6000, p=[0.5, 0.4, 0.1])
    model = estimator(bounds=(-1, 1), budgeting=mechanism, source=Seeded(3)).fit(X, y, budgets=granted)
    assert roc_auc_score(y, model.decision_function(X)) > (0.6 if mechanism == "minimum" else 0.8)
    assert (model.guarantee_.people <= model.guarantee_.budgets.levels).all()


def test_weighted_is_better_than_minimum_on_average():
    X, y, rng = _data()
    granted = rng.uniform(0.01, 0.1, 6000)
    auc = {
        m: np.mean(
            [
                roc_auc_score(
                    y,
                    PrivateLogisticRegression(bounds=(-1, 1), budgeting=m, source=Seeded(s))
                    .fit(X, y, budgets=granted)
                    .decision_function(X),
                )
                for s in range(12)
            ]
        )
        for m in ("weighted", "minimum")
    }
    assert auc["weighted"] > auc["minimum"] + 0.02


@pytest.mark.parametrize("estimator", BOTH)
def test_several_classes_split_the_budget(estimator):
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (6000, 2))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.3, 0.3])]
    model = estimator(epsilon=3, bounds=(-1, 1), source=Seeded(4)).fit(X, y)
    assert model.decision_function(X).shape == (6000, 3)
    assert model.score(X, y) > 0.5
    assert float(model.guarantee_.epsilon) <= 3
    assert [step.label for step in model.guarantee_.steps] == ["number of records"] + ["objective perturbation"] * 3


def test_probabilities_vote_and_max_norm():
    X, y, rng = _data()
    model = PrivateLogisticRegression(epsilon=2, max_norm=2.0, source=Seeded(5)).fit(X, y)
    share = model.predict_proba(X)
    assert np.allclose(share.sum(axis=1), 1)
    assert ((share[:, 1] > 0.5) == (model.predict(X) == 1)).all()
    granted = rng.choice([0.05, 0.3, 1.0], 6000)
    vote = PrivateSVM(bounds=(-1, 1), budgeting="partition", parts=3, ensemble="vote", source=Seeded(6))
    vote.fit(X, y, budgets=granted)
    assert vote.parameters_["parts"] == 3
    assert vote.score(X, y) > 0.6
    assert set(vote.predict(X)) <= {0, 1}


def test_rows_never_exceed_norm_one():
    rng = np.random.default_rng(3)
    for model in (PrivateSVM(bounds=(-1, [1, 2, 3])), PrivateSVM(max_norm=1.5)):
        features = Scaling.of(3, model.bounds, model.max_norm)
        for scale in (1, 100, 1e300):
            rows = features.rows(np.clip(rng.normal(size=(1000, 3)), -1, 1) * scale)
            assert np.linalg.norm(rows, axis=1).max() <= 1
            assert np.linalg.norm(rows, axis=1).max() > 0.8


def test_what_is_not_public_is_refused():
    X, y, _ = _data(200)
    with pytest.raises(InputError, match="feature bounds must be public"):
        PrivateLogisticRegression().fit(X, y)
    with pytest.raises(InputError, match="low < high"):
        PrivateLogisticRegression(bounds=(1, 1)).fit(X, y)
    with pytest.raises(InputError, match="give each row its own"):
        PrivateLogisticRegression(bounds=(-1, 1)).fit(X, y, budgets=[0.1])
    with pytest.raises(InputError, match="unknown budgeting"):
        PrivateSVM(bounds=(-1, 1), budgeting="magic").fit(X, y)
    stated = PrivateSVM(bounds=(-1, 1), classes=[0, 1]).fit(X, y)
    assert not any("labels" in a for a in stated.guarantee_.assumptions)
    assert any("labels" in a for a in PrivateSVM(bounds=(-1, 1)).fit(X, y).guarantee_.assumptions)


def test_pipelines_clones_and_searches():
    X, y, _ = _data(1500)
    pipe = make_pipeline(FunctionTransformer(), PrivateLogisticRegression(epsilon=5, bounds=(-1, 1)))
    assert pipe.fit(X, y).score(X, y) > 0.5
    with pytest.warns(PrivacyWarning):
        search = GridSearchCV(PrivateSVM(bounds=(-1, 1)), {"regularization": [1.0, 10.0]}, cv=2).fit(X, y)
    assert search.best_params_["regularization"] in (1.0, 10.0)
    assert clone(PrivateSVM(epsilon=3)).epsilon == 3


# What privacy forbids: these checks want two fits on the same data to agree. At this ε they mostly do.
FORBIDDEN = {
    "check_classifier_data_not_an_array",
    "check_fit_idempotent",
    "check_pipeline_consistency",
    "check_supervised_y_2d",
}


@pytest.mark.parametrize("estimator", BOTH)
def test_scikit_learn_checks(estimator):
    failed = {}
    # A seed, because some checks ask for an accuracy on a handful of records: with fresh noise one fails now and then.
    asked = {"epsilon": 100_000, "bounds": (-30, 30), "source": Seeded(1)}
    for _, check in estimator_checks_generator(estimator(**asked), legacy=True):
        name = getattr(check, "func", check).__name__
        try:
            check(estimator(**asked))
        except Exception as error:
            if type(error).__name__ != "SkipTest":
                failed[name] = str(error).splitlines()[0][:150]
    failed.pop("check_estimators_overwrite_params", None)  # a seeded source moves on as it is drawn from
    assert set(failed) <= FORBIDDEN, failed
