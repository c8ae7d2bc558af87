"""A file of people and what they grant, as `sfumato people PLAN import` brings it to the ledger.

One row per person: their identifier, and a tier of the menu or an ε of their own. Somebody who is listed twice has the
smaller of the two, as everywhere. Rows without a person or without a grant are left out, and it is said how many.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.tables.connecting import connect
from sfumato.tables.engines import Engine
from sfumato.tables.frames import number_array, person_array, text_array
from sfumato.tables.living import LivingRoster
from sfumato.tables.sources import TEXTS
from sfumato.tables.words import did_you_mean


@dataclass(frozen=True, eq=False)
class RosterFile:
    """What a file says.

    Attributes
    ----------
    persons : Arrow array of text
        Each once.
    grants : list
        Of each, the name of a tier, or an ε.
    notes : tuple of str
        What was left out, in sentences with head counts; nobody is named.
    """

    persons: Any
    grants: list[Any]
    notes: tuple[str, ...] = ()


def read_roster(path: str | Path, roster: LivingRoster, *, person: str) -> RosterFile:
    """Read a CSV, Parquet or spreadsheet file with the column `person` and either ``tier`` or ``epsilon``."""
    columns = {person: person_array, "tier": text_array, "epsilon": number_array}
    csv = roster.csv if str(path).endswith(TEXTS) else None
    engine = connect(str(path), None, columns=columns, csv=csv)
    there = list(engine.table.columns)
    if person not in there:
        raise InputError(
            f"{path} has no column {person!r} to name people by (it has {', '.join(there)}); say which one it is: "
            "`person` under [people] in the plan"
        )
    named = "tier" in there
    if not named and "epsilon" not in there:
        raise InputError(f"{path} needs a column `tier` or `epsilon` beside {person!r}; it has {', '.join(there)}")
    found = _rows(engine, person, "tier" if named else "epsilon")
    whole = len(found)
    found = found[found["who"].notna() & (found["who"] != "")]
    nameless = whole - len(found)
    found = found[found["grant"].notna()]
    grantless = whole - nameless - len(found)
    found = found.assign(nano=_tiers(found["grant"], roster, path) if named else _epsilons(found["grant"], path))
    different = int(found.groupby("who")["nano"].nunique().gt(1).sum())
    found = found.sort_values("nano", kind="stable").drop_duplicates("who", keep="first").sort_index()
    said = {
        "rows that name no person and are left out": nameless,
        "people without a grant, who are left out": grantless,
        "people listed more than once with different grants, of which the smallest holds": different,
    }
    notes = tuple(f"{sentence}: {n:,}" for sentence, n in said.items() if n)
    return RosterFile(text_array(found["who"].tolist()), found["grant"].tolist(), notes)


def _rows(engine: Engine, person: str, grant: str) -> Any:
    """The two columns as a frame: who, in text, and grant."""
    import pyarrow as pa

    who = engine.column(person, "the person column")
    kind = who.type()
    if not (kind.is_integer() or kind.is_string() or kind.is_uuid()):
        raise InputError(f"column {person!r} names people by {kind}; use whole numbers or text")
    found = engine.fetch(engine.table.select(who=who.cast("string"), grant=engine.column(grant, "the grant")))
    assert isinstance(found, pa.Table)
    return found.to_pandas()


def _tiers(grants: Any, roster: LivingRoster, path: str | Path) -> Any:
    menu = dict(roster.tiers_nano)
    strange = [str(tier) for tier in grants.unique() if tier not in menu]
    if strange:
        raise InputError(f"{path} names a tier {strange[0]!r} that is not on the menu; {did_you_mean(strange[0], menu)}")
    return grants.map(menu)


def _epsilons(grants: Any, path: str | Path) -> Any:
    import pandas as pd

    numbers = pd.to_numeric(grants, errors="coerce").to_numpy(dtype=np.float64)
    wrong = int((~np.isfinite(numbers) | (numbers <= 0)).sum())
    if wrong:
        raise InputError(
            f"{wrong:,} people in {path} have an epsilon that is no number above 0; correct it or leave them out"
        )
    return numbers
