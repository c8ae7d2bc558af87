"""Rows are grouped by what stands in their columns and coded afterwards: no value is merged with another, none is lost."""

from __future__ import annotations

import datetime
import math
import threading
from typing import Any

import ibis
import ibis.expr.operations as ops
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.tables import (
    Boolean,
    Categorical,
    Date,
    Decimals,
    Domain,
    Numeric,
    PersonalTable,
    Roster,
    Schema,
    engines,
    open,
    raw_groups,
)
from sfumato.testing import reveal

NAN, INF = math.nan, math.inf
LONG = [f"code {i}" for i in range(200)]
# Composed and decomposed, with and without a blank, in capitals or not, empty or missing, and marks that stand for no value.
TEXTS = ["a", "a ", " a", "A", "", None, "\u00e9", "e\u0301", "?", "??", "other", "b", "a", None, "z", "code 7", "code 77"]
WHOLES = [0, 9, 10, 119, 120, -1, -2, 121, None, 2**63 - 1, -(2**63), 64, 5, 5, 2**31, -(2**31) - 1, 1]
FLOATS = [0.0, -0.0, NAN, None, INF, -INF, 1e308, -1e308, 5e-324, -5e-324, 2.5, 5.0, -5.0, 4.999999999999999, 1.0, 3.0, 0.1]
DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(days=40 * i) for i in range(15)] + [None, datetime.date(1969, 12, 31)]
TRUTHS = [True, False, None, True] * 4 + [False]

KINDS: dict[str, tuple[list, pa.DataType, list[Domain]]] = {
    "text": (
        TEXTS,
        pa.string(),
        [
            Categorical(["a", "\u00e9", "", "b"]),
            Categorical(["a", "A", "e\u0301", "?"], other="rest"),
            Categorical(["a ", "b", "??"], missing="none"),
            Categorical(["?", "a", "z"], other="rest", missing="none"),
            Categorical(["a"]),
            Categorical(LONG),
            Categorical([*LONG, "a", ""], other=True, missing=True),
        ],
    ),
    "whole": (
        WHOLES,
        pa.int64(),
        [
            Numeric(0, 119, bins=12, integer=True),
            Numeric(0, 119, bins=12, integer=True, outside="other"),
            Numeric(0, 119, bins=120, integer=True, missing="none"),
            Numeric(0, 119, bins=7, integer=True, outside="other", other="beyond", missing="none"),
            Numeric(edges=[0.5, 5, 64, 119.5], outside="other"),
            Numeric(0, 2**40, bins=9, integer=True, other="rest"),
            Numeric(-0.5, 120.25, bins=33),
            Categorical([5, 64, -1]),
            Categorical([0, 2**40, 9], other=True, missing=True),
            Categorical(list(range(-40, 60))),
        ],
    ),
    "float": (
        FLOATS,
        pa.float64(),
        [
            Numeric(-5.0, 5.0, bins=40),
            Numeric(0.0, 5.0, bins=7, other="rest"),
            Numeric(0.1, 10.3, bins=33, outside="other"),
            Numeric(-5.0, 5.0, bins=40, missing="none"),
            Numeric(-5.0, 5.0, bins=40, outside="other", missing="none"),
            Numeric(0, 5, bins=5, integer=True, outside="other"),
            Numeric(0, 5, bins=2, integer=True, missing="none"),
            Numeric(1e9, 1e9 + 1e-5, bins=5),
            Numeric(0.0, 1.0, bins=3),
            Categorical([0, 1, 3], other=True),
            Decimals(0, 5, bins=10, decimals=1, missing=True),
        ],
    ),
    "day": (
        DAYS,
        pa.date32(),
        [
            Date("2024-01-15", "2024-11", by="month"),
            Date("2024-01-15", "2024-11", by="week", outside="other", missing="none"),
            Date("2024", "2024", by="day of week", other="beyond"),
        ],
    ),
    "truth": (TRUTHS, pa.bool_(), [Boolean(), Boolean(missing="not asked"), Categorical([True, False], other=True)]),
}


def _table(kind: str) -> tuple[pa.Table, Schema]:
    values, stored, domains = KINDS[kind]
    names = {f"x{i}": domain for i, domain in enumerate(domains)}
    return pa.table({name: pa.array(values, stored) for name in names}), Schema(names)


def _in_memory(domain: Domain, values: list) -> list[int]:
    cells = domain.cells(values)
    return np.bincount(cells[cells >= 0], minlength=domain.size).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_every_value_is_in_its_own_cell(put, kind):
    table, schema = _table(kind)
    data = open(**put(table), schema=schema)
    expected = {name: _in_memory(schema[name], KINDS[kind][0]) for name in schema.names}
    assert {name: reveal(data.counts(name)).tolist() for name in schema.names} == expected
    # Of several at once, a row without a cell in one still counts in the others.
    at_once = reveal(data.marginals([[name] for name in schema.names]))
    assert [found.tolist() for found in at_once] == list(expected.values())


@pytest.mark.parametrize("kind", KINDS)
def test_groups_are_coded_as_rows_would_be(kind, monkeypatch):
    table, schema = _table(kind)
    data = open(table, schema=schema)
    pairs = [[a, b] for a in schema.names for b in schema.names if a < b][:9]
    grouped = [reveal(data.sparse_counts(pair)) for pair in pairs]
    for domain in {type(d) for d in schema.columns.values()}:
        monkeypatch.setattr(domain, "grouping", Domain.grouping)
        monkeypatch.setattr(domain, "long_list", Domain.long_list)
    for (codes, counts), pair in zip(grouped, pairs, strict=True):
        row_by_row = reveal(data.sparse_counts(pair))
        assert (codes.tolist(), counts.tolist()) == (row_by_row[0].tolist(), row_by_row[1].tolist()), pair


@pytest.mark.parametrize("stored", [pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()])
def test_whole_numbers_of_every_width(stored):
    ends = {"int": (-(2 ** (stored.bit_width - 1)), 2 ** (stored.bit_width - 1) - 1), "uin": (0, 2**stored.bit_width - 1)}
    low, high = ends[str(stored)[:3]]
    values = [low, high, 0, 1, 99, 100, 101, 127, None]
    domains = {
        "a": Numeric(0, 100, bins=4, integer=True),
        "b": Numeric(-300, 300, bins=6, integer=True, outside="other"),
        "c": Numeric(50, 2000, bins=3, missing=True),
        "d": Categorical([1, 99, 3], other=True),
    }
    data = open(pa.table({name: pa.array(values, stored) for name in domains}), schema=Schema(domains))
    for name, domain in domains.items():
        assert reveal(data.counts(name)).tolist() == _in_memory(domain, values), name


@settings(max_examples=12, deadline=None)
@given(
    low=st.one_of(st.just(0.0), st.floats(-1e6, 1e6, allow_subnormal=False)),
    span=st.floats(1e-5, 1e7),
    bins=st.integers(1, 60),
    outside=st.sampled_from(["clamp", "other"]),
)
def test_bins_of_equal_width_are_exact_at_their_edges(low, span, bins, outside):
    try:
        domain = Numeric(low, low + span, bins=bins, outside=outside)
    except sf.errors.SchemaError:  # too fine for doubles
        return
    edges = np.array(domain.edges)
    beside = [np.nextafter(edges, -INF), np.nextafter(edges, INF), np.nextafter(np.nextafter(edges, -INF), -INF)]
    middle = edges[:-1] + np.diff(edges) / 2
    values = np.concatenate([edges, *beside, middle, [0.0, -0.0, 5e-324, -5e-324, NAN, INF, -INF]])
    schema = Schema({"row": Numeric(0, len(values) - 1, bins=len(values), integer=True), "x": domain})
    data = open(pa.table({"row": pa.array(np.arange(len(values))), "x": pa.array(values)}), schema=schema)
    codes, counts = reveal(data.sparse_counts(["row", "x"]))
    found = np.full(len(values), -1)
    found[codes[:, 0]] = codes[:, 1]
    assert counts.tolist() == [1] * len(counts)
    assert found.tolist() == domain.cells(values).tolist()


# ------------------------------------------------------------------------------------------------- which way is taken

SCHEMA = Schema(
    {
        "region": Categorical([f"r{i}" for i in range(12)], other=True),
        "age": Numeric(0, 119, bins=12, integer=True),
        "income": Numeric(0.0, 1000.0, bins=20),
        "code": Categorical(LONG),
    }
)
TIERS = Roster.tiers({"strict": 0.1, "open": 1.0}, column="tier", counts={"strict": 5, "open": 5})


def _frame(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "region": [f"r{i}" for i in rng.integers(0, n, n)],
            "age": rng.integers(-5, 130, n),
            "income": rng.normal(500, 400, n),
            "code": [f"code {i}" for i in rng.integers(0, 300, n)],
            "tier": rng.choice(["strict", "open", "stray"], n),
        }
    )


def _queries(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What is asked of the engine for some aggregates."""
    data, fetched = open(frame, schema=SCHEMA, budgets=TIERS), []
    fetch = engines.Engine.fetch
    monkeypatch.setattr(engines.Engine, "fetch", lambda self, expr: fetched.append(expr) or fetch(self, expr))
    people = TIERS.head_counts()
    table = PersonalTable(data, people)
    asked = {
        "text": data.counts("region"),
        "table": data.counts(["age", "region"]),
        "tiers": data.group_sums(people, where="age >= 65 and region = 'r3'"),
        "tiers by text": table.weighted_cells(np.array([1, 2]), ["region"]),
        "tiers by both": table.weighted_cells(np.array([1, 2]), ["region", "age"]),
        "moments": table.moments(["region"]),
        "bins": data.counts("income"),
        "list": data.counts("code"),
    }
    for exact in asked.values():
        reveal(exact)
    monkeypatch.undo()
    assert len(fetched) == len(asked)
    return dict(zip(asked, fetched, strict=True))


def test_rows_meet_no_chain_of_cases_and_no_join(monkeypatch):
    for name, expr in _queries(_frame(50, 1), monkeypatch).items():
        groups = expr.op().find(ops.Aggregate)
        (over_rows,) = (group for group in groups if group.find(ops.Aggregate) == [group])
        per_row = over_rows.find((ops.SearchedCase, ops.SimpleCase, ops.IfElse, ops.JoinChain))
        # Doubles are clamped, and compared with an edge where rounding might decide; there is no step per bin.
        assert len(per_row) == (3 if name == "bins" else 0), name
        assert expr.op() is not over_rows, name  # groups are coded inside the engine


def test_what_is_asked_of_an_engine_does_not_follow_from_the_rows(monkeypatch):
    def written(frame: pd.DataFrame) -> list[str]:
        queries = _queries(frame, monkeypatch)
        del queries["list"]  # joined with a table of a name of its own
        words = [str(ibis.to_sql(expr, dialect="duckdb")).split() for expr in queries.values()]
        return [" ".join("?" if word.startswith('"frame') else word for word in some) for some in words]

    assert written(_frame(10, 1)) == written(_frame(3000, 2))


def test_where_keys_would_be_too_many_rows_are_coded_at_once(monkeypatch):
    data = open(_frame(400, 3), schema=SCHEMA, budgets=TIERS)
    table = PersonalTable(data, TIERS.head_counts())
    weights = np.array([1, 2])

    def answers() -> list:
        found = [data.counts(["age", "income", "region"]), table.weighted_cells(weights, ["age", "region"])]
        return [reveal(exact).tolist() for exact in found]

    expected = answers()
    monkeypatch.setattr(raw_groups, "MOST_GROUPS", 150)
    assert answers() == expected
    monkeypatch.setattr(raw_groups, "MOST_GROUPS", 2)
    assert answers() == expected


# ------------------------------------------------------------------------------------------------- opened once


def _counting_connections(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    from sfumato.tables import dataset

    opened, connect = [], dataset.connect
    monkeypatch.setattr(
        dataset, "connect", lambda source, *a, **k: opened.append(str(type(source))) or connect(source, *a, **k)
    )
    return opened


def test_a_second_release_opens_nothing(monkeypatch):
    opened = _counting_connections(monkeypatch)
    table = sf.open(_frame(100, 4), schema=SCHEMA, budgets=TIERS, ledger=":memory:", name="clinic")
    assert opened == []
    table.count(where="age >= 65", share=0.1)
    assert len(opened) == 1
    table.count(where="age >= 30", share=0.1)
    table.histogram("region", share=0.1)
    assert len(opened) == 1


def test_a_frame_is_read_again_where_another_column_holds_the_budgets(monkeypatch):
    opened = _counting_connections(monkeypatch)
    frame = _frame(30, 5).assign(epsilon=0.5)
    data = open(frame, schema=SCHEMA)
    assert reveal(data.count()) == 30
    other = data.with_budgets(Roster.column("epsilon"))
    assert int(reveal(other.weighted_sums(10**9))) == 30 * 500_000_000
    assert reveal(data.limited_to(["age"]).count()) == 30
    assert len(opened) == 2


def test_threads_that_share_an_open_table_get_their_own_answers():
    data = open(_frame(2000, 6), schema=SCHEMA)
    expected = {f"age >= {a}": reveal(data.count(f"age >= {a}")) for a in range(0, 120, 10)}
    found: list[dict[str, int]] = []

    def work() -> None:
        found.append({where: reveal(data.count(where)) for where in expected})

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4
