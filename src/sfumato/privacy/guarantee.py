"""What a finished release promises, to whom, against which neighbours, under which assumptions.

A Guarantee is *computed* by the Meter from the noise that was really drawn. It prints as a sentence and serialises to
the certificate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_UP, Context, Decimal
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.units import NANO, as_epsilon, epsilon_text, nano_down

NEIGHBOURS = {
    "absence": "the same data with one person's record absent (or blank)",
    "replacement": "the same data with one person's record replaced by any other",
    "item": "the same history with one item absent",
}


@dataclass(frozen=True)
class Step:
    """One noisy call: what it was for and what the person who loses most lost in it (nano-ε)."""

    label: str
    mechanism: str
    loss: int

    def to_dict(self) -> dict[str, Any]:
        return {"label": self.label, "mechanism": self.mechanism, "epsilon": epsilon_text(self.loss)}


@dataclass(frozen=True, eq=False)
class Guarantee:
    """The promise of one release.

    Attributes
    ----------
    nano : int
        The largest loss of anybody, in nano-ε; `epsilon` gives it as a decimal.
    people : int64 array or None
        Loss per person group, aligned with `budgets`.
    attributes : mapping
        Loss per attribute in nano-ε.
    not_private : tuple of str
        Reasons why this release must not be published as private (seeded noise, an as-published mechanism).
    """

    nano: int
    neighbours: str = "absence"
    people: NDArray[np.int64] | None = None
    budgets: PersonBudgets | None = None
    attributes: Mapping[str, int] = field(default_factory=dict)
    rows_per_person: int = 1
    assumptions: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    not_private: tuple[str, ...] = ()

    @property
    def epsilon(self) -> Decimal:
        """The largest loss of anybody."""
        return as_epsilon(self.nano)

    @property
    def private(self) -> bool:
        return not self.not_private

    def sentence(self) -> str:
        """The promise in words that a data-protection officer can read.

        >>> print(Guarantee(500_000_000).sentence())
        Whoever sees this release can hardly tell whether any one person took part: the odds of any conclusion about
        them change by a factor of at most e^0.5 = 1.65 (ε = 0.5), compared with the same data with one person's record
        absent (or blank).
        """
        if self.not_private:
            return "NOT PRIVATE: " + "; ".join(self.not_private) + ". Do not publish."
        if self.neighbours == "item":
            secret, them = "whether any one item is in the person's history", "it"
        else:
            secret, them = "whether any one person took part", "them"
        # Beyond e^5 = 149 the odds can turn round: the sentence must not call that hard to tell.
        opening = "can hardly tell" if self.nano <= 5 * NANO else "may well be able to tell"
        text = (
            f"Whoever sees this release {opening} {secret}: the odds of any conclusion about {them} change by a "
            f"factor of at most e^{epsilon_text(self.nano)} = {_factor(self.epsilon)} "
            f"(ε = {epsilon_text(self.nano)}), compared with "
            f"{NEIGHBOURS[self.neighbours]}."
        )
        if self.rows_per_person > 1:
            text += f" A person's whole contribution of up to {self.rows_per_person} rows is protected."
        if self.people is not None and self.budgets is not None:
            text += " " + self._people_sentence()
        if self.attributes:
            parts = ", ".join(f"{name} {epsilon_text(v)}" for name, v in self.attributes.items())
            text += f" Taken one at a time, the attributes lose at most: {parts}; all of them together {self.epsilon}."
        if self.assumptions:
            text += " This rests on: " + "; ".join(self.assumptions) + "."
        return text

    def _people_sentence(self) -> str:
        assert self.people is not None
        assert self.budgets is not None
        if self.budgets.groups <= 8:
            parts = ", ".join(
                f"{self.budgets.name(g)}: {epsilon_text(int(self.people[g]))} of {epsilon_text(int(self.budgets.levels[g]))}"
                for g in range(self.budgets.groups)
            )
            return f"Nobody loses more than they granted (used of granted ε): {parts}."
        return (
            f"Nobody of {self.budgets.people:,} people loses more than they granted; losses lie between "
            f"{epsilon_text(int(self.people.min()))} and {epsilon_text(int(self.people.max()))}."
        )

    def to_dict(self, *, most_groups: int = 1000) -> dict[str, Any]:
        """For the certificate. More than `most_groups` person groups are thinned to a step function of that many rows."""
        out: dict[str, Any] = {
            "epsilon": epsilon_text(self.nano),
            "neighbours": self.neighbours,
            "neighbours_in_words": NEIGHBOURS[self.neighbours],
            "rows_per_person": self.rows_per_person,
            "assumptions": list(self.assumptions),
            "attributes": {k: epsilon_text(v) for k, v in self.attributes.items()},
            "steps": [s.to_dict() for s in self.steps],
            "private": self.private,
            "not_private": list(self.not_private),
            "sentence": self.sentence(),
        }
        if self.people is not None and self.budgets is not None:
            out["people"] = _people_rows(self.budgets, self.people, most_groups)
        return out

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Guarantee:
        """The guarantee that `to_dict` wrote down."""
        rows = stored.get("people")
        budgets = people = None
        if rows:
            names = tuple(r["group"] for r in rows) if "group" in rows[0] else None
            levels = np.array([nano_down(r["granted"]) for r in rows])
            budgets = PersonBudgets(levels, np.array([r["people"] for r in rows]), names)
            people = np.array([nano_down(r["used"]) for r in rows], dtype=np.int64)
        return cls(
            nano_down(stored["epsilon"]),
            neighbours=stored["neighbours"],
            people=people,
            budgets=budgets,
            attributes={k: nano_down(v) for k, v in stored["attributes"].items()},
            rows_per_person=stored["rows_per_person"],
            assumptions=tuple(stored["assumptions"]),
            steps=tuple(Step(s["label"], s["mechanism"], nano_down(s["epsilon"])) for s in stored["steps"]),
            not_private=tuple(stored["not_private"]),
        )

    def __str__(self) -> str:
        return self.sentence()


def _factor(epsilon: Decimal) -> str:
    """e^ε with three digits, rounded up: "at most" must stay true."""
    factor = Context(prec=30, Emax=10**9, Emin=-(10**9)).exp(epsilon)
    return f"{Context(prec=3, rounding=ROUND_UP, Emax=10**9, Emin=-(10**9)).plus(factor):g}"


def _people_rows(budgets: PersonBudgets, losses: NDArray[np.int64], most: int) -> list[dict[str, Any]]:
    edges: Sequence[int] = np.unique(np.linspace(0, budgets.groups, min(most, budgets.groups) + 1).astype(int)).tolist()
    rows = []
    for start, stop in pairwise(edges):
        row: dict[str, Any] = {
            "granted": epsilon_text(int(budgets.levels[start])),
            "used": epsilon_text(int(losses[start:stop].max())),
            "people": int(budgets.counts[start:stop].sum()),
        }
        if budgets.names:
            row["group"] = budgets.names[start]
        if stop - start > 1:
            row["granted_up_to"] = epsilon_text(int(budgets.levels[stop - 1]))
        rows.append(row)
    return rows
