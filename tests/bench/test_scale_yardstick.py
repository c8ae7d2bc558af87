"""A baseline that computes something else is no baseline: the queries by hand give what our aggregates give, to the row."""

from pathlib import Path
from typing import Any

import pytest

from sfumato.bench import scale_data as made
from sfumato.bench import scale_queries as yard
from sfumato.tables import open as describe

ROWS = 20_000
RANDOM = ("sum", "bins", "quantile", "grid")
"""Which rows of a capped person count is random there on both sides."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], Path]:
    folder = tmp_path_factory.mktemp("scale")
    wanted: Any = [("tiers", False), ("million", False), ("tiers", True)]
    return {(b, p): made.make_table(folder / f"{b}{p}.parquet", ROWS, budgets=b, persons=p) for b, p in wanted}


@pytest.fixture(scope="module")
def duckdb() -> Any:
    return made.quiet_duckdb()


def test_every_row_follows_from_its_number(files: dict[tuple[str, bool], Path], duckdb: Any) -> None:
    """The same table on every machine: figures of 20,000 rows, computed once."""
    query = """SELECT sum(age), sum(income), count(income), count(*) FILTER (WHERE region = 'r3'), sum(stay),
        count(*) FILTER (WHERE tier = 'open') FROM '{}'"""
    found = duckdb.execute(query.format(files["tiers", False])).fetchone()
    assert found == (1229190, 10102564.9453125, 19621, 1694, 697998, 1803)
    (distinct, most) = duckdb.execute(
        f"SELECT count(*), max(n) FROM (SELECT person, count(*) n FROM '{files['tiers', True]}' GROUP BY 1)"
    ).fetchone()
    assert 7_000 < distinct < 9_000
    assert most > 100, "some people own far more rows than others"


def test_the_levels_are_the_budgets_of_the_column(files: dict[tuple[str, bool], Path], duckdb: Any) -> None:
    assert made.levels().size == made.DISTINCT == len(set(made.levels().tolist()))
    found = duckdb.execute(f"SELECT DISTINCT epsilon FROM '{files['million', False]}'").fetchnumpy()["epsilon"]
    assert set((found * 1e9).astype(int).tolist()) <= set(made.levels().tolist())


COMPARABLE = [work for work in yard.WORKS if not (work.startswith(("capped", "persons")) and work.endswith(RANDOM))]


@pytest.mark.parametrize("work", COMPARABLE)
def test_a_query_by_hand_computes_what_ours_does(work: str, files: dict[tuple[str, bool], Path], duckdb: Any) -> None:
    kind, _ = yard.split(work)
    budgets, persons = "million" if kind == "million" else "tiers", kind in ("capped", "persons")
    path, people = files[budgets, persons], yard.people_of(kind, ROWS)
    roster = None if people is None else made.roster(budgets, ROWS)  # type: ignore[arg-type]
    dataset = describe(str(path), schema=made.PERSONS if persons else made.SCHEMA, budgets=roster)
    ours = yard.ours_as_result(work, yard.weighed(work, dataset, people))
    by_hand = yard.result_of(work, yard.run_hand(duckdb, yard.hand_query(work, path)))
    assert yard.agree(work, ours, by_hand) is True
    assert not yard.agree(work.replace("persons", "tiers").replace("capped", "one"), ours, by_hand + 1), (
        "one row more is seen"
    )


def test_a_clock_of_another_process_sees_its_work() -> None:
    import os

    clock = yard.server_clock(os.getpid())
    assert clock is not None
    start = clock()
    sum(i * i for i in range(2_000_000))
    assert clock() - start > 0.02
