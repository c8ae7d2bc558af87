"""The releases of the demo on a Spark Connect server: how long they take, and that only cells leave the server.

The tables of the demo are made by the server from hashes of row numbers, as many rows and parts as asked for. Then every
release of the demo's two plans is made: those of the clinic, whose patients have budgets of their own in a roster on the
same server, and one of every kind from columns of every type. Every table that is fetched is measured. It may have as many
rows as the question has cells, which the schema says; the number of rows in the table does not come into it.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from sfumato.bench.spark_server import spark_server
from sfumato.demo import write_clinic
from sfumato.demo.clinic import TIERS, WARDS
from sfumato.errors import SfumatoError
from sfumato.offers import Request
from sfumato.releases import load
from sfumato.releases import open as open_table
from sfumato.tables import Roster, Schema
from sfumato.tables.engines import Engine
from sfumato.tables.spark_engine import backend_at

WIDEST = 32  # bytes of one number of an answer, with what Arrow keeps beside it
_POINTS = ("quantile", "median", "min", "max")
_REAL_STEPS = 1_000_000  # at most: the points of a quantile of a column that is not whole numbers


@dataclass
class Fetched:
    """One release: its time, and what came from the server for it."""

    release: str
    cells: int
    seconds: float = 0.0
    rows: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    @property
    def most_rows(self) -> int:
        """Rows of the largest answer."""
        return max(self.rows, default=0)

    @property
    def size(self) -> int:
        """Bytes of all answers."""
        return sum(self.sizes)


def run(rows: int = 10_000_000, partitions: int = 200, progress: Callable[[str], None] = print) -> list[Fetched]:
    """Start a server, make the tables and the releases, and check what was fetched."""
    one_file = {"spark.sql.files.maxPartitionBytes": "4m", "spark.sql.files.openCostInBytes": "4m"}  # is one part
    with spark_server(settings=one_file) as server:
        begun = time.perf_counter()
        make_tables(server.url, rows, partitions)
        progress(f"{rows:,} rows in {partitions} parts made in {time.perf_counter() - begun:.1f} s")
        before = _peak()
        found = released(server.url, rows, progress)
        progress(f"this process held {before:,.0f} MB before the releases and at most {_peak():,.0f} MB with them")
        return found


def released(url: str, rows: int, progress: Callable[[str], None]) -> list[Fetched]:
    """Every release of the demo's plans, on tables that `make_tables` made; the rows that each fetched are checked."""
    made = []
    with tempfile.TemporaryDirectory() as name:
        folder = write_clinic(Path(name), patients=1000).parent  # its schemas and plans; the tables are the server's
        for plan_file, about in (("plan.toml", _clinic(url)), ("every.toml", {"epsilon": 40, "rows": rows})):
            plan = load(folder / plan_file)
            table = "clinic" if plan_file == "plan.toml" else "visits"
            opened = open_table(
                url, schema=plan.schema(), table=table, ledger=folder / f"{table}.spark", name=table, **about
            )
            for request in plan.releases:
                seen = Fetched(request.name, most_rows(plan.schema(), request))
                kind: Any = request.kind
                with watched(seen):
                    opened.release(kind, **_given(request))
                check(seen)
                progress(
                    f"{seen.release}: {seen.seconds:.1f} s, {seen.most_rows:,} of {seen.cells:,} cells, {seen.size:,} bytes"
                )
                made.append(seen)
    return made


def _clinic(url: str) -> dict[str, Any]:
    tiers = {name: grant for name, (grant, _) in TIERS.items()}
    return {"budgets": Roster.table(url, table="roster", person="patient", tier="consent", tiers=tiers)}


def _given(request: Request) -> dict[str, Any]:
    keys = {"where": request.where, "epsilon": request.epsilon, "share": request.share, "recipient": request.recipient}
    return {k: v for k, v in {**keys, **request.parameters}.items() if v is not None}


def most_rows(schema: Schema, request: Request) -> int:
    """How many cells a question has at most, by the schema: every group of its columns, "no cell" and "missing" included."""
    asked = request.parameters
    names = [name for key in ("columns", "by", "attributes") for name in asked.get(key) or ()]
    names += [asked["target"]] if "target" in asked else []
    cells = prod(schema[name].size + 2 for name in names) * len(TIERS)
    if request.kind in _POINTS:
        whole = schema[asked["column"]].whole_steps
        return cells * (min(whole or _REAL_STEPS, _REAL_STEPS) + 2)
    return cells * (schema[asked["column"]].size + 2 if request.kind in ("top", "profile") else 2)


def check(seen: Fetched) -> None:
    """Refuse to go on if more than cells was fetched."""
    if seen.most_rows > seen.cells or seen.size > seen.cells * len(seen.rows) * 8 * WIDEST:
        raise SfumatoError(
            f"release {seen.release!r} fetched {seen.most_rows:,} rows of {seen.size:,} bytes for {seen.cells:,} cells; "
            "what leaves the engine must not grow with the table"
        )


@contextmanager
def watched(seen: Fetched) -> Iterator[None]:
    """Note down all that engines give out while this lasts."""
    fetch, begun = Engine.fetch, time.perf_counter()

    def noted(self: Engine, expr: Any) -> Any:
        found = fetch(self, expr)
        table = hasattr(found, "num_rows")
        seen.rows.append(found.num_rows if table else 1)
        seen.sizes.append(found.nbytes if table else WIDEST)
        return found

    Engine.fetch = noted  # type: ignore[method-assign]
    try:
        yield
    finally:
        Engine.fetch = fetch  # type: ignore[method-assign]
        seen.seconds = time.perf_counter() - begun


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def make_tables(url: str, rows: int, partitions: int) -> None:
    """Tables `clinic`, `roster` and `visits` on the server, from hashes of row numbers, with the demo's types."""
    backend = backend_at(url)  # to be held: its session is closed with it
    session = backend._session

    def some(place: int, of: int) -> str:
        return f"pmod(xxhash64(id, {place}L), {of}L)"

    def chosen(place: int, words: tuple[str, ...]) -> str:
        return f"element_at(array({', '.join(repr(w) for w in words)}), 1 + CAST({some(place, len(words))} AS INT))"

    age, ward, back = f"CAST({some(1, 106)} AS SMALLINT)", chosen(2, WARDS), chosen(3, ("no", "no", "no", "yes"))
    code = f"concat(char(65 + {some(4, 25)}), lpad({some(5, 20)}, 2, '0'), '.', {some(6, 10)})"
    day = f"date_add(DATE'2024-01-01', CAST({some(7, 366)} AS INT))"
    clinic = {"patient": "id", "age": age, "stay": f"CAST({some(8, 61)} AS SMALLINT)", "ward": ward}
    clinic |= {"region": chosen(9, ("north", "east", "south", "west")), "sex": chosen(10, ("f", "m")), "readmitted": back}
    visits = {"patient": "id", "age": age, "ward": ward, "readmitted": back, "admitted": day}
    visits["weight"] = f"if({some(11, 20)} = 0, NULL, 30 + CAST({some(12, 120_000)} AS DOUBLE) / 1000)"
    visits["bill"] = f"CAST(CAST({some(13, 500_001)} AS DECIMAL(10, 0)) / 100 AS DECIMAL(8, 2))"
    visits["arrived"] = f"CAST(timestampadd(MINUTE, CAST({some(14, 1440)} AS INT), {day}) AS TIMESTAMP_NTZ)"
    visits["insured"] = f"{some(15, 20)} < 17"
    visits["housing"] = f"CAST({some(16, 3)} AS TINYINT)"
    visits["diagnosis"] = f"CASE {some(17, 30)} WHEN 0 THEN NULL WHEN 1 THEN concat('U', id) ELSE {code} END"
    roster = {"patient": "id", "consent": chosen(18, tuple(TIERS))}
    for name, columns in {"clinic": clinic, "roster": roster, "visits": visits}.items():
        chosen_columns = [f"{made} AS {column}" for column, made in columns.items()]
        session.range(0, rows, 1, partitions).selectExpr(*chosen_columns).write.mode("overwrite").saveAsTable(name)
