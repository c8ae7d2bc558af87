"""Choosing parameters within one ε, and a word where it is done without."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sfumato.classifiers import PrivateLogisticRegression, PrivateNaiveBayes, PrivateSearch, PrivateSVM
from sfumato.errors import InputError, PrivacyWarning
from sfumato.privacy import NANO, Seeded
from sfumato.tables import Categorical, Numeric, PrivacyUnit, Schema
from sfumato.testing import replay

SCHEMA = Schema({"age": Numeric(0, 80, bins=8), "ill": Categorical(["no", "yes"])})
SVM = PrivateSVM(bounds=(0, 80), classes=["no", "yes"])


def ages(n=2000):
    age = (np.arange(n) * 37) % 80
    return age[:, None], np.where(age < 40, "no", "yes")


def test_the_better_candidate_is_chosen_within_epsilon():
    X, _ = ages()
    y = np.where(X[:, 0] < 20, "no", "yes")  # a heavy penalty puts everybody on one side
    search = PrivateSearch(estimator=SVM, grid={"regularization": [1e6, 1.0]}, epsilon=2).fit(X, y)
    assert search.best_params_ == {"regularization": 1.0}
    assert search.best_index_ == 1
    assert search.score(X, y) > 0.9
    assert search.decision_function(X).shape == (2000,)
    assert not hasattr(search, "predict_proba")
    assert 1.99 * NANO < search.guarantee_.nano <= 2 * NANO
    assert search.guarantee_.private
    assert [s.label for s in search.guarantee_.steps] == [
        "fit of candidate 1 of 2",
        "fit of candidate 2 of 2",
        "choice of a candidate",
    ]
    assert search.best_estimator_.guarantee_.nano <= search.guarantee_.steps[0].loss
    assert any("real numbers" in said for said in search.guarantee_.assumptions)
    assert pickle.loads(pickle.dumps(search)).predict(X[:3]).shape == (3,)


@pytest.mark.parametrize("neighbours", ["absence", "replacement"])
def test_the_loss_of_a_whole_search_is_what_it_says(neighbours):
    models = {
        "svm": clone(SVM).set_params(neighbours=neighbours),
        "logistic": PrivateLogisticRegression(schema=SCHEMA, target="ill", neighbours=neighbours),
    }
    for model in models.values():
        largest = 0.0
        for seed in range(4):

            def fit(table, source, model=model):
                search = PrivateSearch(
                    estimator=model, grid={"regularization": [0.1, 1.0, 10.0]}, epsilon=3, choice=0.5, source=source
                )
                search.fit(*table)
                return [search.best_index_, search.best_estimator_.coef_, search.guarantee_.nano]

            X, y = ages(9)
            there = (X[:-1], y[:-1])
            if neighbours == "replacement":
                there = (X, np.where(np.arange(9) == 8, np.where(y == "no", "yes", "no"), y))
            found = replay(fit, (X, y), there, source=seed)
            assert found.same_output
            assert found.loss <= found.published[0][-1] <= 3 * NANO
            assert all(pair.loss <= pair.charged for pair in found.calls if pair.here.noisy)
            largest = max(largest, found.loss)
        assert largest > 0.3 * NANO


def test_counting_models_can_be_searched_too():
    X, y = ages()
    model = PrivateNaiveBayes(schema=SCHEMA, target="ill", rows=2000)
    search = PrivateSearch(estimator=model, grid=[{"rows": [10, 2000]}], epsilon=2, source=Seeded(1)).fit(X, y)
    assert search.predict_proba(X).shape == (2000, 2)
    assert search.guarantee_.nano <= 2 * NANO
    assert not search.guarantee_.private


def test_a_person_with_many_rows_counts_as_often_as_the_unit_allows():
    schema = Schema(
        {**SCHEMA.columns, "who": Categorical(["a", "b", "c"])}, unit=PrivacyUnit(person="who", rows_per_person=2)
    )
    model = PrivateNaiveBayes(schema=schema, target="ill", rows=5)
    table = pd.DataFrame({"age": [10, 70, 20, 60, 30, 50, 79], "who": list("aabbccc")})
    ill = np.array(["no", "yes", "no", "yes", "no", "yes", "yes"])

    def fit(keep, source):
        search = PrivateSearch(estimator=model, grid={"rows": [5, 9]}, epsilon=4, choice=0.5, source=source)
        search.fit(table[keep], ill[keep])
        return search.guarantee_.nano

    for seed in range(5):
        found = replay(fit, np.ones(7, dtype=bool), (table["who"] != "c").to_numpy(), source=seed)
        choice = found.calls[-1]
        assert choice.loss <= choice.charged
        assert choice.here.exact.max() <= 6
        assert found.published[0] <= 4 * NANO


def test_what_cannot_be_searched_is_refused():
    X, y = ages(50)
    several = Schema(dict(SCHEMA.columns), unit=PrivacyUnit(person="age", rows_per_person=2))
    for given, said in (
        ({"estimator": object()}, "needs a private classifier"),
        ({"grid": {}}, "needs candidates"),
        ({"grid": {"epsilon": [1, 2]}}, "the same for all candidates"),
        ({"grid": {"depth": [1, 2]}}, "not a parameter"),
        ({"choice": 1.0}, "between 0 and 1"),
        ({"epsilon": 1e-9}, "too small"),
        ({"estimator": PrivateNaiveBayes(schema=several, target="ill"), "grid": {"rows": [1]}}, "needs a data frame"),
    ):
        asked = {"estimator": SVM, "grid": {"regularization": [1.0]}, **given}
        with pytest.raises(InputError, match=said):
            PrivateSearch(**asked).fit(X, y)
    with pytest.raises(InputError, match="different lengths"):
        PrivateSearch(estimator=SVM, grid={"regularization": [1.0]}).fit(X, y[:-1])


def test_several_fits_of_one_table_are_noticed():
    X, y = ages(200)
    with pytest.warns(PrivacyWarning, match=r"4 private fits .* ε 4 together .*PrivateSearch"):
        GridSearchCV(SVM, {"regularization": [1.0, 10.0]}, cv=2).fit(X, y)
    with pytest.warns(PrivacyWarning, match="2 private fits of one PrivateLogisticRegression"):
        cross_val_score(PrivateLogisticRegression(bounds=(0, 80), classes=["no", "yes"]), X, y, cv=2)
    with pytest.warns(PrivacyWarning, match="2 private fits"):
        cross_val_score(make_pipeline(FunctionTransformer(), PrivateSVM(bounds=(0, 80))), X, y, cv=2)
    again = PrivateSVM(bounds=(0, 80), classes=["no", "yes"]).fit(X, y)
    with pytest.warns(PrivacyWarning, match="2 private fits"):
        again.fit(X, y)


def test_ordinary_use_is_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X, y = ages(200)
        model = PrivateSVM(bounds=(0, 80), classes=["no", "yes"])
        model.fit(X, y)
        model.fit(*ages(300))
        clone(PrivateSVM(bounds=(0, 80), classes=["no", "yes"])).fit(X, y)
        PrivateSearch(estimator=clone(SVM), grid={"regularization": [1.0, 2.0]}).fit(X, y)
        seeded = PrivateSVM(bounds=(0, 80), classes=["no", "yes"], source=Seeded(1))
        cross_val_score(seeded, X, y, cv=2)
