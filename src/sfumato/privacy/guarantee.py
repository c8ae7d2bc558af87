"""What a finished release promises, to whom, against which neighbours, under which assumptions.

A Guarantee is *computed* by the Meter from the noise that was really drawn. It prints as a sentence, serialises to the
certificate, and comes back from it as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_UP, Context, Decimal
from typing import Any

from sfumato.errors import InputError
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.group_losses import FEW, GroupLosses
from sfumato.privacy.units import NANO, Nano, NanoArray, as_epsilon, epsilon_text, nano_of

NEIGHBOURS = {
    "absence": "the same data with one person's record absent (or blank)",
    "replacement": "the same data with one person's record replaced by any other",
    "item": "the same history with one item absent",
}

# A person of group g who becomes one of group h loses half of what each of the two groups loses: at most the larger.
SAME_BUDGET = (
    "The other record is one of the same budget, since who granted which is public; compared with a record of another "
    "budget, ε = {epsilon} is what is promised."
)

# The same where who granted which is part of a person's record.
OTHER_BUDGET = "Compared with a record of another budget, ε = {epsilon} is what is promised."
ROSTER_IS_PRIVATE = "only the menu of budgets is public: whether a person granted one, and which, is part of their record"

# Words for the largest loss. The examples are what an even chance may turn into at the end of the band: e^ε / (1 + e^ε).
WORDS = (
    (NANO // 10, "can hardly tell"),  # 52.5%
    (NANO, "may guess somewhat better than before, but not be sure,"),  # 73%
    (3 * NANO, "may learn a good deal about"),  # 95%
)
BEYOND = "may well be able to tell"


@dataclass(frozen=True)
class Step:
    """One noisy call.

    Attributes
    ----------
    label : str
        What it was for.
    mechanism : str
        The kind of noise.
    loss : Nano
        What the person who loses most lost in it.

    Examples
    --------
    >>> Step.from_dict(Step("count", "laplace", Nano(10**8)).to_dict())
    Step(label='count', mechanism='laplace', loss=100000000)
    """

    label: str
    mechanism: str
    loss: Nano

    def to_dict(self) -> dict[str, Any]:
        """For the certificate."""
        return {"label": self.label, "mechanism": self.mechanism, "epsilon": epsilon_text(self.loss)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Step:
        """The inverse of `to_dict`: the step that was `stored`."""
        return cls(str(stored["label"]), str(stored["mechanism"]), nano_of(stored["epsilon"]))


@dataclass(frozen=True, eq=False)
class Guarantee:
    """The promise of one release.

    Attributes
    ----------
    nano : Nano
        The largest loss of anybody, in nano-ε; `epsilon` gives it as a decimal.
    neighbours : str
        "absence", "replacement" or "item": what the data are compared with.
    groups : GroupLosses or None
        What each person group granted, its share of this release, and what was used of it.
    attributes : mapping
        Loss per attribute in nano-ε.
    rows_per_person : int
        Cap on the rows of one person; all of them are protected together.
    person : str or None
        The column that says whose row it is, where such a cap leaves out further rows.
    assumptions : tuple of str
        What the promise rests on.
    steps : tuple of Step
        The noisy calls.
    not_private : tuple of str
        Reasons why this release must not be published as private (seeded noise, an as-published mechanism).

    Examples
    --------
    >>> promise = Guarantee(Nano(500_000_000), attributes={"age": Nano(10**8)})
    >>> Guarantee.from_dict(promise.to_dict()).attributes
    {'age': 100000000}
    """

    nano: Nano
    neighbours: str = "absence"
    groups: GroupLosses | None = None
    attributes: Mapping[str, Nano] = field(default_factory=dict)
    rows_per_person: int = 1
    person: str | None = None
    assumptions: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    not_private: tuple[str, ...] = ()

    @property
    def epsilon(self) -> Decimal:
        """The largest loss of anybody."""
        return as_epsilon(self.nano)

    @property
    def private(self) -> bool:
        """Whether this may be published as private."""
        return not self.not_private

    @property
    def people(self) -> NanoArray | None:
        """Loss per person group in nano-ε, aligned with `budgets`; the largest where a stored row holds several groups."""
        return None if self.groups is None else self.groups.used[1]

    @property
    def budgets(self) -> PersonBudgets | None:
        """The share of each person group in this release (the largest of a row), with head counts."""
        if self.groups is None:
            return None
        names = tuple(name or "" for name in self.groups.names) if any(self.groups.names) else None
        return PersonBudgets(self.groups.share[1], self.groups.people, names)

    def sentence(self) -> str:
        """The promise in words that a data-protection officer can read.

        >>> print(Guarantee(Nano(100_000_000)).sentence())
        Whoever sees this release can hardly tell whether any one person took part: the odds of any conclusion about
        them change by a factor of at most e^0.1 = 1.11 (ε = 0.1), compared with the same data with one person's record
        absent (or blank).
        """
        if self.not_private:
            return "NOT PRIVATE: " + "; ".join(self.not_private) + ". Do not publish."
        if self.neighbours == "item":
            secret, them = "whether any one item is in the person's history", "it"
        elif self.neighbours == "replacement":  # how many people there are is not hidden, only what they say
            secret, them = "what any one person's record says", "them"
        else:
            secret, them = "whether any one person took part", "them"
        opening = next((words for most, words in WORDS if self.nano <= most), BEYOND)
        text = (
            f"Whoever sees this release {opening} {secret}: the odds of any conclusion about {them} change by a "
            f"factor of at most e^{epsilon_text(self.nano)} = {_factor(self.epsilon)} "
            f"(ε = {epsilon_text(self.nano)}), compared with "
            f"{NEIGHBOURS[self.neighbours]}."
        )
        if self.rows_per_person > 1:
            text += f" A person's whole contribution of up to {self.rows_per_person} rows is protected."
        if self.person is not None:
            text += " " + cap_sentence(self.rows_per_person)
        if self.groups is not None:
            text += " " + self.groups.sentence()
            if self.neighbours == "replacement":
                other = OTHER_BUDGET if ROSTER_IS_PRIVATE in self.assumptions else SAME_BUDGET
                text += " " + other.format(epsilon=epsilon_text(self.nano))
        if self.attributes:
            parts = ", ".join(f"{name} {epsilon_text(v)}" for name, v in self.attributes.items())
            together = epsilon_text(self.nano)
            text += f" Taken one at a time, the attributes lose at most: {parts}; all of them together {together}."
        if self.assumptions:
            text += " This rests on: " + "; ".join(self.assumptions) + "."
        return text

    def to_dict(self, *, most_groups: int = 1000) -> dict[str, Any]:
        """For the certificate.

        More than `most_groups` person groups are merged into that many rows, which show ranges and the number of groups
        (never fewer rows than the sentence lists).
        """
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
        if self.person is not None:
            sentence = cap_sentence(self.rows_per_person)
            out["cap"] = {"person": self.person, "rows_per_person": self.rows_per_person, "sentence": sentence}
        if self.groups is not None:
            out["people"] = self.groups.merged(max(most_groups, FEW)).to_list()
        return out

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Guarantee:
        """The inverse of `to_dict`: what was `stored` is the same promise, in the same words.

        Merged person groups stay merged. What follows from the rest (the sentence, whether it is private) is made anew.
        """
        try:
            if stored["neighbours"] not in NEIGHBOURS:
                raise InputError(f"unknown neighbours {stored['neighbours']!r}; known: {', '.join(NEIGHBOURS)}")
            return cls(
                nano=nano_of(stored["epsilon"]),
                neighbours=stored["neighbours"],
                groups=GroupLosses.from_list(stored["people"]) if "people" in stored else None,
                attributes={str(name): nano_of(loss) for name, loss in stored["attributes"].items()},
                rows_per_person=int(stored["rows_per_person"]),
                person=stored["cap"]["person"] if "cap" in stored else None,
                assumptions=tuple(stored["assumptions"]),
                steps=tuple(Step.from_dict(step) for step in stored["steps"]),
                not_private=tuple(stored["not_private"]),
            )
        except (KeyError, TypeError, AttributeError):
            raise InputError("this is not a guarantee as to_dict writes it: a part is missing or of another kind") from None

    def __str__(self) -> str:
        return self.sentence()


def cap_sentence(most: int) -> str:
    """What a cap of `most` rows per person leaves out, which no interval can know.

    >>> print(cap_sentence(3))
    Of each person at most 3 rows are counted, drawn from those that could be: figures and intervals are for these
    rows, and a count of all rows may be higher.
    """
    rows = "1 row is" if most == 1 else f"{most:,} rows are"
    return (
        f"Of each person at most {rows} counted, drawn from those that could be: figures and intervals are for these rows, "
        "and a count of all rows may be higher."
    )


def _factor(epsilon: Decimal) -> str:
    """e^ε with three digits, rounded up: "at most" must stay true."""
    factor = Context(prec=30, Emax=10**9, Emin=-(10**9)).exp(epsilon)
    return f"{Context(prec=3, rounding=ROUND_UP, Emax=10**9, Emin=-(10**9)).plus(factor):g}"
