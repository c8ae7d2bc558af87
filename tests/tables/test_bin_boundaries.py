"""One meaning of bins for everybody: boundaries increase, and numbers at and around the bounds land in the same cell."""

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato.histograms import Bins
from sfumato.records.attributes import attribute_of
from sfumato.records.coding import cells_of
from sfumato.tables import Numeric, Schema
from sfumato.tables import open as open_table
from sfumato.testing import reveal

ROUND = [-math.inf, -1.0, -0.5, 0.0, 0.5, 1.0, 29.5, 30.0, 59.999, 118.5, 119.0, 119.5, 120.0, math.inf, math.nan]
DOMAINS = {
    "few bins": {"low": 0, "high": 119, "bins": 4, "integer": True},
    "one bin a number": {"low": 0, "high": 119, "bins": 120, "integer": True},
    "given edges": {"edges": [0, 30, 60, 119], "integer": True},
    "real": {"low": 0, "high": 119, "bins": 20},
}


@pytest.mark.parametrize("outside", ["clamp", "other"])
@pytest.mark.parametrize("name", DOMAINS)
def test_engines_and_memory_agree_around_the_bounds(put, name, outside):
    domain = Numeric(**DOMAINS[name], outside=outside)
    table = pa.table({"row": pa.array(range(len(ROUND)), pa.int64()), "x": pa.array(ROUND, pa.float64())})
    schema = Schema({"row": Numeric(0, len(ROUND) - 1, bins=len(ROUND), integer=True), "x": domain})
    codes, counts = reveal(open_table(**put(table), schema=schema).sparse_counts(["row", "x"], None))
    engine = {int(row): int(cell) for (row, cell), n in zip(codes, counts, strict=True) if n}
    in_memory = cells_of(domain, np.array(ROUND))
    assert engine == {i: int(cell) for i, cell in enumerate(in_memory) if cell >= 0}
    assert (cells_of(domain, ROUND) == in_memory).all()


def test_a_number_beyond_the_bound_is_outside_even_if_it_rounds_down_to_it():
    domain = Numeric(0, 119, bins=4, integer=True, outside="other")
    assert domain.places(np.array([119.0, 119.5, -0.5])).tolist() == [3, -1, -1]
    assert Numeric(0, 119, bins=4, integer=True).places(np.array([119.0, 119.5, -0.5])).tolist() == [3, 3, 0]


@pytest.mark.parametrize("name", DOMAINS)
def test_boundaries_increase_and_everybody_uses_them(name):
    domain = Numeric(**DOMAINS[name])
    ends = np.array(domain.boundaries, dtype=float)
    assert (np.diff(ends) > 0).all()
    assert len(ends) == domain.size + 1 == len(domain.labels()) + 1
    assert (attribute_of("x", domain).levels.edges == ends).all()
    schema = Schema({"x": domain})
    (axis,) = Bins.of_schema(schema, ["x"]).axes
    assert axis.edges == tuple(ends)
    assert Schema.from_mapping(schema.to_mapping())["x"] == domain
    drawn = np.asarray(domain.draw(np.repeat(np.arange(domain.size), 200), np.random.default_rng(0)))
    assert (domain.places(drawn.astype(float)) == np.repeat(np.arange(domain.size), 200)).all()
    if domain.integer:
        assert drawn.max() == domain.high


def test_an_integer_column_with_one_bin_a_number_can_be_published():
    from sfumato.grids import PrivPfC
    from sfumato.privacy import Seeded
    from sfumato.tables import Categorical

    schema = Schema({"x": Numeric(1, 6, bins=6, integer=True), "y": Categorical(["low", "high"])})
    x = np.arange(1200) % 6 + 1
    frame = pd.DataFrame({"x": x, "y": np.where(x > 3, "high", "low")})
    table = PrivPfC(epsilon=5, target="y", rows=1200).fit(frame, schema=schema, source=Seeded(1)).sample(600)
    assert set(table["x"]) == {1, 2, 3, 4, 5, 6}
    assert ((table["x"] > 3) == (table["y"] == "high")).mean() > 0.95
