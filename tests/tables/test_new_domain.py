"""A kind of column from outside the package: one class, registered, works everywhere a domain is asked."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.errors import SchemaError
from sfumato.grids import PrivPfC
from sfumato.privacy import Seeded
from sfumato.records.attributes import attribute_of
from sfumato.records.coding import Coding, cells_of
from sfumato.tables import Categorical, Domain, Numeric, Schema, is_empty, open, parse_where
from sfumato.tables.columns import Column
from sfumato.tables.domains import DOMAINS, register
from sfumato.tables.predicates import Compare
from sfumato.testing import reveal

EPOCH = datetime.date(1970, 1, 1).toordinal()


@dataclass(frozen=True)
class Days(Domain):
    """Dates between two public days, in spans of equal length; everything but the calendar is left to day numbers."""

    type_name: ClassVar[str] = "days"
    keys: ClassVar[tuple[str, ...]] = ("first", "last", "bins")
    ordered: ClassVar[bool] = True

    first: str
    last: str
    bins: int
    other: bool | str = False
    taxonomy: None = None

    def __post_init__(self):
        assert self.numbers.listed == self.bins

    @property
    def numbers(self):
        return Numeric(self._day(self.first), self._day(self.last), bins=self.bins, integer=True)

    @staticmethod
    def _day(text):
        try:
            return datetime.date.fromisoformat(text).toordinal() - EPOCH
        except (TypeError, ValueError):
            raise SchemaError(f"a day is written as '2024-01-31', not {text!r}") from None

    @property
    def listed(self):
        return self.bins

    def names(self):
        return tuple(str(datetime.date.fromordinal(int(e) + EPOCH)) for e in self.numbers.edges[:-1])

    def places(self, values):
        days = pd.to_datetime(pd.Series(list(values), dtype=object), errors="coerce")
        return self.numbers.places(((days - pd.Timestamp(0)) // pd.Timedelta(days=1)).to_numpy(float))

    def draw(self, cells, random):
        return np.array([datetime.date.fromordinal(int(d) + EPOCH) for d in self.numbers.draw(cells, random)])

    def to_arrow(self, values):
        return pa.array([v if isinstance(v, datetime.date) else None for v in values], pa.date32())

    def column(self, expr, *, engine, what, text=False):
        if not expr.type().is_date():
            raise SchemaError(f"{what} holds days in the schema, but the table holds {expr.type()}")
        return Column(expr.epoch_seconds() // 86400, "int")

    def cell(self, column):
        return self.numbers.cell(column)

    def inside(self, column):
        return self.numbers.inside(column)

    def compare(self, name, op, value):
        self._day(value)
        return Compare(name, op, value)

    def compared(self, column, op, value):
        return self.numbers.compared(column, op, self._day(value))

    @classmethod
    def from_plain(cls, plain):
        return cls(**plain)

    def to_plain(self):
        return {"first": self.first, "last": self.last, "bins": self.bins}


YEAR = Days("2024-01-01", "2024-12-31", bins=4)
DATES = [datetime.date(2024, month, day) for month in (1, 5, 8, 12) for day in (1, 20)] + [None, datetime.date(2031, 1, 1)]
TABLE = pa.table({"day": pa.array(DATES, pa.date32()), "ill": ["no", "yes"] * 5})
CELLS = [0, 0, 1, 1, 2, 2, 3, 3, -1, 3]


@pytest.fixture(autouse=True)
def registered():
    register(Days)
    yield
    DOMAINS.pop("days", None)


@pytest.fixture
def schema():
    return Schema({"day": YEAR, "ill": Categorical(["no", "yes"])})


def test_the_schema_file_knows_the_word(schema):
    assert Schema.from_toml(schema.to_toml()) == schema
    assert 'type = "days"' in schema.to_toml()
    with pytest.raises(SchemaError, match="did you mean 'first'"):
        Schema.from_toml("[columns.day]\ntype = 'days'\nfrist = '2024-01-01'")
    with pytest.raises(SchemaError, match="column 'day': a day is written as"):
        Schema.from_toml("[columns.day]\ntype = 'days'\nfirst = 'May'\nlast = '2024-12-31'\nbins = 2")
    DOMAINS.pop("days")
    with pytest.raises(SchemaError, match=r"no columns of type 'days'.*Known: boolean, categorical, "):
        Schema.from_toml(schema.to_toml())


def test_a_word_is_taken_once():
    class Weeks(Days):
        pass

    with pytest.raises(SchemaError, match="'days' are Days already"):
        register(Weeks)
    assert register(Days) is Days


@pytest.mark.parametrize("kind", ["arrow", "pandas objects", "parquet"])
def test_counts_and_conditions(schema, kind, tmp_path):
    source = {"arrow": TABLE, "pandas objects": TABLE.to_pandas()}.get(kind)
    if source is None:
        pq.write_table(TABLE, tmp_path / "t.parquet")
        source = str(tmp_path / "t.parquet")
    data = open(source, schema=schema)
    assert reveal(data.counts("day")).tolist() == [2, 2, 2, 3]
    assert reveal(data.counts(["day", "ill"])).sum() == 9
    assert reveal(data.count("day >= '2024-08-01'")) == 5
    assert reveal(data.count("not (day >= '2024-08-01')")) == 4
    assert reveal(data.count("day is missing")) == 1
    assert reveal(data.count("day in ('2024-01-01', '2024-05-20')")) == 2
    assert cells_of(YEAR, DATES).tolist() == CELLS
    with pytest.raises(SchemaError, match="a day is written as"):
        data.count("day >= 3")
    with pytest.raises(SchemaError, match="holds days in the schema"):
        open(pa.table({"day": [1], "ill": ["no"]}), schema=schema).check()


def test_conditions_read_back_and_are_never_said_to_be_empty_without_knowing(schema):
    found = parse_where("day >= '2024-08-01' and ill = 'yes'", schema)
    assert str(found) == "(day >= '2024-08-01') and (ill in ('yes'))"
    assert not is_empty(found, schema)
    assert is_empty(parse_where("day is missing and day is not missing", schema), schema)


def test_levels_are_merged_in_pairs_and_records_are_coded(schema):
    levels = attribute_of("day", YEAR).levels
    assert levels.sizes == (1, 2, 4)
    assert levels.labels[1] == ("2024-01-01 to 2024-04-02", "2024-07-02 to 2024-10-02")
    coding = Coding.of(schema, target="ill")
    assert coding.leaves(TABLE.to_pandas())[:, 0].tolist() == CELLS
    with pytest.raises(SchemaError, match="must be categorical"):
        Coding.of(schema, target="day")
    with pytest.raises(SchemaError, match="is days; a measure must be numeric"):
        schema.lattice("day")


def test_a_histogram_and_a_synthetic_table_are_released(schema):
    table = sf.open(TABLE, schema=schema, epsilon=10**6, rows=10, noise=Seeded(1))
    made = table.histogram("day", epsilon=10**5, mechanism="identity")
    assert made.to_frame()["count"].tolist() == [2, 2, 2, 3]
    assert made.to_frame()["day"].tolist() == list(YEAR.names())
    frame = pd.DataFrame({"day": DATES[:8] * 200, "ill": ["no"] * 800 + ["yes"] * 800})
    publisher = PrivPfC(epsilon=5, target="ill", rows=1600).fit(frame, schema=schema, source=Seeded(1))
    drawn = publisher.sample(80, outside="public")
    assert set(cells_of(YEAR, drawn["day"])) == {0, 1, 2, 3}
