"""What a released model would cost, from public facts alone, and how it is trained where the table lives.

**Guarantee of a release.** The engine counts the distinct rows that satisfy the condition, of every person as many as the
schema's unit allows; they become coded records inside an `Exact`, by the public schema, each by itself. So a person adds or
takes away their own records and changes nobody else's, which is what every estimator's proof starts from. The Meter is that
of the release: held to the terms that were priced, it adds up what the training asks. What is published is the fitted model,
a function of the Meter's answers and the schema.

Everything that public facts rule out (a budget too small for a tree of this depth) is refused before anything is charged:
the model is first trained on an empty table, which is nobody's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.offers import AUTO, Facts, Offer, Request
from sfumato.privacy.charge import Charge
from sfumato.privacy.exact import Exact
from sfumato.privacy.meter import Meter
from sfumato.privacy.source import Seeded
from sfumato.privacy.terms import Terms
from sfumato.privacy.units import Nano, as_epsilon, positive_nano
from sfumato.records.coding import Coding
from sfumato.records.reading import read_members, read_records, read_rows
from sfumato.records.records import Records
from sfumato.registry import Mechanism, Parameter, ranked
from sfumato.registry import mechanism as registered
from sfumato.results import Result
from sfumato.tables.dataset import Dataset
from sfumato.tables.schema import Schema

KIND = "model"
MOST_LEAVES = 500_000  # cells of all columns one after the other
PARAMETERS = (
    Parameter("target", "text", "the column to predict", required=True),
    Parameter("attributes", "texts", "the predictors; every other column if left out"),
)
PERSONAL_WARNING = (
    "people count in proportion to what they granted: if budgets go together with the columns, the model leans towards "
    "those who granted more"
)


def offers(request: Request, facts: Facts) -> list[Offer]:
    """The ways to train a model, the best by the measured comparison first.

    Parameters
    ----------
    request : Request
        Of kind "model".
    facts : Facts
        What is public about the table.

    Returns
    -------
    list of Offer
        Each runs on a `Dataset`. How well a model will do is not known beforehand.
    """
    place = f"release {request.name!r}"
    given = {p.name: p.check(request.parameters.get(p.name), place) for p in PARAMETERS}
    facts.check_where(request.where)
    task = Task.of(facts.schema, given["target"], given["attributes"])
    terms = _priced(request, facts)
    rows = facts.rows if facts.budgets is None and request.where is None else None
    found: list[Offer] = []
    for entry in ranked(KIND, "classification"):
        named = entry.name == request.mechanism
        training = Training(task, entry, entry.check(request.parameters, place) if named else {}, terms, rows)
        if terms.budgets is not None and not training.takes_budgets:
            if named:
                raise InputError(_no_budgets(entry, place))
            continue
        if named or (request.mechanism == AUTO and not found):
            training.rehearse()
        found.append(Offer(entry.name, terms, None, entry.summary, training.runner(request.where)))
    if request.mechanism != AUTO:
        registered(KIND, request.mechanism)  # refuses a name that is not known, with the nearest one
    return found


def _priced(request: Request, facts: Facts) -> Terms:
    if facts.budgets is None:
        return facts.terms.up_to(Charge(positive_nano(request.need_epsilon())))
    levels = np.array(facts.budgets.levels)
    return facts.terms.up_to(Charge(Nano(int(levels[-1])), levels))


def _no_budgets(entry: Mechanism, place: str) -> str:
    able = [m.name for m in ranked(KIND, "classification") if "one epsilon" not in m.needs]
    return f"{place}: {entry.name} has one ε for all, give `epsilon`; with personal budgets take {' or '.join(able)}"


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be learnt: the public schema of the predictors and the target, and how rows are coded by it.

    Attributes
    ----------
    schema : Schema
        The predictors, then the target.
    target : str
        The column to predict.
    coding : Coding
        Columns and classes.
    """

    schema: Schema
    target: str
    coding: Coding

    @classmethod
    def of(cls, schema: Schema, target: str, attributes: list[str] | None) -> Task:
        """The task of predicting one column of a schema from the others, or from those named."""
        domain = schema[target]
        if domain.classes() is None:
            raise InputError(f"the target {target!r} must be categorical: its values are the classes")
        names = [c for c in schema.names if c != target] if attributes is None else list(attributes)
        if target in names:
            raise InputError(f"{target!r} is the target, so it cannot be among the `attributes`")
        if not names:
            raise InputError(f"there is nothing to predict {target!r} from: the schema has no other column")
        if len(set(names)) < len(names):
            raise InputError("`attributes` names a column twice")
        cells = sum(schema[name].size for name in (*names, target))
        if cells > MOST_LEAVES:
            raise InputError(
                f"the columns have {cells:,} cells one after the other; a model takes at most {MOST_LEAVES:,}: use coarser "
                "bins, or name fewer `attributes`"
            )
        small = schema.select([*names, target])
        return cls(small, target, Coding.of(small, target=target))


@dataclass(frozen=True, eq=False)
class Training:
    """One estimator for a task: made from public facts, run once it was paid for."""

    task: Task
    entry: Mechanism
    parameters: Mapping[str, Any]
    terms: Terms
    rows: int | None

    @property
    def takes_budgets(self) -> bool:
        """Whether people may have an ε of their own."""
        return "one epsilon" not in self.entry.needs

    def estimator(self) -> Any:
        """The estimator, not fitted yet."""
        assert self.terms.limit is not None
        made: Any = self.entry.make(
            epsilon=as_epsilon(self.terms.limit.total), schema=self.task.schema, target=self.task.target, **self.parameters
        )
        if self.rows is not None and "rows" in made.get_params(deep=False):
            made.set_params(rows=self.rows)
        return made

    def rehearse(self) -> None:
        """Train on a table without rows, and write that model down: what is ruled out is refused here, and costs nothing."""
        coding = self.task.coding
        leaves = np.empty((0, len(coding.attributes)), dtype=np.int32)
        nobody = Records(coding.taxonomies, leaves, np.empty(0, dtype=np.int64), coding.class_labels)
        rows: Any = nobody if self.terms.budgets is None else (nobody, np.empty(0, dtype=np.int64))
        meter = Meter.under(self.terms, source=Seeded(0))
        exact: Exact[Any] = Exact(rows, rows_per_person=self.terms.rows_per_person)
        self.estimator().learn(coding, exact, meter, budgets=self.terms.budgets).to_portable()

    def runner(self, where: str | None) -> Callable[[Dataset, Meter], Result]:
        """What the offer runs."""

        def run(dataset: Dataset, meter: Meter) -> Result:
            from sfumato.classifiers.released import Model

            return Model.of(self.train(dataset, meter, where), self.entry.name, warnings=self._warnings())

        return run

    def train(self, dataset: Dataset, meter: Meter, where: str | None) -> Any:
        """The fitted estimator, from the engine that holds the table."""
        coding, target = self.task.coding, self.task.target
        made, people = self.estimator(), meter.terms.budgets
        records: Exact[Any]
        if people is None:
            read = read_records if made.takes_counts else read_rows
            records = read(dataset, coding.attributes, target, where=where)
        else:
            records = read_members(dataset, coding.attributes, target, people, where=where)
        return made.learn(coding, records, meter, budgets=people)

    def _warnings(self) -> tuple[str, ...]:
        uneven = self.terms.budgets is not None and self.parameters.get("tiers") != "in proportion"
        return (PERSONAL_WARNING,) if uneven else ()
