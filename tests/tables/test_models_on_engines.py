"""A model trained where the data lives is the same on every engine."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.privacy import Seeded
from sfumato.releases.predicting import predict_file
from sfumato.tables import Boolean, Date, Decimals

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
    for name in ("forest", "privpfc"):
        found[name] = table.model(target="ill", estimator=name, epsilon=3, where="age < 75")
    roster = sf.Roster.tiers({"strict": 0.5, "open": 2.0}, column="consent", counts={"strict": N // 2, "open": N // 2})
    table = sf.open(**where, schema=SCHEMA, budgets=roster, noise=Seeded(8), ledger=":memory:")
    found["personal"] = table.model(target="ill", estimator="logistic-regression", share=1)
    rows = patients().to_pandas()
    return {name: (made.predict(rows).tolist(), made.to_dict()["model"]["arrays_sha256"]) for name, made in found.items()}


def test_every_engine_trains_the_same_model(put, expected):
    assert answers(put(patients())) == expected


def test_columns_of_every_kind_are_coded_alike_in_a_frame_a_table_and_a_file(tmp_path):
    """Dates, decimals, true and false, and whole numbers with names, one of them as the target."""
    draw = np.random.default_rng(1)
    day = np.datetime64("2024-01-01") + draw.integers(0, 366, N)
    sick = draw.random(N) < np.where(day > np.datetime64("2024-06-30"), 0.9, 0.1)
    frame = pd.DataFrame(
        {
            "day": pd.Series(day.astype("datetime64[s]")).dt.date,
            "cost": [Decimal(int(c)) / 100 for c in draw.integers(0, 9999, N)],
            "smokes": draw.random(N) < 0.5,
            "home": np.where(sick, 1, 0),
        }
    )
    schema = sf.Schema(
        {
            "day": Date("2024-01-01", "2024-12-31", by="month"),
            "cost": Decimals("0", "100", bins=4, decimals=2),
            "smokes": Boolean(true="smoker", false="not"),
            "home": sf.Categorical([0, 1], value_labels=("owned", "rented"), missing="not said"),
        }
    )
    table = sf.open(frame, schema=schema, epsilon=20, noise=Seeded(7), ledger=":memory:")
    for name in ("naive-bayes", "privpfc"):
        made = table.model(target="home", estimator=name, epsilon=5)
        said = made.to_frame()
        if "class" in said:
            assert set(said["class"]) == {"owned", "rented", "not said"}
        else:
            assert {"home = owned", "home = rented", "home = not said"} <= set(said)
        loaded = sf.load(made.estimator.save(tmp_path / name))
        np.testing.assert_array_equal(loaded.predict(frame), made.predict(frame))
        assert (made.predict(frame).astype(str) == frame["home"].astype(str)).mean() > 0.7
        frame.to_csv(tmp_path / "rows.csv", index=False)
        out = tmp_path / f"{name}.parquet"
        predict_file(loaded, tmp_path / "rows.csv", out)
        written = pd.read_parquet(out)["predicted_home"].astype(str)
        np.testing.assert_array_equal(written.to_numpy(dtype=str), made.predict(frame).astype(str))
