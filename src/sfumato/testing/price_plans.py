"""Random small releases to try the whole way with: a table, its schema, a roster, a question, and somebody who leaves.

Rosters are a column, tiers or a table of their own, budgets have more digits than are kept; people own up to three rows and
some more than count, and some granted nothing; values are missing, infinite, unknown or no numbers at all. What each person
granted is kept beside, in exact fractions: the measure that a release is held against.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.source import Generator
from sfumato.privacy.units import NANO
from sfumato.tables import Categorical, Numeric, PrivacyUnit, Roster, Schema

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("count", "sum", "mean", "histogram", "synthesize")
_AGES: tuple[Any, ...] = (0.0, 100.0, 100.0, -7.0, 250.0, 50.0, 49.9, np.nan, np.inf, -np.inf, 1e300)
_STRANGE: tuple[Any, ...] = ("?", "50", 10**400, True, None, (), "\ud800")
_SEXES = ("f", "f", "m", "?", None)
_WHERE = (None, None, "age >= 50", "sex = 'f'", "age is not missing", "not (sex = 'm')")
_TIERS = {"strict": "0.1000000009", "open": "0.9000000005", "none": None}


@dataclass(frozen=True, eq=False)
class PricePlan:
    """A release to try, and somebody who leaves the table.

    Attributes
    ----------
    table : data frame
        The private table.
    schema : Schema
    roster : Roster or None
        Where budgets are written; None if one ε holds for all.
    granted : mapping
        What each person granted in all, in ε: an exact fraction, 0 for nothing.
    kind : str
        What is asked.
    asked : mapping
        The keys of the question: `epsilon` or `share`, `where`, columns.
    person : object
        Who leaves. Without a person column, the number of a row.
    """

    table: pd.DataFrame
    schema: Schema
    roster: Roster | None
    granted: Mapping[Any, Fraction]
    kind: Literal["count", "sum", "mean", "histogram", "synthesize"]
    asked: Mapping[str, Any]
    person: Any

    @property
    def people(self) -> int:
        """A public head count: everybody who could be in the table."""
        return len(self.granted)

    @property
    def without(self) -> pd.DataFrame:
        """The neighbour: the same table without that person's rows."""
        whose = self.table.index.tolist() if self.schema.unit.person is None else self.table["who"].tolist()
        stays = np.array([who is None or who != self.person for who in whose], dtype=bool)
        return self.table[stays].reset_index(drop=True)

    @property
    def allowed(self) -> Fraction:
        """What the person who leaves may lose by this release, in nano-ε: of their own budget, or the ε of all."""
        if self.roster is None:
            return Fraction(str(self.asked["epsilon"])) * NANO
        # Budgets in a column are binary numbers: 0.3 is what was written, a hair below it what is stored.
        whole = int(self.granted[self.person] * NANO + Fraction(1, 10**6))
        return whole * Fraction(str(self.asked["share"]))


def random_plan(draw: Generator, kind: str | None = None) -> PricePlan:
    """A release to try.

    Parameters
    ----------
    draw : Generator
        Decides everything; ``Seeded(1).generator()`` makes one.
    kind : str, optional
        The kind of release; any if left out.

    Returns
    -------
    PricePlan

    Examples
    --------
    >>> from sfumato.privacy import Seeded
    >>> plan = random_plan(Seeded(1).generator(), "count")
    >>> len(plan.table) > len(plan.without), plan.kind
    (True, 'count')
    """
    kind = str(draw.choice(KINDS)) if kind is None else kind
    rows = int(draw.integers(0, 4))  # 0: every row is a person
    schema = Schema(
        {
            "age": Numeric(
                int(draw.choice([0, -50, 18])), 100, bins=int(draw.integers(2, 7)), integer=bool(draw.integers(2))
            ),
            "sex": Categorical(["f", "m"]),
            "ill": Categorical(["no", "yes"]),
        },
        unit=PrivacyUnit() if rows == 0 else PrivacyUnit(person="who", rows_per_person=rows),
    )
    table = _table(draw, rows)
    names = list(range(len(table))) if rows == 0 else sorted(set(table["who"].dropna()))
    ways = ["one", "column", "tiers"] + (["table"] if rows else [])
    way = "one" if kind == "synthesize" and draw.integers(2) else str(draw.choice(ways))
    roster, granted = _roster(draw, way, table, rows, names)
    asked: dict[str, Any] = {"where": _WHERE[int(draw.integers(len(_WHERE)))], **_question(draw, kind)}
    if roster is None:
        asked["epsilon"] = str(draw.choice(["0.1000000003", "0.7", "1.3"]))
    else:
        asked["share"] = str(draw.choice(["1", "0.5", "0.3", "0.123456789"]))
    person = _leaver(draw, names, table, granted, personal=roster is not None)
    return PricePlan(table, schema, roster, granted, kind, asked, person)  # type: ignore[arg-type]


def _table(draw: Generator, rows: int) -> pd.DataFrame:
    """A few people with up to as many rows as count; whoever has more has the same row again and again.

    The engine keeps a random few of too many rows: if they differed, two runs would read different ones.
    """
    import pandas as pd

    people = int(draw.integers(3, 25))
    found: list[dict[str, Any]] = []
    for who in range(people):
        mine = 1 if rows == 0 else int(draw.integers(1, rows + 1))
        one = _row(draw, who)
        alike = bool(draw.integers(2))
        found += [one if alike else _row(draw, who) for _ in range(mine)]
        if rows and draw.integers(4) == 0:
            found = [*[r for r in found if r["who"] != one["who"]], *([one] * (rows + 2))]
    if rows and draw.integers(2):
        found.append({**_row(draw, 0), "who": None})  # a row of nobody
    frame = pd.DataFrame(found)
    return frame.iloc[draw.permutation(len(frame))].reset_index(drop=True)


def _leaver(
    draw: Generator, names: list[Any], table: pd.DataFrame, granted: Mapping[Any, Fraction], *, personal: bool
) -> Any:
    """Anybody; mostly one of those with the most rows who granted something, for whom the most is at stake."""
    whose = table["who"].tolist()
    many = max(whose.count(name) for name in names)
    heavy = [name for name in names if whose.count(name) == many and (granted[name] > 0 or not personal)]
    among = heavy if heavy and draw.integers(4) else names
    return among[int(draw.integers(len(among)))]


def _row(draw: Generator, who: int) -> dict[str, Any]:
    ages = _STRANGE if draw.integers(12) == 0 else _AGES
    age, sex = ages[int(draw.integers(len(ages)))], _SEXES[int(draw.integers(len(_SEXES)))]
    return {"who": f"p{who}", "age": age, "sex": sex, "ill": str(draw.choice(["no", "yes"]))}


def _roster(
    draw: Generator, way: str, table: pd.DataFrame, rows: int, names: list[Any]
) -> tuple[Roster | None, dict[Any, Fraction]]:
    """Where budgets are written (in a column of `table`, or beside it), and what everybody granted."""
    import pandas as pd

    if way == "one":
        return None, dict.fromkeys(names, Fraction(0))
    whose = list(range(len(table))) if rows == 0 else table["who"].tolist()
    if way == "tiers":
        tier = {name: str(draw.choice(["strict", "open", "none"], p=[0.5, 0.4, 0.1])) for name in names}
        tier[names[0]] = "open"
        table["consent"] = [tier.get(w, "open") for w in whose]
        granted = {name: Fraction(_TIERS[t] or "0") for name, t in tier.items()}
        paid = {t: e for t, e in _TIERS.items() if e is not None}
        counts = {t: sum(found == t for found in tier.values()) for t in paid}
        return Roster.tiers(paid, column="consent", counts=counts), granted
    budgets = [float(b) for b in draw.choice([0.05, 0.3, 1.0, 0.1234567899, 1.9999999996], len(names))]
    each = dict(zip(names, budgets, strict=True))
    granted = {name: Fraction(repr(budget)) for name, budget in each.items()}
    if way == "table":
        listed = pd.DataFrame({"who": [*names, "somebody else"], "epsilon": [*budgets, 0.5]})
        return Roster.table(listed, person="who", epsilon="epsilon"), granted
    table["epsilon"] = [each.get(w, 1.0) for w in whose]
    return Roster.column("epsilon", people=PersonBudgets.of(budgets)), granted


def _question(draw: Generator, kind: str) -> dict[str, Any]:
    if kind in ("sum", "mean"):
        return {"column": "age"}
    if kind == "synthesize":
        return {"target": "ill"}
    if kind == "count":
        return {"selectivity": 0.3} if draw.integers(2) else {}
    columns = (["age"], ["sex"], ["age", "sex"])[int(draw.integers(3))]
    more: dict[str, Any] = {"nonnegative": True} if draw.integers(3) == 0 else {}
    return {"columns": columns, **more}
