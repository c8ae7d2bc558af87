"""Public facts of dates and their like: cells and names, levels, what a condition can select, schema files, refusals."""

from __future__ import annotations

import datetime as dt
import itertools

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.errors import InputError, SchemaError
from sfumato.records.attributes import attribute_of
from sfumato.records.coding import cells_of
from sfumato.tables import (
    Boolean,
    Categorical,
    Date,
    Decimals,
    Note,
    Numeric,
    Schema,
    Timestamp,
    coverage,
    import_table,
    is_empty,
    parse_where,
)
from sfumato.tables import open as open_table
from sfumato.tables.domains.periods import date_of, period
from sfumato.tables.domains.zones import changes, on_the_clock
from sfumato.testing import reveal
from support.hostile import OBJECTS

KINDS = {
    "day": Date("2024-02-28", "2024-03-02", by="day"),
    "weeks": Date("2024-12-20", "2025-01-10", by="week", missing=True),
    "weekday": Date("2024", "2024", by="day of week", other="another year"),
    "at": Timestamp("2024-03-31 01:00", "2024-04-02", by="day", zone="Europe/Oslo", outside="other", missing="never"),
    "hour": Timestamp("2024", "2025", by="hour of day", zone="America/New_York"),
    "price": Decimals("0.00", "9.99", bins=4, decimals=2, missing=True),
    "cut": Decimals(edges=["0", "1.5", "10"], decimals=1, outside="other", taxonomy={"all": [0, 1]}),
    "ill": Boolean("yes", "no", missing="unknown"),
    "plain": Boolean(),
    "own": Categorical({0: "owned", 1: "rented"}, other=True, missing="not asked"),
    "code": Categorical(["A", "B"], value_labels={"A": "apple"}, taxonomy={"fruit": ["A", "B"]}),
    "x": Numeric(0, 1, bins=2, missing=True),
}
NOTES = {"price": Note("Price paid", "with tax", "€"), "x": Note(unit="kg")}
SCHEMA = Schema(KINDS, notes=NOTES, about=Note("The clinic", "All wards."))


def test_schema_files_keep_every_kind_and_what_is_said_to_readers():
    assert Schema.from_toml(SCHEMA.to_toml()) == SCHEMA
    assert Schema.from_mapping(SCHEMA.to_mapping()) == SCHEMA
    assert Schema.from_toml(SCHEMA.to_toml(notes=False)) == Schema(KINDS)
    assert SCHEMA.select(["x"]).heading("x") == "x (kg)"
    assert SCHEMA.heading("price") == "Price paid (€)"
    assert SCHEMA.wording("price").words(2.5) == "2.5 €"
    assert SCHEMA.wording("day").words(1) == "2024-02-29"
    assert SCHEMA.wording("at").words(3600) == "2024-03-31 02:00:00"


def test_names_of_cells():
    assert KINDS["day"].labels() == ("2024-02-28", "2024-02-29", "2024-03-01", "2024-03-02")
    assert KINDS["weeks"].labels() == ("2024-W51", "2024-W52", "2025-W01", "2025-W02", "missing")
    assert KINDS["weekday"].labels()[0] == "Monday"
    assert KINDS["weekday"].labels()[-1] == "another year"
    assert KINDS["hour"].labels()[8] == "08:00"
    assert KINDS["price"].labels() == ("0.00 to 2.49", "2.50 to 4.99", "5.00 to 7.49", "7.50 to 9.99", "missing")
    assert KINDS["own"].labels() == ("owned", "rented", "other", "not asked")
    assert KINDS["ill"].labels() == ("no", "yes", "unknown")
    assert Date("2023-11-15", "2024", by="quarter").labels() == ("2023 Q4", "2024 Q1", "2024 Q2", "2024 Q3", "2024 Q4")


def test_levels_follow_the_calendar():
    days = attribute_of("day", Date("2023-08-15", "2024-02-02", by="day", missing=True)).levels
    assert days.labels[1] == ("2023", "2024", "missing")
    assert days.labels[2] == ("2023 Q3", "2023 Q4", "2024 Q1", "missing")
    assert days.labels[3][-4:] == ("2023-12", "2024-01", "2024-02", "missing")
    assert days.sizes == (1, 3, 4, 8, 173)
    weeks = attribute_of("week", KINDS["weeks"]).levels
    assert weeks.labels[1] == ("2024", "2025", "missing")
    assert attribute_of("code", KINDS["code"]).levels.labels[-1] == ("apple", "B")
    assert attribute_of("hour", KINDS["hour"]).levels.labels[1][-1] == "other"


@pytest.mark.parametrize("name", KINDS)
def test_what_is_drawn_from_a_cell_is_in_it(name):
    domain = KINDS[name]
    cells = np.repeat(np.arange(domain.listed), 30)
    drawn = domain.draw(cells, np.random.default_rng(0))
    assert cells_of(domain, drawn).tolist() == cells.tolist()
    outside = domain.draw(np.arange(domain.listed, domain.size), np.random.default_rng(0))
    again = cells_of(domain, outside)
    assert ((again >= domain.listed) | (again < 0)).all()


@pytest.mark.parametrize("name", KINDS)
def test_containers_in_memory_agree_and_hostile_values_are_harmless(name):
    domain = KINDS[name]
    one_by_one = [int(cells_of(domain, [value])[0]) for value in OBJECTS]
    column = np.empty(len(OBJECTS), dtype=object)
    column[:] = [None] * len(OBJECTS)
    for i, value in enumerate(OBJECTS):
        column[i] = value
    assert cells_of(domain, OBJECTS).tolist() == one_by_one
    assert cells_of(domain, pd.Series(column, dtype=object)).tolist() == one_by_one
    data = open_table(pd.DataFrame({name: pd.Series(column, dtype=object)}), schema=SCHEMA.select([name]))
    counts = np.bincount([c for c in one_by_one if c >= 0], minlength=domain.size)
    assert reveal(data.counts(name)).tolist() == counts.tolist()


def test_typed_containers_of_times_are_a_short_cut_and_no_rule():
    times = [dt.datetime(2024, 3, 31, h, 59, 59, 999999) for h in range(24)] + [
        None,
        dt.datetime(1969, 12, 31, 23, 59, 59, 5),
    ]
    for domain in (KINDS["at"], KINDS["hour"], KINDS["weeks"]):
        expected = cells_of(domain, times).tolist()
        arrow = pa.array(times, pa.timestamp("us"))
        frames = [arrow, pl.Series(times), pd.Series(times), pd.Series(times).astype("datetime64[ns]"), arrow.to_pandas()]
        for frame in (
            *frames,
            pd.Series(times, dtype=pd.ArrowDtype(pa.timestamp("ns"))),
            np.array(times, dtype="datetime64[ns]"),
        ):
            assert cells_of(domain, frame).tolist() == expected, type(frame)
    aware = [None if t is None else t.replace(tzinfo=dt.UTC) for t in times]
    for domain in (KINDS["at"], KINDS["hour"]):
        expected = cells_of(domain, aware).tolist()
        for frame in (
            pa.array(aware, pa.timestamp("ms", "Asia/Tokyo")),
            pd.Series(aware),
            pd.Series(aware).dt.tz_convert("Asia/Tokyo"),
        ):
            assert cells_of(domain, frame).tolist() == expected
    assert cells_of(KINDS["weeks"], aware).tolist() == [4] * len(aware)  # which day it is depends on a zone


def test_nanoseconds_on_an_engine():
    late = pd.Series(["2024-04-02T23:59:59.999999999", "2024-04-03T00:00:00", "1969-12-31T23:59:59.999999999"])
    column = late.astype("datetime64[ns]")
    data = open_table(pd.DataFrame({"at": column}), schema=SCHEMA.select(["at"]))
    assert (
        reveal(data.counts("at")).tolist()
        == np.bincount(cells_of(KINDS["at"], column), minlength=5).tolist()
        == [0, 0, 1, 2, 0]
    )


a_text = st.one_of(
    st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)).map(str),
    st.dates(dt.date(2024, 1, 1), dt.date(2024, 12, 31)).map(str),
    st.tuples(
        st.datetimes(dt.datetime(2023, 1, 1), dt.datetime(2026, 1, 1)), st.sampled_from(["Z", "+02:00", "-05:30", "+25:00"])
    ).map(lambda pair: pair[0].isoformat() + pair[1]),
    st.text("0123456789-:TZ+ .", max_size=26),
    st.from_regex(r"[0-9]{4}-[01][0-9]-[0-3][0-9]([T ][0-2][0-9]:[0-6][0-9])?", fullmatch=True),
)


@given(texts=st.lists(a_text, min_size=40, max_size=60))
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
def test_text_is_read_alike_in_memory_and_by_the_engine(texts):
    schema = SCHEMA.select(["at", "hour", "weeks", "weekday"])
    data = open_table(pa.table(dict.fromkeys(schema.names, texts)), schema=schema)
    found = reveal(data.marginals([[name] for name in schema.names]))
    for name, counts in zip(schema.names, found, strict=True):
        cells = cells_of(schema[name], texts)
        assert counts.tolist() == np.bincount(cells[cells >= 0], minlength=schema[name].size).tolist(), name


def test_an_imported_file_is_read_alike(tmp_path):
    lines = [
        "day,at,price,ill",
        "2024-02-29,2024-03-31T00:30:00Z,9.99,Yes",
        "2024-02-30,2024-04-01 12:00,abc,maybe",
        ",,,",
        "x,y,1e300,0",
    ]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    schema = SCHEMA.select(["day", "at", "price", "ill"])
    found = import_table(tmp_path / "a.csv", tmp_path / "a.parquet", schema=schema)
    assert found.outside == {"day": 2, "at": 1, "price": 1, "ill": 1}
    text, typed = (open_table(str(tmp_path / f"a.{kind}"), schema=schema) for kind in ("csv", "parquet"))
    kinds = dict(duckdb.sql(f"SELECT column_name, column_type FROM (DESCRIBE '{tmp_path}/a.parquet')").fetchall())
    assert kinds == {"day": "DATE", "at": "TIMESTAMP", "price": "DOUBLE", "ill": "BOOLEAN"}
    for name in schema.names:
        assert reveal(text.counts(name)).tolist() == reveal(typed.counts(name)).tolist()
    assert reveal(typed.counts("at")).tolist() == [1, 1, 0, 0, 2]


# ------------------------------------------------------------------------------------------------------ conditions

SMALL = Schema(
    {
        "d": Date("2024-02-20", "2024-03-20", by="month", missing=True),
        "w": Date("2024-02-20", "2024-03-20", by="day of week"),
        "p": Decimals(0, 3, bins=3, decimals=1, outside="other", missing=True),
    }
)
LITERALS = {
    "d": ["'2024-03-01'", "'2024-02'", "'2024-W10'", "'2023'", "'2024 Q1'", "'2030-01-01'"],
    "w": ["'2024-03-01'", "'Monday'", "'Sunday'", "'2024-W10'", "'2024-02-19'"],
    "p": ["1.5", "0", "3", "2.95", "-7", "1e300"],
}
EXTRA = {"d": ["d = 'missing'", "d is missing"], "w": ["w = 'other'"], "p": ["p = 'other'", "p = 'missing'", "p is missing"]}


def truths(predicate, name):
    """For each value of the column: whether the condition may hold there, by itself."""
    domain = SMALL[name]
    low, high = (domain.low, domain.high) if name != "p" else (0, 30)
    every = [*domain.outsiders, *range(low, high + 1)]
    return {value: holds(predicate, domain, value, False) for value in every}


def holds(predicate, domain, value, negate):
    if type(predicate).__name__ == "Not":
        return holds(predicate.part, domain, value, not negate)
    if hasattr(predicate, "parts"):
        found = [holds(p, domain, value, negate) for p in predicate.parts]
        return all(found) if (type(predicate).__name__ == "Both") != negate else any(found)
    return domain.may_hold(predicate, value, negate=negate)


@pytest.mark.parametrize("name", SMALL.names)
def test_emptiness_and_coverage_are_those_of_all_values_looked_at(name):
    atoms = [f"{name} {op} {value}" for op, value in itertools.product(("=", "!=", "<", ">="), LITERALS[name])] + EXTRA[name]
    pairs = [f"{a} and not ({b})" for a, b in itertools.product(atoms, atoms[::3])]
    for text in [*atoms, *pairs]:
        predicate = parse_where(text, SMALL)
        found = truths(predicate, name)
        assert is_empty(predicate, SMALL) == (not any(found.values())), text
        inside = [held for value, held in found.items() if isinstance(value, int)]
        if (
            not any(held for value, held in found.items() if not isinstance(value, int))
            and "missing" not in text
            and "other" not in text
        ):
            assert coverage(SMALL, text) == pytest.approx(np.mean(inside)), text


def test_conditions_read_back():
    for text in (
        "d >= '2024-03' and w = 'Monday'",
        "w >= 'Saturday'",
        "p = 'other' or p < 1.5",
        "d in ('2024-02', '2024-03-01')",
    ):
        found = parse_where(text, SMALL)
        assert parse_where(str(found), SMALL) == found
    assert parse_where({"w": ["Monday", "Sunday"]}, SMALL).parts == (parse_where("w in ('Sunday', 'Monday')", SMALL),)


# ----------------------------------------------------------------------------------------------- zones and periods


def test_the_clocks_of_a_zone_are_those_of_python():
    import zoneinfo

    first, last = period("2019", seconds=True)[0], period("2025", seconds=True)[1]
    for zone in ("Europe/Oslo", "America/New_York", "Asia/Kolkata", "Africa/Casablanca", "Australia/Lord_Howe", "UTC"):
        when, _ = changes(zone, first, last)
        around = np.array([second + step for second in (*when, first, last) for step in (-3601, -1, 0, 1, 3600)])
        shown = on_the_clock(around, zone, first, last)
        for instant, clock in zip(around.tolist(), shown.tolist(), strict=True):
            at = dt.datetime.fromtimestamp(instant, zoneinfo.ZoneInfo(zone)).replace(tzinfo=dt.UTC)
            assert at.timestamp() == clock


def test_periods_cover_the_calendar_without_gaps():
    for by in ("week", "month", "quarter", "year"):
        domain = Date("1999-12-27", "2025-01-05", by=by)
        for start, name in zip(domain.days[:-1].tolist(), domain.names(), strict=True):
            low, high = period(name, seconds=False)
            assert max(low, domain.low) == start
            assert domain.cell_of_witness(min(high, domain.high)) == domain.cell_of_witness(start)
    assert str(date_of(period("9999", seconds=False)[1])) == "9999-12-31"
    assert str(date_of(period("0001-W01", seconds=False)[0])) == "0001-01-01"


# --------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("type = 'date'\nlast = '2024-12-31'", "needs public bounds: give first = '2024-01-01'"),
        ("type = 'date'\nfirst = '2024-02-30'\nlast = '2024'", "first: a date is written in quotes as '2024-03-05'"),
        ("type = 'date'\nfirst = 2024\nlast = 2025", "first: a date is written in quotes"),
        ("type = 'date'\nfirst = '2025'\nlast = '2024'", "first must be before last"),
        ("type = 'date'\nfirst = '2024'\nlast = '2024'\nby = 'moth'", "no cells by 'moth'; did you mean 'month'"),
        ("type = 'date'\nfirst = '2024'\nlast = '2024'\nby = 'hour of day'", "no cells by 'hour of day'"),
        ("type = 'date'\nfirst = '0001'\nlast = '9999'\nby = 'day'", "3,652,059 cells by day .* use a longer by"),
        ("type = 'date'\nfirst = '2024'\nlast = '2024'\nzone = 'UTC'", "unknown key 'zone'"),
        (
            "type = 'date'\nfirst = '2024'\nlast = '2024'\nby = 'day of week'\noutside = 'clamp'",
            "all fall into one day of week",
        ),
        (
            "type = 'timestamp'\nfirst = '2024'\nlast = '2024'\nzone = 'Europe/Olso'",
            "no time zone 'Europe/Olso'; did you mean",
        ),
        ("type = 'timestamp'\nfirst = '1700'\nlast = '2024'\nzone = 'Europe/Oslo'", "known from 1900 to 2100"),
        ("type = 'timestamp'\nfirst = '2024'\nlast = '2024'\noutside = 'drop'", "outside must be 'clamp' or 'other'"),
        ("type = 'decimal'\nlow = 0\nhigh = 1\nbins = 2", "places must be a whole number from 0 to 9"),
        ("type = 'decimal'\nlow = 0.001\nhigh = 1\nbins = 2\nplaces = 2", "low must be a number with at most 2 decimals"),
        ("type = 'decimal'\nlow = 0\nhigh = 1e300\nbins = 2\nplaces = 2", "high must be a number with at most 2 decimals"),
        ("type = 'decimal'\nlow = 0\nhigh = 1\nplaces = 2", "needs bins"),
        ("type = 'boolean'\ntrue = 1", "true must be a label in quotes"),
        ("type = 'boolean'\ntrue = 'no'\nfalse = 'yes'", "the other way round"),
        ("values = [0, 1]\nlabels = { 2 = 'two' }", "labels names '2', which is not a value"),
        ("values = [0, 1]\nlabels = { 0 = 'x', 1 = 'x' }", "stands for two values"),
        ("values = ['a', 'b']\nlabels = { a = 'b' }", "stands for two values"),
        ("values = [0, 1]\nlabels = 'x'", "labels must be a table"),
        ("values = ['a']\nother = 'gone'\nmissing = 'gone'", "label of the missing cell 'gone' is empty or already a value"),
        ("values = ['missing']\nmissing = true", "'missing' is already a value; name the extra cell"),
        ("values_file = 'codes.txt'", "relative to a schema file, and there is none"),
        ("low = 0\nhigh = 1\nbins = 2\ntitle = 3", "title must be text"),
        ("low = 0\nhigh = 1\nbins = 2\ntitel = 'x'", "did you mean 'title'"),
    ],
)
def test_wrong_declarations_name_the_column_and_the_remedy(table, message):
    with pytest.raises(SchemaError, match=message) as error:
        Schema.from_toml(f"[columns.x]\n{table}\n")
    assert "column 'x'" in str(error.value)


def test_wrong_questions_and_types():
    for text, message in (
        ("day >= 3", "written in quotes"),
        ("hour = '8'", "written in quotes"),
        ("own = 'onwed'", "did you mean 'owned'"),
    ):
        with pytest.raises(SchemaError, match=message):
            parse_where(text, SCHEMA)
    for name, column in (
        ("day", pa.array([1])),
        ("day", pa.array([0], pa.timestamp("us", "UTC"))),
        ("ill", pa.array([dt.date(2024, 1, 1)])),
    ):
        with pytest.raises(SchemaError, match=f"column '{name}' is"):
            open_table(pa.table({name: column}), schema=SCHEMA.select([name])).check()
    with pytest.raises(InputError, match="2\\^30"):
        Timestamp("1900", "2100", by="year").lattice()


def test_long_lists_come_from_a_file(tmp_path):
    (tmp_path / "codes.csv").write_text("code,label\nA00,Cholera\nB01,Chickenpox\nZ99,\n", encoding="utf-8-sig")
    (tmp_path / "wards.txt").write_text("3\n1\n\n7\n")
    ward = "[columns.ward]\nvalues_file = 'wards.txt'\ninteger = true\n"
    text = f"[columns.dx]\nvalues_file = 'codes.csv'\nother = true\n{ward}"
    (tmp_path / "s.toml").write_text(text)
    schema = Schema.from_toml(tmp_path / "s.toml")
    assert schema["dx"] == Categorical(
        ["A00", "B01", "Z99"], other=True, value_labels={"A00": "Cholera", "B01": "Chickenpox"}
    )
    assert schema["ward"] == Categorical([3, 1, 7])
    assert Schema.from_toml(schema.to_toml()) == schema  # the values, not the path
    for wrong, message in (("a,b,c\n", "has 3 fields"), ("A\nA\n", "listed twice"), ("\n", "holds no values")):
        (tmp_path / "codes.csv").write_text(wrong)
        with pytest.raises(SchemaError, match=f"column 'dx'.*{message}"):
            Schema.from_toml(tmp_path / "s.toml")
    (tmp_path / "codes.csv").unlink()
    with pytest.raises(SchemaError, match="column 'dx': no file"):
        Schema.from_toml(tmp_path / "s.toml")
