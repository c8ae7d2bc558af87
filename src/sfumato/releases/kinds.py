"""The kinds of release a plan can ask for, and which family answers each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from sfumato.errors import InputError
from sfumato.offers import AUTO, Facts, Offer, Request
from sfumato.registry import Parameter, mechanism, mechanisms, nearest

KindName = Literal["count", "sum", "mean", "histogram", "synthesize", "model"]


@dataclass(frozen=True)
class Kind:
    """A question: its name in a plan, what it may say, and the family that offers answers."""

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    offers: Callable[[Request, Facts], list[Offer]]
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
        if chosen != AUTO and any(m.name == chosen for m in mechanisms(self.name)):
            known |= {p.name: p for p in mechanism(self.name, chosen).parameters}
        for key in given:
            if key not in known:
                raise InputError(f"{place} has an unknown key {key!r}; {self._hint(str(key), list(known))}")
        found = {name: known[name].check(value, place) for name, value in given.items()}
        return {name: value for name, value in found.items() if value is not None}

    def _hint(self, key: str, known: list[str]) -> str:
        owners = [m.name for m in mechanisms(self.name) if any(p.name == key for p in m.parameters)]
        if owners:
            return f"it is a parameter of {' and '.join(owners)}: say mechanism = {owners[0]!r} as well"
        return nearest(key, [*COMMON, *([] if self.also == "mechanism" else [self.also]), *known])


COMMON = ("name", "kind", "mechanism", "epsilon", "share", "recipient", "where", "independent")


@cache
def all_kinds() -> Mapping[str, Kind]:
    """Every kind by its name in a plan."""
    from sfumato.classifiers.offers import PARAMETERS as MODEL
    from sfumato.classifiers.offers import offers as models
    from sfumato.grids.offers import PARAMETERS as SYNTHESIZE
    from sfumato.grids.offers import offers as grids
    from sfumato.histograms.offers import PARAMETERS as HISTOGRAM
    from sfumato.histograms.offers import offers as histograms
    from sfumato.people.offers import COUNT_PARAMETERS as COUNT
    from sfumato.people.offers import MEASURE_PARAMETERS as MEASURE
    from sfumato.people.offers import offers as people

    def histogram(request: Request, facts: Facts) -> list[Offer]:
        return (histograms if facts.budgets is None else people)(request, facts)

    found = (
        Kind("count", "how many rows satisfy `where`", COUNT, people),
        Kind("sum", "a numeric column added up over the rows", MEASURE, people),
        Kind("mean", "the mean of a numeric column over the rows", MEASURE, people),
        Kind("histogram", "rows per cell of one or more columns", HISTOGRAM, histogram),
        Kind("synthesize", "a synthetic table for predicting `target`", SYNTHESIZE, grids),
        Kind(
            "model",
            "a classifier that predicts `target`, by a mechanism also named as `estimator`",
            MODEL,
            models,
            "estimator",
        ),
    )
    return {kind.name: kind for kind in found}


def kind_of(name: str, place: str) -> Kind:
    """The kind of that name."""
    if name not in all_kinds():
        raise InputError(f"{place} asks for kind {name!r}; {nearest(name, all_kinds())}")
    return all_kinds()[name]
