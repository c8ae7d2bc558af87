"""Tables of any size, made out of core: the data of `sfumato bench scale`.

Every value follows from the number of its row by integer arithmetic (two rounds of multiply and shift on 32 bits), so that
a hundred million rows are the same on every machine and with every version of DuckDB. Incomes are multiples of 1/256 and
budgets multiples of 2^-20: sums, bins and nano-ε of them are exact, however they are computed, and a query by hand must
agree to the last row.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

from sfumato.privacy.budgets import PersonBudgets
from sfumato.tables import Categorical, Numeric, PrivacyUnit, Roster, Schema

COLUMNS = ("age", "sex", "income", "region", "stay")
REGIONS = tuple(f"r{i}" for i in range(12))
STAYS = (0, 1, 2, 4, 7, 14, 30, 60)
ROWS_PER_PERSON = 3
DISTINCT = 1_000_000
"""How many different budgets the column `epsilon` has."""

SCHEMA = Schema(
    {
        "age": Numeric(0, 119, bins=12, integer=True),
        "sex": Categorical(["F", "M"]),
        "income": Numeric(0.0, 1000.0, bins=20),
        "region": Categorical(REGIONS, other=True),
        "stay": Numeric(edges=STAYS, outside="clamp"),
    }
)
"""One row per person. Ages, incomes and stays beyond the bounds, missing incomes and stray regions are in the data."""

PERSONS = Schema(SCHEMA.columns, unit=PrivacyUnit(person="person", rows_per_person=ROWS_PER_PERSON))
"""The same columns, with a person who may have any number of rows and is counted with three."""

TIERS = {"strict": "0.01", "standard": "0.2", "open": "1"}
"""ε by consent tier; 54, 37 and 9 of 100 rows."""
SHARES = {"strict": 54, "standard": 37, "open": 9}

Budgets = Literal["tiers", "million"]

# A number of 32 bits for every row and salt. Products stay below 2^63: DuckDB raises on overflow.
_MACROS = (
    "CREATE MACRO stir(x) AS (xor(x, x >> 16) * 73244475) & 4294967295",
    "CREATE MACRO bits(i, salt) AS xor(stir(stir((i * salt) & 4294967295)), stir(stir((i * salt) & 4294967295)) >> 16)",
)


def _tier(bits: str) -> str:
    return f"CASE WHEN {bits} % 100 < 54 THEN 'strict' WHEN {bits} % 100 < 91 THEN 'standard' ELSE 'open' END"


def quiet_duckdb(*, threads: int | None = None) -> Any:
    """A DuckDB connection without a progress bar."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    if threads is not None:
        connection.execute(f"SET threads = {int(threads)}")
    return connection


def make_table(path: str | Path, rows: int, *, budgets: Budgets = "tiers", persons: bool = False) -> Path:
    """Write a Parquet file of `rows` rows to `path`, a row group at a time.

    Parameters
    ----------
    path : path
        The file.
    rows : int
        How many, up to 2^32.
    budgets : "tiers" or "million"
        A column `tier` of three names, or a column `epsilon` with a million different budgets instead.
    persons : bool
        Add a column `person`: two rows each on average, some people thousands. The tier or budget is then the person's.

    Returns
    -------
    Path
    """
    whose = "bits(person + 1, 461845907)" if persons else "d"
    granted = {
        "tiers": f"{_tier(whose)} AS tier",
        "million": f"(1 + {whose} % {DISTINCT}) / 1048576.0::DOUBLE AS epsilon",
    }[budgets]
    # (d / 2^32)^2 is dense near 0: the first people have the most rows.
    person = f"((d / 4294967296.0::DOUBLE) ** 2 * {max(1, rows // 2)})::BIGINT AS person, " if persons else ""
    columns = f"""
        (a % 125)::INTEGER AS age,
        CASE WHEN (a // 125) % 2 = 0 THEN 'F' ELSE 'M' END AS sex,
        CASE WHEN (b // 268800) % 50 = 0 THEN NULL ELSE (b % 268800) / 256.0::DOUBLE - 10 END AS income,
        CASE c % 128 WHEN 124 THEN 'R1' WHEN 125 THEN 'r12' WHEN 126 THEN '' WHEN 127 THEN NULL
            ELSE 'r' || ((c % 128) % 12)::VARCHAR END AS region,
        (a // 250 % 71)::INTEGER AS stay,
        {person}{granted}"""
    stirred = "bits(range, 2654435761) AS a, bits(range, 2246822519) AS b, bits(range, 3266489917) AS c"
    stirred += ", bits(range, 668265263) AS d"
    if rows < 1 or rows > 2**32:
        raise ValueError(f"between 1 and 2^32 rows can be made, not {rows}")
    connection = quiet_duckdb()
    for macro in _MACROS:
        connection.execute(macro)
    # Rows in any order: to keep it, DuckDB would hold what the threads have made. Every row is the same whatever its place.
    connection.execute("SET preserve_insertion_order = false")
    query = f"SELECT {columns} FROM (SELECT {stirred} FROM range({rows}))"
    connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    connection.close()
    return Path(path)


def roster(budgets: Budgets, rows: int) -> Roster:
    """The public roster of such a table of `rows` rows: the budgets and about how many people granted each."""
    if budgets == "tiers":
        counts = {name: max(1, rows * share // 100) for name, share in SHARES.items()}
        return Roster.tiers(TIERS, column="tier", counts=counts)
    return Roster.column("epsilon", people=PersonBudgets(levels(), np.full(DISTINCT, max(1, rows // DISTINCT))))


def levels() -> Any:
    """The million different budgets in nano-ε, in order."""
    return np.arange(1, DISTINCT + 1, dtype=np.int64) * 10**9 // 2**20
