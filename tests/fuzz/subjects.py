"""What is fuzzed: every mechanism of the registry, every estimator, every publisher and the kinds of an opened table."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

import sfumato as sf
from sfumato import classifiers, grids
from sfumato.histograms.bins import Axis, Bins
from sfumato.people import ArrayReader, PairReader, Question, plan_offer
from sfumato.people.histogram import plan_histogram
from sfumato.people.mechanisms.adaptive_cells import plan_adaptive_histogram
from sfumato.people.pairs import Pair
from sfumato.privacy import NANO, Exact, Meter
from sfumato.privacy.terms import Terms
from sfumato.registry import Mechanism, mechanism, mechanisms
from sfumato.statistics.group_question import GroupQuestion
from sfumato.statistics.margin_fit import summed
from sfumato.statistics.shares import Plan, moments_of, plan_parts
from sfumato.statistics.variance import VariancePlan
from sfumato.testing import Tape

from . import tables
from .tables import Asked, Counted, Granted

TWO_CLASSES = {"OutputPerturbation", "FunctionalMechanism", "PrivLocal", "PrivGene"}
ONE_ROW_EACH = {"PrivateLogisticRegression", "PrivateSVM"}
Subject = tuple[Callable[[Any, Tape], Any], Callable[[np.random.Generator], Any]]


def estimated(name: str, asked: Asked, tape: Tape, **how: Any) -> Any:
    """A fitted estimator, without the source that it was given."""
    model = getattr(classifiers, name)(epsilon=asked.epsilon, schema=asked.schema, target="ill", source=tape, **how)
    own = {} if asked.budgets is None else {"budgets": asked.budgets}
    model.fit(asked.frame.drop(columns="ill"), asked.frame["ill"].to_numpy(), **own)
    for part in (model, getattr(model, "model_", None)):
        if hasattr(part, "source"):
            part.source = None
    return _Stored(model)


def searched(asked: Asked, tape: Tape) -> Any:
    """The best of two candidates, within one ε."""
    model = classifiers.PrivateNaiveBayes(schema=asked.schema, target="ill")
    search = classifiers.PrivateSearch(estimator=model, grid={"rows": [10, 2000]}, epsilon=asked.epsilon, source=tape)
    search.fit(asked.frame.drop(columns="ill"), asked.frame["ill"].to_numpy())
    search.source = search.best_estimator_.source = None
    return _Stored(search)


def published(name: str, asked: Asked, tape: Tape, **how: Any) -> Any:
    """A fitted publisher."""
    made = getattr(grids, name)(epsilon=asked.epsilon, target="ill", **how).fit(
        asked.frame, schema=asked.schema, source=tape
    )
    return _Stored(made)


def histogram(entry: Mechanism, table: Counted, tape: Tape) -> Any:
    """The counts, and everything said about them."""
    meter = Meter(rows_per_person=table.rows_per_person, source=tape)
    exact = Exact(table.counts, rows_per_person=table.rows_per_person)
    return _Stored(entry.make(exact, rates=np.full(table.counts.size, NANO // 2), meter=meter))


def answered(kind: str, entry: Mechanism, table: Granted, tape: Tape) -> Any:
    """A count, sum or mean over people with budgets of their own."""
    rows = table.rows_per_person
    ones = ArrayReader.of(table.groups, np.ones_like(table.values), group_count=table.budgets.groups)
    values = ArrayReader.of(table.groups, table.values, high=4, group_count=table.budgets.groups)
    reader: Any = ones if kind == "count" else values
    if kind == "mean":
        offer = Pair(Terms(rows_per_person=rows, budgets=table.budgets), 0.0, 4.0, 4).offer(entry.name)
        centred = ArrayReader.of(table.groups, 2 * table.values - 4, low=-4, high=4, group_count=table.budgets.groups)
        reader = PairReader(centred=centred, ones=ones)
    else:
        high = 1 if kind == "count" else 4
        offer = plan_offer(Question(Terms(rows_per_person=rows, budgets=table.budgets), high=high, kind=kind), entry.name)
    meter = Meter(limit=offer.charge, budgets=table.budgets, rows_per_person=rows, source=tape)
    return _Stored(offer.run(reader, meter))


def personal_histogram(make: Callable[..., Any], table: Granted, tape: Tape) -> Any:
    """Everybody at their own budget, bin by bin."""
    plan = make(Terms(rows_per_person=table.rows_per_person, budgets=table.budgets), Bins.numbered(5))
    counts = np.zeros((table.budgets.groups, 5), dtype=np.int64)
    np.add.at(counts, (table.groups, table.values), 1)
    exact = Exact(counts, rows_per_person=table.rows_per_person)
    meter = Meter(limit=plan.charge, budgets=table.budgets, rows_per_person=table.rows_per_person, source=tape)
    return _Stored(plan.run(lambda weights: exact.map(lambda c: weights @ c), meter))


def grouped(kind: str, entry: Mechanism, table: Granted, tape: Tape) -> Any:
    """A figure per group of two columns, or a variance, everybody at their own budget."""
    terms = Terms(rows_per_person=table.rows_per_person, budgets=table.budgets)
    by = Bins((Axis.categories("a", ["x", "y"]), Axis.categories("b", ["u", "v"])))
    cells = np.stack([table.values % 2, table.values // 3], axis=1)
    base = 0 if kind == "sum" else None
    question = GroupQuestion(kind, by, None if kind == "count" else "v", 0.0, 1.0, 4, base=base)

    def measure(depth: int, share: Fraction) -> Plan:
        return plan_parts(terms, Bins(by.axes[:depth]) if depth else None, question.parts, nano=None, share=share)

    plan = entry.make(question, measure)
    exact = Exact(moments_of(table.groups, cells, table.values), rows_per_person=table.rows_per_person)
    return _Stored(plan.run(exact, Meter.under(terms.up_to(plan.charge), source=tape)))


def spread(table: Granted, tape: Tape) -> Any:
    """A variance, everybody at their own budget."""
    terms = Terms(rows_per_person=table.rows_per_person, budgets=table.budgets)
    plan = VariancePlan("adaptive", plan_parts(terms, None, 3, nano=None), "v", 0.0, 1.0, 4, 0.0, None)
    none = np.zeros((table.values.size, 0), dtype=np.int64)
    exact = Exact(moments_of(table.groups, none, table.values, powers=2), rows_per_person=table.rows_per_person)
    return _Stored(plan.run(exact, Meter.under(terms.up_to(plan.charge), source=tape)))


def personal_table(entry: Mechanism, table: Granted, tape: Tape) -> Any:
    """Everybody at their own budget, margin by margin."""
    bins = Bins((*Bins.numbered(5).axes, *Bins.numbered(2, name="odd").axes))
    plan = entry.make(Terms(rows_per_person=table.rows_per_person, budgets=table.budgets), bins, ((0,), (1,), (0, 1)))
    counts = np.zeros((table.budgets.groups, 5, 2), dtype=np.int64)
    np.add.at(counts, (table.groups, table.values, table.values % 2), 1)
    exact = Exact(counts, rows_per_person=table.rows_per_person)
    meter = Meter(limit=plan.charge, budgets=table.budgets, rows_per_person=table.rows_per_person, source=tape)

    def read(weights: np.ndarray, margin: tuple[int, ...]) -> Exact[Any]:
        return exact.map(lambda c: summed(np.tensordot(weights, c, axes=1), (0, 1), margin).astype(np.int64))

    return _Stored(plan.run(read, meter))


def asked_of_table(kind: str, asked: Asked, tape: Tape, estimator: str | None = None) -> Any:
    """A question to an opened table."""
    table = sf.open(asked.frame, schema=asked.schema, epsilon=2, rows=60, noise=tape)
    column = next(iter(asked.schema))
    match kind:
        case "count":
            made = table.count(where="ill = 'yes'", epsilon=1)
        case "histogram":
            made = table.histogram(column, epsilon=1)
        case "mean":
            made = table.mean("age", epsilon=1)
        case "sum":
            made = table.sum("age", epsilon=1)
        case "table":
            made = table.table(*list(asked.schema)[:2], epsilon=1)
        case "top":
            made = table.top(column, "ill", k=2, epsilon=1, counts=True)
        case "quantile":
            made = table.quantile("age", [0.25, 0.5, 0.75], epsilon=1)
        case "model":
            made = table.model(target="ill", estimator=estimator, epsilon=1)
        case _:
            made = table.synthesize(target="ill", epsilon=1)
    made.receipt.certificate["created"] = ""  # the minute of the second run may be the next one
    return _Stored(made)


class _Stored:
    """Something published: two of them are the same if what is stored of them is."""

    def __init__(self, thing: Any) -> None:
        self.stored = pickle.dumps(thing)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Stored) and self.stored == other.stored

    __hash__ = None  # type: ignore[assignment]


def _subjects() -> dict[str, Subject]:
    found: dict[str, Subject] = {}
    for name in classifiers.__all__:
        if name not in ("NoiseFree", "PrivateSearch"):
            made = tables.two_classes if name in TWO_CLASSES else tables.plain if name == "PrivateForest" else tables.tables
            found[name] = (partial(estimated, name), tables.one_row_each if name in ONE_ROW_EACH else made)
            if getattr(classifiers, name).takes_budgets and name not in {*ONE_ROW_EACH, "PrivateForest"}:
                found[f"{name}, own budgets"] = (partial(estimated, name), tables.rostered)
    found["PrivateSearch"] = (searched, tables.tables)
    found["PrivateForest, three trees"] = (partial(estimated, "PrivateForest", trees=3, rows=5000), tables.plain)
    for name in ("PrivPfC", "DiffGen", "PPH", "PrivBayes", "PrivMarginals", "UniformGrid"):
        found[name] = (partial(published, name), tables.tables)
    found["PrivBayes, bits"] = (partial(published, "PrivBayes", encoding="gray"), tables.tables)
    found["PrivPfC, two grids"] = (partial(published, "PrivPfC", grids=2), tables.tables)
    for entry in mechanisms("histogram"):
        if "personal budgets" not in entry.needs:
            found[f"histogram {entry.name}"] = (partial(histogram, entry), tables.counted)
            if entry.name.startswith("auto"):
                found[f"histogram {entry.name}, many bins"] = (partial(histogram, entry), tables.many_bins)
    for kind in ("count", "sum", "mean"):
        for entry in mechanisms(kind):
            if "one epsilon" not in entry.needs and (kind, entry.name) != ("mean", "exponential"):
                once = entry.name == "sampling"
                found[f"{kind} {entry.name}"] = (
                    partial(answered, kind, entry),
                    tables.granted_once if once else tables.granted,
                )
    found["personal histogram"] = (partial(personal_histogram, plan_histogram), tables.granted)
    found["adaptive personal histogram"] = (partial(personal_histogram, plan_adaptive_histogram), tables.granted)
    for kind, name in (("count", "adding-up"), ("sum", "separate"), ("mean", "shrunk")):
        entry = mechanism(f"{kind} by", name)
        found[f"{kind} by groups, {name}"] = (partial(grouped, kind, entry), tables.granted)
    found["variance"] = (spread, tables.granted)
    for entry in mechanisms("table"):
        if "personal budgets" in entry.needs:
            found[f"personal table {entry.name}"] = (partial(personal_table, entry), tables.granted)
    for kind in ("count", "histogram", "quantile", "table", "top", "synthesize"):
        found[f"table.{kind}"] = (partial(asked_of_table, kind), tables.tables)
    for name in ("naive-bayes", "tree", "svm", "privpfc", "additive"):
        found[f"table.model {name}"] = (partial(asked_of_table, "model", estimator=name), tables.tables)
    return found


SUBJECTS = _subjects()
