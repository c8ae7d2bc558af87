"""The tables kept aside have the properties they are made for."""

import numpy as np
import pytest

from sfumato.bench.aside_tables import KINDS, aside_table, aside_tables
from sfumato.records.coding import cells_of


@pytest.mark.parametrize("name", KINDS)
def test_each_fits_its_schema_and_is_the_same_every_time(name):
    table = aside_table(name, 400)
    assert list(table.frame.columns) == list(table.schema.names)
    for column, domain in table.schema.columns.items():
        cells = cells_of(domain, table.frame[column])
        assert cells.min() >= 0
        assert cells.max() < domain.size
    assert table.frame.equals(aside_table(name, 400).frame)


def test_they_are_what_their_names_say():
    by_name = {table.name: table for table in aside_tables(20_000)}
    shares = {name: np.unique(table.labels, return_counts=True)[1] / len(table.frame) for name, table in by_name.items()}
    assert 0.015 < shares["rare class"].min() < 0.025
    assert shares["five classes"].size == 5
    assert len(by_name["wide"].schema) - 1 == 60
    assert len(by_name["small"].frame) == 2_000
    table = by_name["interactions only"]  # no column alone moves the class; two together do
    label = (table.frame["class"] == "v1").to_numpy()
    for column in table.features:
        cells = cells_of(table.schema[column], table.frame[column])
        rates = np.bincount(cells, label) / np.maximum(np.bincount(cells), 1)
        assert np.abs(rates - label.mean()).max() < 0.05
    parts = [cells_of(table.schema[f"part_{j}"], table.frame[f"part_{j}"]) % 2 for j in (0, 1)]
    same = parts[0] == parts[1]
    assert abs(label[same].mean() - label[~same].mean()) > 0.3
