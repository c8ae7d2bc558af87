"""What a release costs each attribute: nothing where it does not read it, else what a changed value can cost.

*What is promised.* The neighbour of an attribute is the same table in which one person's values of that one column are
others; all their other values, and everybody else's, stay. A cap on an attribute bounds the loss against this neighbour,
added up over all releases.

*Rule.* A release of price ε (what the person who loses most loses) costs a column

- nothing, if it is not shown: not asked for, not grouped by, in no condition, and budgets are not read from it;
- ε, if the price holds against replacement: other values of one column are a replaced record;
- ε, if the column only stands in a `where` that leaves rows out, and either a row is a person or rows are only counted;
- 2 ε otherwise, where the price is that of absence.

*Why.* What is not read cannot change the answer: the dataset that a release runs on opens the columns shown and no others
(`Dataset.limited_to`), and which R of a person's rows a call uses is drawn at random among those that can count, whatever
else is in them. Where a row is a person, a `where` leaves it out or not: other values take one row out or put one in, which
costs ε. Where a person has several rows, other values may let R rows go and R *other* ones come (`tables.capping`), and a
histogram over another column shows both. In a plain count all rows are alike: from one number of rows up to R to another it
is at most R rows more or less, which costs ε. In all other cases let the person first leave, which costs ε, and come back
with the other values, which costs ε again: 2 ε, whatever the mechanism. A histogram over the column gets there, since two
cells change. Budgets that stand in the table itself belong to a column that is read:
who leaves and comes back with another budget costs at most the largest of them twice. Losses against one neighbour add up
over releases, also if later ones are chosen by earlier answers.

Attributes of a catalogue (kind "profile") are priced by their release itself; see `sfumato.attributes.offers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sfumato.errors import InputError, SfumatoError
from sfumato.privacy.charge import Charge
from sfumato.privacy.units import Nano, epsilon_text
from sfumato.registry import Parameter, mechanism, mechanisms, nearest
from sfumato.releases.kinds import all_kinds
from sfumato.tables.predicate_tree import columns_of

if TYPE_CHECKING:
    from sfumato.offers import Facts, Request
    from sfumato.releases.pipeline import Priced
    from sfumato.tables import Roster, Schema


def columns_shown(request: Request, facts: Facts) -> dict[str, bool]:
    """The columns that a release reads, in the order of the schema; True where it only leaves rows out by them.

    No key has to be known here: whatever text a request holds that is the name of a column, or reads as a condition, counts.
    """
    schema = facts.schema
    found = set(_named(dict(request.parameters), schema))
    if any(p.all_columns and request.parameters.get(p.name) is None for p in _parameters(request)):
        found |= set(schema.names)
    roster = facts.roster
    if roster is not None and roster.in_table:
        found.add(roster.budget)
    kind = all_kinds().get(request.kind)
    filtered = set(columns_of(schema.condition(request.where)))
    only_filters = filtered - found if kind is not None and kind.filtered else set()
    read = found | filtered
    beside = sorted(read - set(schema.names))  # a budget column that the schema does not list
    return {name: name in only_filters for name in (*schema.names, *beside) if name in read}


def attribute_charges(priced: Priced) -> dict[str, Nano]:
    """What each attribute that a release shows is charged, in nano-ε: columns, and the attributes of a catalogue."""
    total, replaced = priced.chosen.charge.total, priced.chosen.terms.neighbours == "replacement"
    one_for_another = priced.facts.schema.unit.person is not None and not _only_counts(priced.request)
    charged = {
        name: Nano(total if replaced or (only_filters and not one_for_another) else 2 * total)
        for name, only_filters in columns_shown(priced.request, priced.facts).items()
    }
    return charged | dict(priced.chosen.charge.attributes)


def _only_counts(request: Request) -> bool:
    """Whether all rows that count are alike in what is made of them."""
    return request.kind == "count" and not request.parameters.get("by")


def to_attributes(charge: Charge, priced: Priced, capped: Iterable[str]) -> Charge:
    """The `charge` of a release with what each attribute that has a cap pays; those that it does not show pay nothing."""
    each = attribute_charges(priced)
    return replace(charge, attributes={name: each.get(name, Nano(0)) for name in capped})


def in_words(priced: Priced) -> str:
    """What a release costs each attribute, for whoever reads a preview; empty if it shows none."""
    return ", ".join(f"{name} {epsilon_text(nano)}" for name, nano in attribute_charges(priced).items())


def check_capped(capped: Iterable[str], schema: Schema, roster: Roster | None, requests: Iterable[Request]) -> None:
    """Refuse a cap on something that no release can be charged to, and one on the column that names the person."""
    known = [*schema.names]
    if roster is not None and roster.in_table:
        known.append(roster.budget)
    for request in requests:
        known += getattr(request.parameters.get("catalogue"), "attributes", ())
    for name in capped:
        if name == schema.unit.person:
            raise InputError(
                f"[ledger.attributes] names {name!r}, which says whose row it is: what protects a person as a whole is "
                "[ledger] epsilon and [people]"
            )
        if name not in known:
            raise InputError(f"[ledger.attributes] names {name!r}, which no release can show; {nearest(name, known)}")


def _parameters(request: Request) -> Iterator[Parameter]:
    kind = all_kinds().get(request.kind)
    if kind is not None:
        yield from kind.parameters
        answers = kind.name_with(request.parameters)
        if any(m.name == request.mechanism for m in mechanisms(answers)):
            yield from mechanism(answers, request.mechanism).parameters


def _named(value: Any, schema: Schema) -> Iterator[str]:
    """Every column that is named somewhere in `value`, or stands in a condition there."""
    if isinstance(value, str):
        if value in schema.names:
            yield value
        try:
            yield from columns_of(schema.condition(value))
        except (SfumatoError, RecursionError):  # no condition, then: a purpose, a name, a sentence
            return
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _named(key, schema)
            yield from _named(inner, schema)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from _named(inner, schema)
