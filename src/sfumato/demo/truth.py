"""What a release says and what is true, side by side: allowed here only because the patients are made up.

For each question the truth is counted in the open; `adaptive` answers with the interval that holds for any data, `affine` as
if budgets had nothing to do with the values. Each answer is made with private noise at half of everyone's budget, in a
ledger that is forgotten: for real people that would spend their budgets twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.demo.clinic import TIERS

if TYPE_CHECKING:
    from sfumato.people import Estimate

QUESTIONS = {
    "65 or older": "age >= 65",
    "in oncology": "ward = 'oncology'",
    "stayed 10+ days": "stay >= 10",
    "from the north": "region = 'north'",
}


@dataclass(frozen=True)
class Compared:
    """One question with its truth and two answers.

    Attributes
    ----------
    question : str
        In words.
    where : str
        The condition.
    truth : int
        The exact count: of made-up patients.
    adaptive : Estimate
        The default; its interval holds for any data.
    affine : Estimate
        What assumes that budgets are independent of the values; its interval rests on that.
    """

    question: str
    where: str
    truth: int
    adaptive: Estimate
    affine: Estimate

    def holds(self, estimate: Estimate) -> bool:
        """Whether the 95% interval that the estimate prints has the truth in it."""
        low, high = estimate.interval(0.95, independent=estimate.mechanism == "affine")
        return low <= self.truth <= high

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        answers = {e.mechanism: e for e in (self.adaptive, self.affine)}
        return {
            "question": self.question,
            "where": self.where,
            "truth_of_made_up_data": self.truth,
            **{
                name: {
                    "value": e.value,
                    "interval": list(e.interval(0.95, independent=name == "affine")),
                    "off_by": e.value - self.truth,
                    "holds": self.holds(e),
                }
                for name, e in answers.items()
            },
        }


def compare(folder: Path, *, released: Mapping[str, Estimate] | None = None) -> list[Compared]:
    """The truth about the demo clinic in `folder` beside two answers to each of `QUESTIONS`.

    `released` has answers by `adaptive` that were paid for already, by condition; the others are made here.
    """
    import pyarrow.parquet as pq

    from sfumato.releases.opening import open as open_table
    from sfumato.tables import Roster

    tiers = {name: epsilon for name, (epsilon, _) in TIERS.items()}
    roster = Roster.table(str(folder / "roster.parquet"), person="patient", tier="consent", tiers=tiers)
    patients = pq.read_table(folder / "clinic.parquet").to_pandas()

    def answer(where: str, mechanism: str) -> Estimate:
        source, schema = str(folder / "clinic.parquet"), str(folder / "clinic.toml")
        table = open_table(source, schema=schema, budgets=roster, ledger=":memory:")
        found: Estimate = table.count(where=where, share=0.5, mechanism=mechanism)
        return found

    made = []
    for question, where in QUESTIONS.items():
        truth = len(patients.query(where.replace(" = ", " == ")))
        adaptive = (released or {}).get(where) or answer(where, "adaptive")
        made.append(Compared(question, where, truth, adaptive, answer(where, "affine")))
    return made
