"""Engines that are offered and untested: every kind of aggregate can be written in their SQL, and only reads."""

from __future__ import annotations

import ibis
import ibis.backends.sql.compilers as compilers
import pyarrow as pa
import pytest
import sqlglot

from sfumato.errors import InputError
from sfumato.tables import Categorical, Numeric, PrivacyUnit, Roster, Schema, engine_probe
from sfumato.tables import open as open_table
from sfumato.tables.engine_list import LISTS_AS_TEXT, OFFERED
from sfumato.tables.engines import Engine
from sfumato.testing import reveal

COMPILERS = {
    "trino": compilers.TrinoCompiler,
    "bigquery": compilers.BigQueryCompiler,
    "snowflake": compilers.SnowflakeCompiler,
    "databricks": compilers.DatabricksCompiler,
}
COLUMNS = {"age": "int64", "income": "float64", "sex": "string", "code": "string", "epsilon": "float64", "who": "int64"}
SCHEMA = Schema(
    {
        "age": Numeric(0, 119, bins=12, integer=True),
        "income": Numeric(-5.0, 5.0, bins=40, other="unknown"),
        "sex": Categorical(["F", "M"], other=True),
        "code": Categorical([f"c{i}" for i in range(3000)]),  # a list that is joined
    }
)


class Written:
    """A backend that writes queries in a dialect and runs none."""

    def __init__(self, name: str) -> None:
        self.name, self.compiler, self.queries = name, COMPILERS[name](), []

    def to_pyarrow(self, expr):
        sql = self.compiler.to_sqlglot(expr.as_table()).sql(dialect=self.compiler.dialect)
        self.queries.append(sql)
        raise InputError("a query is written and not run")


def test_they_are_the_untested_ones_that_ibis_opens():
    untested = {o.backend for o in OFFERED if not o.tested} - {"duckdb", "pyspark"}
    assert untested == set(COMPILERS)
    assert set(COMPILERS) <= set(LISTS_AS_TEXT)


@pytest.mark.parametrize("name", sorted(COMPILERS))
def test_every_kind_of_aggregate_is_written(name):
    backend = Written(name)
    table = ibis.table(COLUMNS, name="visits")
    source = pa.table({column: pa.array([], getattr(pa, kind)()) for column, kind in COLUMNS.items()})

    def opened(**about):
        data = open_table(source, schema=Schema(SCHEMA.columns, **about), budgets=Roster.column("epsilon"))
        data._open["epsilon"] = Engine(backend, table, name)
        return data

    plain, capped = opened(), opened(unit=PrivacyUnit(person="who", rows_per_person=2))
    asked = [
        lambda: backend.to_pyarrow(engine_probe._questions(Engine(backend, None, name))),
        lambda: reveal(plain.count("age >= 65 and not (income > 0.25)")),
        lambda: reveal(plain.counts(["age", "sex"])),
        lambda: reveal(plain.counts("code")),
        lambda: reveal(plain.sum("age", where="sex = 'F'")),
        lambda: reveal(plain.points("income", steps=100)),
        lambda: reveal(plain.weighted_sums(10**9, measure="income", steps=1000, by=["sex"])),
        lambda: plain.person_budgets(),
        lambda: reveal(capped.count("age >= 65")),
        lambda: reveal(capped.counts("sex")),
    ]
    for number, compute in enumerate(asked):
        with pytest.raises(InputError) as caught:
            compute()
        assert len(backend.queries) == number + 1, caught.value
    dialect = backend.compiler.dialect
    for query in backend.queries:
        (parsed,) = sqlglot.parse(query, read=dialect)
        assert isinstance(parsed, sqlglot.exp.Query), query[:200]
