"""A roster file counted by plain SQL on DuckDB: the few numbers that a preview wants, before Ibis is loaded.

`counted` says what `roster_join.per_person` and the Ibis expressions of `roster_findings` say, for the types that rosters
have; the tests hold the two against each other. For anything else (another engine, an odd type, a share of the budgets) it
says nothing, and they are asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.units import MAX_EPSILON, NANO
from sfumato.tables.plain_duckdb import Named, identifier, literal

if TYPE_CHECKING:
    from sfumato.tables.engines import Engine
    from sfumato.tables.roster import Roster

_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")


@dataclass(frozen=True)
class Counted:
    """What a roster table holds.

    Attributes
    ----------
    keys, heads : int64 arrays
        The smallest key of each person, and how many people have it.
    nameless : int
        Rows that name nobody.
    differing : int
        People with several budgets.
    tiers : mapping of str or None to int
        People by what the tier column says; empty for budgets in ε.
    """

    keys: NDArray[np.int64]
    heads: NDArray[np.int64]
    nameless: int
    differing: int
    tiers: Mapping[str | None, int]


def counted(roster: Roster, engine: Engine) -> Counted | None:
    """The counts of a roster table on `engine`, or None where SQL is not written for its types."""
    if engine.name != "duckdb" or not isinstance(engine.opened, Named) or roster.fraction != 1 or roster.reaches:
        return None
    described = engine.sql("SELECT column_name, column_type FROM (DESCRIBE {table})")
    kinds = dict(zip(described["column_name"].tolist(), described["column_type"].tolist(), strict=True))
    if roster.person not in kinds or roster.budget not in kinds:
        return None
    key = _key(roster, kinds[roster.budget], engine.text)
    if key is None:
        return None
    who, budget = identifier(str(roster.person)), identifier(roster.budget)
    rows = f"SELECT {who} AS who, {budget} AS budget, {key} AS key FROM {{table}}"
    each = f"SELECT min(key) AS key, max(key) AS most FROM ({rows}) WHERE who IS NOT NULL GROUP BY who"
    heads = engine.sql(f"SELECT key, count(*) AS n, sum((key < most)::BIGINT)::BIGINT AS m FROM ({each}) GROUP BY key")
    nameless = engine.sql(f"SELECT count(*) AS n FROM {{table}} WHERE {who} IS NULL")
    tiers: dict[str | None, int] = {}
    if roster.tiers_nano:
        tally = f"SELECT budget, count(DISTINCT who) AS n FROM ({rows}) WHERE who IS NOT NULL GROUP BY budget"
        found = engine.sql(tally)
        tiers = dict(zip(found["budget"].tolist(), found["n"].tolist(), strict=True))
    return Counted(
        heads["key"].astype(np.int64),
        heads["n"].astype(np.int64),
        int(nameless["n"][0]),
        int(heads["m"].sum() or 0),
        tiers,
    )


def _key(roster: Roster, kind: str, text: bool) -> str | None:
    """`Roster.key` in SQL."""
    column = identifier(roster.budget)
    if roster.tiers_nano:
        if kind != "VARCHAR":
            return None
        cases = " ".join(f"WHEN {column} = {literal(name)} THEN {i + 1}" for i, (name, _) in enumerate(roster.tiers_nano))
        return f"CAST(CASE {cases} ELSE 0 END AS BIGINT)"
    number = _number(column, kind, text)
    if number is None:
        return None
    top = float(MAX_EPSILON)
    finite = (
        f"CASE WHEN {number} <= 0.0 THEN 0.0 WHEN {number} < {top} THEN {number} "
        f"WHEN {number} IS NOT NULL AND NOT isnan({number}) THEN {top} ELSE 0.0 END"
    )
    return f"CAST(floor({finite} * {float(NANO)} + 1e-06) AS BIGINT)"


def _number(column: str, kind: str, text: bool) -> str | None:
    if kind == "DOUBLE":
        return column
    if kind in _WHOLE or kind == "FLOAT" or kind.startswith("DECIMAL"):
        return f"CAST({column} AS DOUBLE)"
    return f"TRY_CAST({column} AS DOUBLE)" if kind == "VARCHAR" and text else None
