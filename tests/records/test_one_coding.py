"""One rule for values in memory: a value without a cell is -1, nothing raises because of a value, engines agree."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato.bench.grids_data import encode
from sfumato.classifiers import HistogramClassifier
from sfumato.errors import InputError, SchemaError
from sfumato.grids import PrivPfC
from sfumato.privacy import Seeded
from sfumato.records.attributes import attribute_of, attributes_of
from sfumato.records.coding import UNKNOWN, Coding, cells_of, leaves_of_frame
from sfumato.tables import Categorical, Numeric, Schema, open
from sfumato.testing import reveal

ODD = ["secret", None, math.nan, [1], 2j, object(), b"\xff", "\ud800", {"a": 1}, (1, [2]), 10**400]
DOMAINS = {
    "numbers": Numeric(0, 10, bins=2),
    "numbers and other": Numeric(0, 10, bins=2, outside="other"),
    "text": Categorical(["F", "M"]),
    "text and other": Categorical(["F", "M"], other=True),
    "whole numbers": Categorical([3, 1, 7]),
    "true and false": Categorical([True, False], other="unknown"),
}


@pytest.mark.parametrize("odd", ODD, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("name", DOMAINS)
def test_no_value_raises_and_none_is_quoted(name, odd):
    domain = DOMAINS[name]
    column = pd.Series([None, odd], dtype=object)
    (_, cell) = cells_of(domain, column)
    nothing = domain.size - 1 if domain.other else UNKNOWN
    assert cell == (1 if odd == 10**400 and name == "numbers" else nothing)
    leaf = leaves_of_frame(pd.DataFrame({"c": column}), [attribute_of("c", domain)])[1, 0]
    assert (leaf == UNKNOWN) == (cell == UNKNOWN)


def test_lists_inside_a_list_are_values():
    assert cells_of(DOMAINS["text"], [["F"], ["M"]]).tolist() == [-1, -1]
    assert cells_of(DOMAINS["text"], np.array([["F"], ["M"]])).tolist() == [0, 1]  # a column of an array


@pytest.mark.parametrize("name", DOMAINS)
def test_memory_and_engine_agree(name):
    domain = DOMAINS[name]
    column = {
        "numbers": [0.0, 4.9, 5.0, 10.0, 11.0, -3.0, math.inf, math.nan, None],
        "text": ["F", "M", "f", "", None, "M "],
        "whole": [3, 1, 7, 2, None, -1],
        "true": [True, False, None],
    }[name.split()[0]]
    table = pa.table({"row": list(range(len(column))), "c": column})
    schema = Schema({"row": Numeric(0, len(column), bins=len(column) + 1, integer=True), "c": domain})
    codes, _ = reveal(open(table, schema=schema).sparse_counts(["row", "c"]))
    assert dict(codes.tolist()) == {i: c for i, c in enumerate(cells_of(domain, column).tolist()) if c != UNKNOWN}


SCHEMA = Schema(
    {
        "age": Numeric(0, 80, bins=8),
        "job": Categorical(["smith", "none", "clerk"]),
        "ill": Categorical(["no", "yes"]),
    }
)


def people(n=6000):
    age = np.arange(n) % 80 + 0.5
    job = np.array(["none", "clerk", "smith"])[np.arange(n) // 80 % 3]
    ill = np.where((age < 40) ^ (job == "smith"), "no", "yes")
    return pd.DataFrame({"age": age, "job": job, "ill": ill})


def test_a_grid_that_meets_an_unknown_value_asks_the_other_columns():
    frame = people()
    synopsis = (
        PrivPfC(epsilon=50, target="ill", rows=len(frame), grids=1).fit(frame, schema=SCHEMA, source=Seeded(1)).synopsis
    )
    model = synopsis.classifier()
    assert model.score(frame, frame["ill"]) > 0.99
    strange = pd.DataFrame({"age": [10.0, 70.0, "secret", None], "job": ["astronaut", "astronaut", "smith", "astronaut"]})
    found = model.predict(strange).tolist()
    assert found[:2] == ["no", "yes"]  # as two of three jobs; the first in the list, smith, is the other way round
    assert set(found[2:]) <= {"no", "yes"}
    assert model.predict(pd.DataFrame({"age": [70.0], "job": ["smith"]})).tolist() == ["no"]


def test_a_classifier_over_a_grid_follows_the_same_rule():
    frame = people()
    model = HistogramClassifier(epsilon=50, schema=SCHEMA, target="ill", rows=len(frame), grids=1, source=Seeded(1))
    model.fit(frame[["age", "job"]], frame["ill"])
    strange = pd.DataFrame({"age": [10.0, 70.0], "job": ["astronaut", "astronaut"]})
    assert model.predict(strange).tolist() == ["no", "yes"]
    shares = model.predict_proba(strange)
    assert shares.sum(axis=1) == pytest.approx(1)
    assert shares[0, 0] == pytest.approx(2 / 3, abs=0.02)  # two of three jobs at that age


def test_in_training_a_row_without_a_cell_takes_no_part():
    frame = people(240)
    frame.loc[0, "job"] = "astronaut"
    frame.loc[1, "ill"] = "maybe"
    coding = Coding.of(SCHEMA, target="ill")
    assert reveal(coding.records(frame, frame["ill"])).total == 238
    assert encode("people", frame, SCHEMA, "ill").records.total == 238
    codes, counts = reveal(open(frame, schema=SCHEMA).sparse_counts(["age", "job", "ill"]))
    assert counts.sum() == 238
    assert codes.min() >= 0


def test_what_is_asked_for_and_missing_is_named():
    with pytest.raises(InputError, match="no column 'job', which is needed"):
        leaves_of_frame(pd.DataFrame({"age": [1.0]}), attributes_of(SCHEMA, target="ill"))
    with pytest.raises(SchemaError, match="'age' must be categorical"):
        Coding.of(SCHEMA, target="age")
