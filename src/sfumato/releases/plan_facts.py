"""The public facts of a plan: what its prices come from and what its dataset is registered with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.errors import InputError
from sfumato.ledger import Ask
from sfumato.offers import Facts
from sfumato.people.head_counts import NAME
from sfumato.privacy.source import Source
from sfumato.releases.attribute_charges import check_capped, to_attributes
from sfumato.releases.heads import newest_heads, of_heads, private_facts
from sfumato.releases.mistakes import at
from sfumato.releases.pipeline import Priced, ledger_charge, request_text
from sfumato.releases.plan import Plan
from sfumato.tables.living import LivingRoster

if TYPE_CHECKING:
    from sfumato.privacy.budgets import PersonBudgets
    from sfumato.tables import Roster, Schema


def facts_of(plan: Plan, roster: Roster | None, source: Source) -> tuple[Facts, Priced | None]:
    """Public facts, and the counting of a private roster's heads where something needs it and it has still to be made."""
    schema = plan.schema()
    if roster is None:
        return Facts(schema, rows=plan.rows), None
    if isinstance(roster, LivingRoster) and not roster.private:
        return Facts(schema, roster=roster), None
    if roster.private:
        if any(r.name == NAME for r in plan.releases):
            raise InputError(
                f"a release is called {NAME!r}, as the first one from a private roster is; give it another name"
            )
        counted, _ = newest_heads(schema, roster, plan.ledger, plan.dataset, source)
        waits = counted is None and draws_on_people(plan)
        return private_facts(schema, roster, plan.rows, counted), of_heads(schema, roster) if waits else None
    if roster.reads_table:
        raise InputError(
            "[people] takes budgets from the private table itself; give their head counts under [people.counts], or name a "
            "public roster file as `source`, so that a preview reads nothing private"
        )
    with at("[people]"):
        budgets = roster.head_counts()
    return Facts(schema, budgets=budgets, roster=roster, rows=plan.rows or budgets.people), None


def granted_in(roster: Roster | None, facts: Facts) -> PersonBudgets | None:
    """Whose budgets the dataset is registered with: of a private roster, the menu."""
    return roster.menu() if roster is not None and roster.private else facts.budgets


def capped_in(plan: Plan, schema: Schema, roster: Roster | None) -> tuple[str, ...]:
    """The attributes that have a cap, each of which some release could be charged to."""
    capped = () if plan.attributes is None else plan.attributes.names
    check_capped(capped, schema, roster, plan.releases)
    return capped


def asks_of(plan: Plan, priced: Sequence[Priced], facts: Facts, source: Source, **whose: str | None) -> list[Ask]:
    """What the releases of a plan would ask of its ledger, in their order; `whose` allowance, if an analyst asks."""
    capped = capped_in(plan, facts.schema, facts.roster)
    named = [request_text(p, dataset_name=plan.dataset, source=source) for p in priced]
    costs = [to_attributes(ledger_charge(p), p, capped) for p in priced]
    return [Ask(cost, text, p.request.recipient, **whose) for p, cost, text in zip(priced, costs, named, strict=True)]


def draws_on_people(plan: Plan, only: str | None = None) -> bool:
    """Whether a release that is to be made uses everyone's own budget."""
    return any(r.epsilon is None for r in plan.releases if only in (None, r.name))
