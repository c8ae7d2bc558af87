"""Wrong plans: what a beginner, somebody in a hurry and an attacker write, each with the words that the answer must hold.

A case is a change of one of the plans below (or of its schema or roster): the text that is replaced, by what, the *place*
that the sentence must name and the *remedy* that it must say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

SCHEMA = """
[unit]
person = "patient"
rows_per_person = 1

[columns.age]
type = "numeric"
low = 0
high = 105
integer = true
bins = 21

[columns.cost]
type = "numeric"
low = 0
high = 5000
bins = 10

[columns.ward]
type = "categorical"
values = ["cardiology", "oncology", "general"]
"""

ROSTER = "patient,tier\n" + "".join(f"{i},{'open' if i % 3 else 'strict'}\n" for i in range(30))

PLAIN = """
[dataset]
name = "clinic"
source = "clinic.parquet"
schema = "clinic.toml"
rows = 2000

[ledger]
location = "clinic.ledger"
epsilon = 1.0

[output]
folder = "releases"

[[release]]
name = "over65"
kind = "count"
where = "age >= 65"
epsilon = 0.4

[[release]]
name = "wards"
kind = "histogram"
columns = ["ward"]
epsilon = 0.4
"""

PERSONAL = """
[dataset]
name = "clinic"
source = "clinic.parquet"
schema = "clinic.toml"

[people]
source = "roster.csv"
person = "patient"
tier = "tier"

[people.tiers]
strict = 0.01
open = 1.0

[ledger]
location = "clinic.ledger"

[[release]]
name = "over65"
kind = "count"
where = "age >= 65"
share = 0.5

[[release]]
name = "costs"
kind = "mean"
column = "cost"
share = 0.25
"""


@dataclass(frozen=True)
class Wrong:
    """A wrong plan: `changes` of the text of `file`, what the sentence must name, how many sentences there are (0: some)."""

    name: str
    changes: tuple[tuple[str, str], ...]
    place: str
    remedy: str
    base: str = PLAIN
    file: str = "plan.toml"
    mistakes: int = 1

    def text(self, before: str) -> str:
        """The file with the mistake."""
        for old, new in self.changes:
            assert old in before, (self.name, old)
            before = before.replace(old, new, 1)
        return before


def _all(rows: str, base: str = PLAIN, file: str = "plan.toml") -> list[Wrong]:
    r"""Cases from lines ``name :: old :: new :: place :: remedy``; ``\n`` is a line break, ``~`` more than one change."""
    found = []
    for row in rows.strip().splitlines():
        if not row.strip():
            continue
        name, old, new, place, remedy, *more = (part.strip() for part in row.split(" :: "))
        olds, news = (part.replace("\\n", "\n").split(" ~ ") for part in (old, new))
        news = ["" if n == "-" else n for n in news]
        changes = tuple(zip(olds, news, strict=True))
        found.append(Wrong(name, changes, place, remedy, base, file, int(more[0]) if more else 1))
    return found


def every_case() -> list[Wrong]:
    """The cases of all files."""
    found = []
    for path in sorted((Path(__file__).parents[1] / "releases" / "wrong_plans").glob("*.txt")):
        first, _, rows = path.read_text(encoding="utf-8").partition("\n")
        base, file = re.fullmatch(r"# plan: (\w+), changed: (\S+)", first).groups()
        found += _all(rows, {"plain": PLAIN, "personal": PERSONAL}[base], file)
    return found


LONG = {
    "VERYLONG": "x" * 5000,
    "DIGITS": "9" * 5000,
    "DEEP": "[" * 20_000 + "]" * 20_000,
    "PARENS": "(" * 5000 + "age >= 65" + ")" * 5000,
    "LONGWHERE": " or ".join(["age >= 65"] * 20_000),
}
"""What is too long to be written in a line above."""
