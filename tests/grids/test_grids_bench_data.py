"""The data sets of the bench: public schemas that can be coded, whatever the file holds."""

import numpy as np
import pandas as pd
import pytest

from sfumato.bench.grids_data import SOURCES, encode, load
from sfumato.bench.grids_whole import WAYS, whole_claims, whole_tables
from sfumato.errors import InputError
from sfumato.records.coding import cells_of
from sfumato.tables import Categorical


@pytest.mark.parametrize("name", SOURCES)
def test_each_schema_has_its_target_last_and_codes_a_table(name, tmp_path):
    file, make, target = SOURCES[name]
    schema = make()
    assert schema.names[-1] == target
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            c: rng.uniform(d.low, d.high, 50)
            if hasattr(d, "edges")
            else np.array(d.values)[rng.integers(len(d.values), size=50)]
            for c, d in schema.columns.items()
        }
    )
    frame.to_parquet(tmp_path / file)
    case = load(name, tmp_path)
    assert len(case.records.leaves) == 50
    assert len(case.attributes) == len(schema) - 1
    for j, attribute in enumerate(case.attributes):
        assert case.records.leaves[:, j].max() < attribute.levels.leaves
    assert encode(name, frame, schema, target).records.total == 50


def test_missing_answers_go_to_the_other_cell():
    assert cells_of(Categorical(["a", "b"], other=True), ["b", None, float("nan"), "a"]).tolist() == [1, 2, 2, 0]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="census_income_kdd"):
        load("census", tmp_path)


def test_whole_tables_are_compared_way_by_way():
    found = whole_tables(quick=True, data=None, progress=lambda _: None)
    (by_epsilon,) = found.values()
    for ways in by_epsilon.values():
        assert set(ways) == set(WAYS)
        assert "misclassified" not in ways["PrivBayes"]
    strong = by_epsilon["1"]
    assert strong["classification"]["single columns"] < strong["as published"]["single columns"] - 0.05
    assert strong["PrivBayes"]["pairs"] < strong["as published"]["pairs"]
    assert len(whole_claims(found)) == 6
