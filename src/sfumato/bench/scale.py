"""Scale: a million, ten million and a hundred million rows, made on the fly, against SQL as a good engineer writes it.

Every work is a kind of budgets and a question (`scale_queries.WORKS`). Three jobs are timed in turns: the exact aggregate
that a release reads, the release itself through `sf.open` (price, ledger, noise and all), and the query by hand. Seconds
are processor time of all threads. Memory is the peak of a fresh process that makes one release.

Below ten million rows the constant costs of Python show, so the limits are claimed from there on; the tables show the rest.
``--rows 1e6,1e7``, ``--engine duckdb,postgres,spark`` and ``--part KIND`` choose; from 20 million rows on only the works of
`LARGEST` are run, once.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sfumato.bench import not_measured, scale_postgres, scale_run
from sfumato.bench import scale_data as made
from sfumato.bench.scale_model import FORETOLD, models
from sfumato.bench.scale_queries import KINDS, WORKS, split
from sfumato.bench.scale_tables import tables
from sfumato.errors import InputError, SfumatoError

PARTS = (*KINDS, "preview")
ENGINES = ("duckdb", "postgres", "spark")
ROWS = (1_000_000, 10_000_000, 100_000_000)
QUICK = (100_000, 1_000_000)
CLAIMED_FROM = 10_000_000
PARTITIONS = 200
"""Of the tables on Spark."""

LIMITS = {
    "tiers/count": 1.2,
    "one/histogram": 1.3,
    "tiers/histogram": 1.5,
    "tiers/bins": 1.5,
    "tiers/table": 1.5,
    "million/count": 2.0,
    "million/sum": 2.0,
    "million/histogram": 2.0,
    "capped/count": 1.1,
    "persons/count": 1.1,
}
"""The most that ours may take, as a multiple of the query by hand."""
MAIN = (*LIMITS, "tiers/sum", "tiers/quantile", "tiers/grid")
LARGEST = ("one/histogram", "tiers/count", "tiers/table", "million/count", "million/histogram", "persons/count")
FLAT = ("tiers/count", "tiers/histogram", "million/count", "million/histogram")
"""Works whose memory must not grow with the rows: what they keep is cells."""
PREVIEWS = {1_000_000: 0.3, 4_000_000: 1.0}


def run(
    *,
    quick: bool = False,
    part: str | None = None,
    rows: str | None = None,
    engine: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure.

    Parameters
    ----------
    quick : bool
        The works of `MAIN`, one turn, at a hundred thousand and a million rows unless `rows` says otherwise.
    part : str, optional
        One kind of budgets, or ``preview``.
    rows : str, optional
        Sizes, as in ``1e6,1e7``.
    engine : str, optional
        Some of `ENGINES`, with commas between; DuckDB unless given.
    progress : callable
        Is told in words what is being done.

    Returns
    -------
    dict with ``figures``, ``claims`` and ``tables``
    """
    sizes = _sizes(rows) if rows is not None else QUICK if quick else ROWS
    engines = _engines(engine)
    kinds = KINDS if part is None else tuple(kind for kind in KINDS if kind == part)
    works: list[dict[str, Any]] = []
    claims: list[dict[str, Any]] = []
    if kinds and "duckdb" in engines:
        works += _on_duckdb(kinds, sizes, quick, progress)
    if kinds and "postgres" in engines:
        why = scale_postgres.why_not()
        if why is None:
            works += _on_postgres(kinds, sizes, quick, progress)
        else:
            claims.append(not_measured("PostgreSQL", "-", why))
    found_models = models(works)
    figures: dict[str, Any] = {"rows": list(sizes), "works": works, "model": found_models}
    if "spark" in engines:
        figures["spark"] = _on_spark(sizes, claims, progress)
    claims = [*_claims(works, found_models), *claims]
    if part in (None, "preview"):
        claims += _previews(figures.setdefault("preview_seconds", {}), progress)
    return {"figures": figures, "claims": claims, "tables": tables(works, found_models)}


def _sizes(rows: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(float(size)) for size in rows.split(","))
    except (ValueError, OverflowError):
        sizes = ()
    if not sizes or min(sizes) < 1 or max(sizes) > 2**32:
        raise InputError(f"--rows takes numbers of rows with commas between, such as 1e6,1e7, not {rows!r}")
    return tuple(sorted(set(sizes)))


def _engines(engine: str | None) -> tuple[str, ...]:
    named = ("duckdb",) if engine is None else tuple(engine.split(","))
    for name in named:
        if name not in ENGINES:
            raise InputError(f"there is no engine {name!r} to measure; there are {', '.join(ENGINES)}")
    return named


def _tables(kinds: Sequence[str], rows: int, progress: Callable[[str], None]) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """A file for every table that these kinds need, with the kinds that read it; one at a time on disk."""
    shared: dict[tuple[made.Budgets, bool], list[str]] = {}
    for kind in kinds:
        shared.setdefault(scale_run.table_of(kind), []).append(kind)
    for (budgets, persons), readers in shared.items():
        with tempfile.TemporaryDirectory() as folder:
            progress(f"making a table of {rows:,} rows for {', '.join(readers)}")
            yield (
                made.make_table(Path(folder) / "people.parquet", rows, budgets=budgets, persons=persons),
                tuple(readers),
            )


def _wanted(kinds: Sequence[str], rows: int, quick: bool) -> list[str]:
    named = LARGEST if rows >= scale_run.LARGE else MAIN if quick else WORKS
    return [work for work in named if split(work)[0] in kinds]


def _on_duckdb(
    kinds: Sequence[str], sizes: Sequence[int], quick: bool, progress: Callable[[str], None]
) -> list[dict[str, Any]]:
    found = []
    for rows in sizes:
        for path, readers in _tables(kinds, rows, progress):
            for work in _wanted(readers, rows, quick):
                memory = work in (FLAT[:1] if quick and rows < CLAIMED_FROM else MAIN)
                line = scale_run.compare(work, path, rows, repeats=1 if quick else scale_run.REPEATS, memory=memory)
                progress(_said(line))
                found.append(line)
    return found


def _on_postgres(
    kinds: Sequence[str], sizes: Sequence[int], quick: bool, progress: Callable[[str], None]
) -> list[dict[str, Any]]:
    found = []
    for rows in (size for size in sizes if size <= scale_postgres.MOST):
        for path, readers in _tables(kinds, rows, progress):
            progress("loading it into PostgreSQL")
            with scale_postgres.loaded(path) as (connection, table):
                for work in _wanted(readers, rows, True):
                    line = scale_postgres.compare(work, connection, table, rows)
                    progress(_said(line))
                    found.append(line)
    return found


def _on_spark(
    sizes: Sequence[int], claims: list[dict[str, Any]], progress: Callable[[str], None]
) -> list[dict[str, Any]] | None:
    """The releases of the demo on a Spark Connect server of its own: what comes back is cells."""
    if find_spec("pyspark") is None:
        claims.append(not_measured("Spark", "-", "pyspark is not installed: pip install 'sfumato[spark]'"))
        return None
    from sfumato.bench import scale_spark

    made = scale_spark.run(min(max(sizes), CLAIMED_FROM), PARTITIONS, progress)
    claims.append(
        _claim("Spark: rows fetched / cells asked for, worst release", max(f.most_rows / f.cells for f in made), 1.0)
    )
    return [{"release": f.release, "cells": f.cells, "rows": f.most_rows, "seconds": f.seconds} for f in made]


def _previews(seconds: dict[int, float], progress: Callable[[str], None]) -> list[dict[str, Any]]:
    claims = []
    for levels, limit in PREVIEWS.items():
        name = f"preview, {levels:,} budgets, seconds"
        progress(f"a preview with {levels:,} budgets")
        try:
            seconds[levels] = scale_run.preview_seconds(levels)
            claims.append(_claim(name, seconds[levels], limit))
        except SfumatoError as error:
            claims.append(not_measured(name, str(limit), error))
    return claims


def _said(line: dict[str, Any]) -> str:
    release = f"{line['release_times']:.2f}" if "release_times" in line else "refused"
    same = {True: "equal", False: "NOT EQUAL", None: "rows at random"}[line["same"]]
    return f"{line['work']:18} {line['seconds']:8.3f} s, {line['times']:.2f} times by hand, release {release} ({same})"


def _claims(works: Sequence[dict[str, Any]], found_models: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    claims: list[dict[str, Any]] = []
    largest = max((line["rows"] for line in works), default=0)
    for line in works:
        if line["work"] not in LIMITS or (line["rows"] < CLAIMED_FROM and line["rows"] != largest):
            continue
        what = f"{line['engine']}, {line['work']}, {line['rows']:,} rows"
        claims.append(_claim(f"{what}: aggregate / by hand", line["times"], LIMITS[line["work"]]))
        if "release_times" in line:
            claims.append(_claim(f"{what}: release / by hand", line["release_times"], LIMITS[line["work"]]))
    compared = [line["same"] for line in works if line["same"] is not None]
    if compared:
        equal = sum(compared)
        claims.append(
            {
                "name": "aggregates that equal the query by hand, to the row",
                "figure": equal,
                "limit": len(compared),
                "holds": equal == len(compared),
            }
        )
    for work in FLAT:
        peaks = [line["megabytes"] for line in works if line["work"] == work and line.get("megabytes")]
        if len(peaks) > 1:
            claims.append(_claim(f"{work}: peak memory, most rows / fewest", peaks[-1] / peaks[0], 1.5))
    off = [abs(line["foretold_off"]) for line in found_models if "foretold_off" in line]
    if off:
        claims.append(_claim("largest size foretold from the smaller ones, worst error", max(off), FORETOLD))
    return claims


def _claim(name: str, figure: float, limit: float) -> dict[str, Any]:
    return {"name": name, "figure": round(figure, 3), "limit": limit, "holds": figure <= limit}


def plots(folder: Path, figures: dict[str, Any]) -> list[Path]:
    """Time against rows, and memory against rows."""
    from sfumato.bench.scale_plots import draw

    return draw(folder, figures["works"])
