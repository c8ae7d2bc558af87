"""A model trained where the data lives is the same on every engine."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.privacy import Seeded

SCHEMA = sf.Schema(
    {
        "age": sf.Numeric(0, 80, bins=8),
        "job": sf.Categorical(["a", "b", "c"], other="else"),
        "ill": sf.Categorical(["no", "yes"]),
    }
)
N = 400


def patients() -> pa.Table:
    draw = np.random.default_rng(4)
    age = draw.uniform(-5, 90, N)
    return pa.table(
        {
            "age": pa.array(np.where(draw.random(N) < 0.05, np.nan, age)),
            "job": draw.choice(["a", "b", "c", "zz"], N).tolist(),
            "ill": np.where(draw.random(N) < np.where(age > 40, 0.9, 0.1), "yes", "no").tolist(),
            "consent": np.array(["strict", "open"])[np.arange(N) % 2].tolist(),
        }
    )


@pytest.fixture(scope="module")
def expected():
    return answers({"source": patients()})


def answers(where):
    found = {}
    table = sf.open(**where, schema=SCHEMA, epsilon=20, noise=Seeded(7), ledger=":memory:")
    for name in ("tree", "forest", "svm", "privpfc"):
        found[name] = table.model(target="ill", estimator=name, epsilon=3, where="age < 75")
    roster = sf.Roster.tiers({"strict": 0.5, "open": 2.0}, column="consent", counts={"strict": N // 2, "open": N // 2})
    table = sf.open(**where, schema=SCHEMA, budgets=roster, noise=Seeded(8), ledger=":memory:")
    found["personal"] = table.model(target="ill", estimator="logistic-regression", share=1)
    rows = patients().to_pandas()
    return {name: (made.predict(rows).tolist(), made.to_dict()["model"]["arrays_sha256"]) for name, made in found.items()}


def test_every_engine_trains_the_same_model(put, expected):
    assert answers(put(patients())) == expected
