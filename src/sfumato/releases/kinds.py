"""The kinds of release a plan can ask for, and which family answers each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from sfumato.errors import InputError
from sfumato.offers import AUTO, Facts, Offer, Request
from sfumato.registry import Parameter, mechanism, mechanisms, nearest

KindName = Literal[
    "count",
    "sum",
    "mean",
    "variance",
    "proportion",
    "quantile",
    "median",
    "min",
    "max",
    "histogram",
    "table",
    "top",
    "synthesize",
    "model",
    "profile",
]


@dataclass(frozen=True)
class Kind:
    """A question: its name in a plan, what it may say, and the family that offers answers.

    `filtered` says that `where` does nothing but leave rows out: a row that it does not hold for is as good as absent.
    """

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    offers: Callable[[Request, Facts], list[Offer]]
    filtered: bool = False
    also: str = "mechanism"

    def spelt(self, given: Mapping[str, Any], place: str) -> Mapping[str, Any]:
        """The keys of a request, its mechanism under that name where the kind has another word for it (`also`)."""
        if self.also == "mechanism" or self.also not in given:
            return given
        named, other = given[self.also], given.get("mechanism")
        if other is not None and named is not None and other != named:
            raise InputError(f"{place} names {self.also} {named!r} and mechanism {other!r}, which mean the same: keep one")
        if named is not None and not isinstance(named, str):
            raise InputError(f"`{self.also}` of {place} is the name of one, a text, or {AUTO!r}; got {named!r}")
        return {k: v for k, v in given.items() if k != self.also} | {"mechanism": named if other is None else other}

    def check(self, given: Mapping[str, Any], chosen: str, place: str) -> dict[str, Any]:
        """The keys of the kind and of the named mechanism, each of its type; anything else is refused with a hint."""
        known = {p.name: p for p in self.parameters}
        answers = self.name_with(given)
        if chosen != AUTO and any(m.name == chosen for m in mechanisms(answers)):
            known |= {p.name: p for p in mechanism(answers, chosen).parameters}
        for key in given:
            if key not in known:
                raise InputError(f"{place} has an unknown key {key!r}; {self._hint(str(key), list(known), answers)}")
        found = {name: known[name].check(value, place) for name, value in given.items()}
        return {name: value for name, value in found.items() if value is not None}

    def name_with(self, given: Mapping[str, Any]) -> str:
        """Under which name the registry has the mechanisms for it: a figure per group is made by others."""
        return f"{self.name} by" if given.get("by") else self.name

    def _hint(self, key: str, known: list[str], answers: str) -> str:
        owners = [m.name for m in mechanisms(answers) if any(p.name == key for p in m.parameters)]
        if owners:
            return f"it is a parameter of {' and '.join(owners)}: say mechanism = {owners[0]!r} as well"
        return nearest(key, [*COMMON, *([] if self.also == "mechanism" else [self.also]), *known])


COMMON = ("name", "kind", "mechanism", "epsilon", "share", "recipient", "where", "independent")


def _count() -> Kind:
    from sfumato.people.offers import COUNT_PARAMETERS as COUNT
    from sfumato.statistics.by import BY

    return Kind("count", "how many rows satisfy `where`", (*COUNT, BY), _one_or_groups, filtered=True)


def _sum() -> Kind:
    from sfumato.people.offers import MEASURE_PARAMETERS as MEASURE
    from sfumato.statistics.by import BY

    return Kind("sum", "a numeric column added up over the rows", (*MEASURE, BY), _one_or_groups, filtered=True)


def _mean() -> Kind:
    from sfumato.people.offers import MEASURE_PARAMETERS as MEASURE
    from sfumato.statistics.by import BY

    return Kind("mean", "the mean of a numeric column over the rows", (*MEASURE, BY), _one_or_groups, filtered=True)


def _one_or_groups(request: Request, facts: Facts) -> list[Offer]:
    if request.parameters.get("by"):
        from sfumato.statistics.groups_offers import offers as groups

        return groups(request, facts)
    from sfumato.people.offers import offers as people

    return people(request, facts)


def _variance() -> Kind:
    from sfumato.statistics.figure_offers import VARIANCE_PARAMETERS as VARIANCE
    from sfumato.statistics.figure_offers import variance_offers

    return Kind(
        "variance", "the variance and standard deviation of a numeric column", VARIANCE, variance_offers, filtered=True
    )


def _proportion() -> Kind:
    from sfumato.statistics.figure_offers import PROPORTION_PARAMETERS as PROPORTION
    from sfumato.statistics.figure_offers import proportion_offers

    return Kind("proportion", "the share of rows for which `where` holds", PROPORTION, proportion_offers)


def _quantile(name: str, summary: str) -> Kind:
    from sfumato.statistics import quantile_offers as home

    parameters = {"quantile": home.QUANTILE_PARAMETERS, "median": home.MEDIAN_PARAMETERS}.get(name, home.END_PARAMETERS)
    return Kind(name, summary, parameters, home.offers, filtered=True)


def _histogram() -> Kind:
    from sfumato.histograms.offers import PARAMETERS as HISTOGRAM
    from sfumato.histograms.offers import offers as histograms
    from sfumato.people.offers import offers as people

    def offered(request: Request, facts: Facts) -> list[Offer]:
        return (histograms if facts.budgets is None else people)(request, facts)

    return Kind("histogram", "rows per cell of one or more columns", HISTOGRAM, offered, filtered=True)


def _table() -> Kind:
    from sfumato.statistics.crosstab_offers import PARAMETERS as TABLE
    from sfumato.statistics.crosstab_offers import offers as tables

    return Kind("table", "rows per cell of several columns, with margins that add up", TABLE, tables, filtered=True)


def _top() -> Kind:
    from sfumato.statistics.top_offers import PARAMETERS as TOP
    from sfumato.statistics.top_offers import offers as top

    return Kind("top", "the most frequent values of a column", TOP, top, filtered=True)


def _synthesize() -> Kind:
    from sfumato.grids.offers import PARAMETERS as SYNTHESIZE
    from sfumato.grids.offers import offers as grids

    return Kind("synthesize", "a synthetic table for predicting `target`", SYNTHESIZE, grids, filtered=True)


def _model() -> Kind:
    from sfumato.classifiers.offers import PARAMETERS as MODEL
    from sfumato.classifiers.offers import offers as models

    summary = "a classifier that predicts `target` (`estimator` is its mechanism)"
    return Kind("model", summary, MODEL, models, filtered=True, also="estimator")


def _profile() -> Kind:
    from sfumato.statistics.profiles import PARAMETERS as PROFILE
    from sfumato.statistics.profiles import offers as profiles

    return Kind("profile", "totals of the attributes that items have, by a catalogue", PROFILE, profiles, filtered=True)


_MADE_BY: Mapping[str, Callable[[], Kind]] = {
    "count": _count,
    "sum": _sum,
    "mean": _mean,
    "variance": _variance,
    "proportion": _proportion,
    "quantile": lambda: _quantile("quantile", "values with given shares of the rows below them"),
    "median": lambda: _quantile("median", "the value with half of the rows below it"),
    "min": lambda: _quantile("min", "a value with almost no row below it, at a stated risk"),
    "max": lambda: _quantile("max", "a value with almost no row above it, at a stated risk"),
    "histogram": _histogram,
    "table": _table,
    "top": _top,
    "synthesize": _synthesize,
    "model": _model,
    "profile": _profile,
}


class _Kinds(Mapping[str, Kind]):
    """Every kind by its name in a plan, each made when it is asked for: a count need not load the learners."""

    def __init__(self) -> None:
        self._made: dict[str, Kind] = {}

    def __getitem__(self, name: str) -> Kind:
        if name not in self._made:
            self._made[name] = _MADE_BY[name]()
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in _MADE_BY

    def __iter__(self) -> Iterator[str]:
        return iter(_MADE_BY)

    def __len__(self) -> int:
        return len(_MADE_BY)


@cache
def all_kinds() -> Mapping[str, Kind]:
    """Every kind by its name in a plan."""
    return _Kinds()


def kind_of(name: str, place: str) -> Kind:
    """The kind of that name."""
    if name not in all_kinds():
        raise InputError(f"{place} asks for kind {name!r}; {nearest(name, all_kinds())}")
    return all_kinds()[name]
