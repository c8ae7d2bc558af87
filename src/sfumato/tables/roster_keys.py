"""What a roster may be told: its names, tiers, menu and head counts, checked; and the keys of a plan's [people]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sfumato.errors import InputError
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.units import Epsilon, epsilon_text, positive_nano
from sfumato.tables.words import did_you_mean

if TYPE_CHECKING:
    from sfumato.tables.roster import Roster

HEAD_SHARE = Fraction(1, 20)  # ρ: of everyone's budget, for the head counts of a private roster


def from_mapping(cls: type[Roster], plain: Mapping[str, Any]) -> Roster:
    """See `Roster.from_mapping`."""
    if plain.get("living"):
        from sfumato.tables.living import LivingRoster

        return LivingRoster.from_keys(plain)
    plain = {name: value for name, value in plain.items() if name != "living"}
    known = (
        "column",
        "tiers",
        "counts",
        "source",
        "table",
        "person",
        "epsilon",
        "tier",
        "roster",
        "head_share",
        "menu",
        "csv",
    )
    for key in plain:
        if key not in known:
            raise InputError(f"unknown key {key!r}; {did_you_mean(key, known)}")
    plain = dict(plain)
    kind = plain.pop("roster", "public")
    if kind not in ("public", "private"):
        raise InputError(f"roster is 'public' or 'private', got {kind!r}")
    if kind == "private":
        plain["private"] = True
    elif unused := {"head_share", "menu"} & set(plain):
        raise InputError(f"the key {min(unused)!r} needs roster = 'private'")
    if "source" in plain:
        if unused := {"column", *(() if kind == "private" else ("counts",))} & set(plain):
            raise InputError(f"a roster table has no key {min(unused)!r}")
        if "person" not in plain:
            raise InputError("a roster table needs person = 'the column that names the person'")
        return cls.table(**plain)
    if "column" not in plain:
        raise InputError("give column = '...' of the table, or source = 'roster.csv' with person = '...'")
    if unused := {"table", "person", "epsilon", "tier", "csv"} & set(plain):
        raise InputError(f"the key {min(unused)!r} needs source = 'roster.csv'")
    about = {key: plain[key] for key in ("private", "head_share") if key in plain}
    if "tiers" in plain:
        if "menu" in plain:
            raise InputError("tiers are a menu already; leave out the key 'menu'")
        return cls.tiers(plain["tiers"], column=plain["column"], counts=plain.get("counts"), **about)
    if "counts" in plain:
        raise InputError("counts needs tiers = {name = epsilon}")
    return cls.column(plain["column"], menu=plain.get("menu"), **about)


def name_of(column: Any, what: str) -> str:
    if not isinstance(column, str) or not column:
        raise InputError(f"{what} must name a column, got {column!r}")
    return column


def named_tiers(tiers: Mapping[str, Epsilon]) -> tuple[tuple[str, int], ...]:
    if not isinstance(tiers, Mapping) or not tiers:
        raise InputError("name at least one tier, for example tiers={'open': 1.0}")
    named = [(str(name), positive_nano(e, f"epsilon of tier {name!r}")) for name, e in tiers.items()]
    return tuple(sorted(named, key=lambda item: (item[1], item[0])))


def menu_of(levels: Sequence[Epsilon] | None) -> dict[str, Any]:
    """Budgets in ε as tiers that are called by their ε."""
    if levels is None:
        return {}
    if isinstance(levels, str) or not isinstance(levels, Sequence) or not levels:
        raise InputError("a menu is a list of budgets in ε, for example menu=[0.01, 0.1, 1]")
    nano = sorted({positive_nano(level, "a budget of the menu") for level in levels})
    return {"tiers_nano": tuple((f"ε {epsilon_text(n)}", n) for n in nano), "reaches": tuple(nano)}


def private_of(private: bool, head_share: Epsilon | None) -> dict[str, Any]:
    try:
        share = HEAD_SHARE if head_share is None else Fraction(str(head_share))
    except ValueError:
        raise InputError(f"head_share is a number between 0 and 1, got {head_share!r}") from None
    return {"private": bool(private), "head_share": share}


def people_of(tiers: Mapping[str, Epsilon], counts: Mapping[str, int] | None) -> PersonBudgets | None:
    if counts is None:
        return None
    if not isinstance(counts, Mapping):
        raise InputError(f"counts gives the head count of each tier, for example {{'open': 90}}; got {counts!r}")
    if unknown := [name for name in counts if name not in tiers]:
        raise InputError(f"counts names a tier {unknown[0]!r} without a budget; {did_you_mean(unknown[0], tiers)}")
    for name, heads in counts.items():
        if isinstance(heads, bool) or not isinstance(heads, int) or heads < 0:
            raise InputError(f"counts of tier {name!r} is a public head count, a whole number; got {heads!r}")
    return PersonBudgets.from_tiers({name: (e, counts.get(name, 0)) for name, e in tiers.items()})
