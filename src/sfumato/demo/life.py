"""A year in the made-up clinic: people choose, a count is released, three change their minds, and one asks for a receipt.

Everything goes through a plan of its own, `living.toml`, so that the ledger of `plan.toml` stays as it is. What was done
once is found done: a second run goes on where the first one ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.people import Estimate

LIVING = """\
# The same clinic with people who change their minds.
# sfumato people living.toml import choices.parquet   brings what everybody chose; it holds from the next epoch on
# sfumato people living.toml epoch                    closes an epoch
# sfumato people living.toml withdraw 123             holds from the next release on
# sfumato receipt 123 --plan living.toml              what was spent on patient 123

[dataset]
name = "clinic, living"
source = "clinic.parquet"
schema = "clinic.toml"

[people]
living = true
person = "patient"
tiers = { strict = 0.01, standard = 0.2, open = 1.0 }
period = "year"                # beside the limit for life: at most this much a year

[people.per_period]
strict = 0.005
standard = 0.1
open = 0.5

[ledger]
location = "living.ledger"     # the key to find people by lies beside it

[output]
folder = "living"

[[release]]
name = "over65"
kind = "count"
where = "age >= 65"
share = 0.25
"""


@dataclass(frozen=True)
class Minds:
    """Three patients who change their minds, by number.

    Attributes
    ----------
    leaves : str
        Granted `open`, and withdraws.
    lowers : str
        Granted `standard`, and changes to `strict`.
    joins : str
        Was not asked at first, and joins with `open`.
    """

    leaves: str
    lowers: str
    joins: str


@dataclass(frozen=True)
class Lived:
    """What happened.

    Attributes
    ----------
    plan : Path
    minds : Minds
    answers : tuple of Estimate
        The same count before and after the three changed their minds.
    people : tuple of int
        How many take part in the first and in the second epoch.
    receipt : mapping
        Of the patient who left.
    page : Path
        The same as a page they can read.
    """

    plan: Path
    minds: Minds
    answers: tuple[Estimate, Estimate]
    people: tuple[int, int]
    receipt: dict[str, Any]
    page: Path

    def to_dict(self) -> dict[str, Any]:
        """Plain figures."""
        return {
            "plan": str(self.plan),
            "people": list(self.people),
            "values": [answer.value for answer in self.answers],
            "receipt": self.receipt,
            "page": str(self.page),
        }


def write_living(folder: Path) -> tuple[Path, Minds]:
    """Write living.toml, and choices.parquet with what all patients but one chose; what is there stays as it is."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    roster = pq.read_table(folder / "roster.parquet").rename_columns(["patient", "tier"])
    known, last = roster.slice(0, roster.num_rows - 1), roster.slice(roster.num_rows - 1)
    one, other = (known.filter(pc.equal(known["tier"], tier))["patient"][0] for tier in ("open", "standard"))
    plan = folder / "living.toml"
    if not plan.exists():
        pq.write_table(known, folder / "choices.parquet")
        plan.write_text(LIVING, encoding="utf-8")
    return plan, Minds(str(one), str(other), str(last["patient"][0]))


def live(folder: Path) -> Lived:
    """Two epochs in the clinic of `folder`: what was done already is not done again."""
    from sfumato.releases import load, people, receipt_page, release

    path, minds = write_living(folder)
    plan = load(path)
    life = people(plan)
    if life.standing().epoch == 0:
        life.bring(*_choices(folder))
        life.epoch()
    if life.standing().epoch == 1:
        release(plan, notice=_unsaid)
        life.withdraw(minds.leaves)
        life.change(minds.lowers, "strict")
        life.join(minds.joins, "open")
        life.epoch()
    release(plan, notice=_unsaid)
    first, second = (_answer(plan.folder / f"epoch-{epoch}" / "over65") for epoch in (1, 2))
    found = life.receipt(minds.leaves)
    page = folder / f"receipt-{minds.leaves}.html"
    page.write_text(receipt_page(found), encoding="utf-8")
    return Lived(path, minds, (first, second), (first.people, second.people), found.to_dict(), page)


def _unsaid(_: str) -> None:
    """That the ledger is new needs no warning: the demo has just made it."""


def _choices(folder: Path) -> tuple[Any, list[str]]:
    """The people of choices.parquet and their tiers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    chosen = pq.read_table(folder / "choices.parquet")
    return chosen["patient"].cast(pa.string()).combine_chunks(), chosen["tier"].to_pylist()


def _answer(folder: Path) -> Estimate:
    from sfumato.people import Estimate
    from sfumato.releases.folder import read_result

    result = read_result(folder)
    assert isinstance(result, Estimate)
    return result
