"""The power of naive Bayes' likelihood: what choosing it is good for and what it costs."""

import numpy as np
import pandas as pd
import pytest

from sfumato.classifiers import PrivateNaiveBayes
from sfumato.classifiers.counting.naive_bayes import PLAIN, POWERS
from sfumato.errors import InputError
from sfumato.privacy import Seeded
from sfumato.tables import Categorical, Schema

NAMES = [f"copy {i}" for i in range(6)]
SCHEMA = Schema({name: Categorical(["a", "b"]) for name in NAMES} | {"ill": Categorical(["no", "yes"])})


def _rare(n=20_000, seed=0):
    """A rare class, and six columns that say nearly the same: naive Bayes believes them six times."""
    draw = np.random.default_rng(seed)
    ill = draw.random(n) < 0.1
    sign = draw.random(n) < np.where(ill, 0.7, 0.15)
    X = pd.DataFrame({name: np.where(sign ^ (draw.random(n) < 0.01), "b", "a") for name in NAMES})
    return X, np.where(ill, "yes", "no")


def _fit(X, y, **rest):
    return PrivateNaiveBayes(epsilon=1, schema=SCHEMA, target="ill", source=Seeded(1), **rest).fit(X, y)


def test_repeated_columns_are_believed_less():
    X, y = _rare()
    chosen = _fit(X, y)
    assert chosen.temper_ == min(POWERS)
    assert chosen.score(X, y) > _fit(X, y, temper=1.0).score(X, y) + 0.02
    assert chosen.score(X, y) >= (y == "no").mean() - 0.002


def test_columns_that_do_not_repeat_are_believed_more():
    draw = np.random.default_rng(1)
    ill = draw.random(20_000) < 0.2
    X = pd.DataFrame({name: np.where(draw.random(20_000) < np.where(ill, 0.7, 0.3), "b", "a") for name in NAMES})
    assert _fit(X, np.where(ill, "yes", "no")).temper_ >= 0.5


def test_a_stated_power_and_a_small_table_cost_nothing():
    X, y = _rare(1000)
    assert "choice" not in str([s.mechanism for s in _fit(X, y, temper=0.4).guarantee_.steps])
    small, large = _fit(X, y), _fit(X, y, rows=50_000)
    assert small.temper_ == PLAIN
    assert len(large.guarantee_.steps) == len(NAMES) + 1
    assert len(small.guarantee_.steps) == len(NAMES) + 1  # the number of records instead of the choice
    assert small.guarantee_.nano <= 10**9
    assert large.guarantee_.nano <= 10**9
    with pytest.raises(InputError, match="temper is a number or 'auto'"):
        _fit(X, y, temper="hot")
