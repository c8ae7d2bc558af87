"""Estimators that charge a ledger, and what around them is not private."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, Normalizer, OneHotEncoder, StandardScaler

import sfumato as sf
from sfumato.classifiers import Majority, PrivateNaiveBayes, PrivateSearch, PrivateSVM, check_pipeline
from sfumato.classifiers.portable_states import ESTIMATORS
from sfumato.errors import BudgetError, LedgerError, PrivacyWarning, SfumatoError
from sfumato.privacy import NANO, Seeded
from sfumato.records.coding import Coding

SCHEMA = sf.Schema({"age": sf.Numeric(0, 80, bins=8), "ill": sf.Categorical(["no", "yes"])})
X = (np.arange(200.0) % 80)[:, None]
Y = np.where(X[:, 0] < 40, "no", "yes")


@pytest.fixture
def ledger(tmp_path):
    made = sf.Ledger.open(tmp_path / "clinic.ledger")
    made.register("clinic", epsilon=5)
    return made


def spent(ledger):
    return ledger.balance("clinic").total.spent / NANO


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_is_charged_before_it_looks(name, ledger, monkeypatch):
    model = ESTIMATORS[name](epsilon=3, schema=SCHEMA, target="ill", ledger=ledger, dataset="clinic", source=Seeded(1))
    model.fit(X, Y)
    assert spent(ledger) == 3 == model.ledger_spent_
    entry = ledger.entry("clinic", model.ledger_entry_)
    assert (entry.name, entry.state) == (f"fit of {name}", "committed")
    monkeypatch.setattr(Coding, "leaves", lambda *_: pytest.fail("the rows were read"))
    with pytest.raises(BudgetError, match="2 of 5 left for 'clinic'"):
        clone(model).fit(X, Y)
    assert spent(ledger) == 3


def test_a_fit_that_fails_stays_spent_and_the_same_fit_again_is_charged_again(ledger, monkeypatch):
    model = Majority(epsilon=1, schema=SCHEMA, target="ill", ledger=ledger.location, dataset="clinic")
    model.fit(X, Y)
    with pytest.warns(PrivacyWarning, match="2 private fits"):
        model.fit(X, Y)
    assert (spent(ledger), model.ledger_spent_) == (2, 2)
    monkeypatch.setattr(Majority, "_train", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        clone(model).fit(X, Y)
    assert spent(ledger) == 3
    assert [r.state for r in ledger.history("clinic")][-1] == "failed"


def test_what_public_facts_rule_out_costs_nothing(ledger, tmp_path):
    wrong = {
        "no column": {"target": "sick"},
        "which one is fitted": {"dataset": None},
        "ledger is a Ledger": {"ledger": 3},
        "no ledger": {"ledger": tmp_path / "none.ledger"},
        "wards": {"dataset": "wards"},
        "give ledger": {"ledger": None},
    }
    for message, changes in wrong.items():
        model = Majority(epsilon=1, schema=SCHEMA, target="ill", ledger=ledger, dataset="clinic").set_params(**changes)
        with pytest.raises(SfumatoError, match=message):
            model.fit(X, Y)
    assert not (tmp_path / "none.ledger").exists()
    assert spent(ledger) == 0


def test_budgets_of_their_own_are_charged_as_the_largest(ledger):
    model = PrivateSVM(schema=SCHEMA, target="ill", ledger=ledger, dataset="clinic", source=Seeded(1))
    model.fit(X, Y, budgets=np.tile([0.5, 2.0], 100))
    assert spent(ledger) == 2


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrivacyWarning")
def test_a_cross_validation_and_a_search_are_charged_fit_by_fit(ledger):
    model = Majority(epsilon=0.5, schema=SCHEMA, target="ill", ledger=ledger, dataset="clinic")
    cross_val_score(model, X, Y, cv=2)
    assert spent(ledger) == 1
    with pytest.raises(BudgetError):
        GridSearchCV(model.set_params(epsilon=1), {"epsilon": [1, 1.5]}, cv=2, error_score="raise", refit=False).fit(X, Y)
    assert spent(ledger) <= 5


def test_a_private_search_is_charged_once(ledger, tmp_path):
    inner = PrivateNaiveBayes(schema=SCHEMA, target="ill", ledger=ledger, dataset="clinic")
    search = PrivateSearch(estimator=inner, grid={"temper": [0.3, 1.0]}, epsilon=2, ledger=ledger, dataset="clinic")
    search.fit(X, Y)
    assert spent(ledger) == 2 == search.ledger_spent_
    loaded = sf.load(search.save(tmp_path / "found"))
    assert loaded.guarantee_.nano == search.guarantee_.nano > search.best_estimator_.guarantee_.nano
    np.testing.assert_array_equal(loaded.predict(X), search.predict(X))


def test_copies_of_a_ledger_write_into_the_same_book(ledger, tmp_path):
    assert copy.deepcopy(ledger) is ledger
    there = pickle.loads(pickle.dumps(ledger))
    there.reserve("clinic", sf.Charge.of(1), request={"a": 1})
    assert spent(ledger) == 1
    stored = pickle.dumps(ledger)
    (tmp_path / "clinic.ledger").rename(tmp_path / "moved.ledger")
    with pytest.raises(LedgerError):  # and never a fresh one
        pickle.loads(stored)


# --- around an estimator -------------------------------------------------------------------------------------------------

NUMBERS = {"bounds": (-1, 1), "classes": ["no", "yes"]}
LEARN = [
    ("step 'minmaxscaler'", make_pipeline(MinMaxScaler(), PrivateSVM(**NUMBERS))),
    ("step 'a'", Pipeline([("a", FeatureUnion([("s", StandardScaler())])), ("b", PrivateSVM(**NUMBERS))])),
    ("step 'columntransformer'", make_pipeline(ColumnTransformer([("x", OneHotEncoder(), [0])]), PrivateSVM(**NUMBERS))),
    ("step 'standardscaler'", GridSearchCV(make_pipeline(StandardScaler(), PrivateSVM(**NUMBERS)), {"a": [1]})),
    ("GridSearchCV fits", GridSearchCV(PrivateSVM(**NUMBERS), {"regularization": [1]})),
    ("CalibratedClassifierCV fits", CalibratedClassifierCV(PrivateSVM(**NUMBERS))),
]
FINE = [
    PrivateSVM(**NUMBERS),
    PrivateSearch(estimator=PrivateSVM(**NUMBERS)),
    make_pipeline(Normalizer(), FunctionTransformer(), "passthrough", PrivateSVM(**NUMBERS)),
    make_pipeline(OneHotEncoder(categories=[["a", "b"]]), PrivateSVM(**NUMBERS)),
    make_pipeline(StandardScaler(), MinMaxScaler()),  # nothing private in it
]


@pytest.mark.parametrize(("words", "pipeline"), LEARN)
def test_what_learns_from_rows_is_found_by_its_structure(words, pipeline):
    assert any(found.startswith(words) for found in check_pipeline(pipeline))


@pytest.mark.parametrize("pipeline", FINE)
def test_what_learns_nothing_is_not_found(pipeline):
    assert check_pipeline(pipeline) == []


def test_a_pipeline_that_fits_a_private_estimator_is_noticed(ledger):
    rows = np.sin(np.arange(80.0)).reshape(40, 2)
    labels = np.where(rows[:, 0] > 0, "yes", "no")
    scaled = make_pipeline(StandardScaler(), PrivateSVM(**NUMBERS, ledger=ledger, dataset="clinic"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PrivacyWarning, match="step 'standardscaler'"):
            scaled.fit(rows, labels)
        assert spent(ledger) == 0, "whoever makes the warning an error is stopped before the charge"
        make_pipeline(Normalizer(), PrivateSVM(**NUMBERS)).fit(rows, labels)


def test_the_warning_does_not_depend_on_the_rows():
    """Rows that happen to be standardised are rows like any others: a warning about them would tell of them."""
    rows = np.sin(np.arange(80.0)).reshape(40, 2)
    labels = np.where(rows[:, 0] > 0, "yes", "no")
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        for some in (rows, (rows - rows.mean(axis=0)) / rows.std(axis=0), rows * 0):
            PrivateSVM(**NUMBERS).fit(some, labels)
