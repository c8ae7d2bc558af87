"""The people of a plan with a living roster: their ledger, their choices, and the plan priced for them as they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import BudgetError, InputError
from sfumato.ledger import Ask, Foreseen, Ledger, Life, Standing, datasets_at, foresee
from sfumato.offers import Facts, Request
from sfumato.privacy.charge import Charge
from sfumato.privacy.source import Source
from sfumato.privacy.units import as_epsilon
from sfumato.releases.attribute_charges import to_attributes
from sfumato.releases.heads import charged_to_people, newest_heads, of_heads, seen_beforehand
from sfumato.releases.living import if_all_could_pay
from sfumato.releases.mistakes import at_release
from sfumato.releases.pipeline import (
    HEAD_COUNTS,
    Priced,
    default_shares,
    living_text,
    price,
    request_text,
)
from sfumato.releases.plan import Plan, read_plan
from sfumato.releases.plan_facts import capped_in
from sfumato.tables.addresses import without_secrets
from sfumato.tables.living import LivingRoster

if TYPE_CHECKING:
    from sfumato.privacy.budgets import PersonBudgets
    from sfumato.tables import Roster


def people(plan: Plan | str | Path, *, create: bool = True) -> Life:
    """The people of a plan with a living roster: their choices, epochs and receipts.

    Opens the ledger, and registers the dataset in it if it is new there.

    Parameters
    ----------
    plan : Plan or path
        What `load` read, or the file.
    create : bool
        Whether a dataset that the ledger does not know is registered, in a new ledger if there is none, or is an error.

    Returns
    -------
    Life
        With `join`, `change`, `withdraw`, `bring`, `epoch`, `standing` and `receipt`.
    """
    loaded = plan if isinstance(plan, Plan) else read_plan(plan)
    if not isinstance(loaded.roster(), LivingRoster):
        raise InputError(
            "the people of this plan do not change: say `living = true` under [people], with its tiers, to let them join, "
            "change their grant and withdraw"
        )
    if not create and not known(loaded):
        raise InputError(
            f"nobody has joined {loaded.dataset!r} yet: the ledger {without_secrets(loaded.ledger)} does not know it. Check "
            "the plan's [ledger] location, or bring the people: `sfumato people PLAN import roster.csv`"
        )
    return ledger_of(loaded, None).people(loaded.dataset)


def known(plan: Plan) -> bool:
    """Whether the plan's ledger knows its dataset; it is only looked at."""
    return plan.dataset in datasets_at(plan.ledger)


def bind(plan: Plan) -> None:
    """Bring into force what people have lowered since: before anything is priced. Nothing where nobody is known yet."""
    if known(plan):
        people(plan).bind()


def only_this(plan: Plan, name: str) -> Plan:
    """The plan with one of its releases, at the share that it has among them."""
    found = tuple(r for r in default_shares(plan.releases, True) if r.name == name)
    return replace(plan, releases=found)


def ledger_of(plan: Plan, budgets: PersonBudgets | None) -> Ledger:
    """The plan's ledger, with its dataset registered."""
    caps: dict[str, Any] = {"attributes": plan.attributes, "recipients": plan.recipients}
    return opened(plan.ledger, plan.dataset, plan.roster(), epsilon=plan.epsilon, people=budgets, **caps)


def opened(location: str | Path, dataset: str, roster: Roster | None, **caps: Any) -> Ledger:
    """The ledger at `location`, with `dataset` registered under its caps; of a living roster the menu is one of them."""
    ledger = Ledger.open(location, key=roster.key_file if isinstance(roster, LivingRoster) else None)
    registered(ledger, dataset, roster, **caps)
    return ledger


def registered(ledger: Ledger, dataset: str, roster: Roster | None, **caps: Any) -> None:
    """Register `dataset` in an open `ledger` under its caps; of a living roster the menu is one of them."""
    if not isinstance(roster, LivingRoster):
        ledger.register(dataset, **caps, private=roster is not None and roster.private)
        return
    per_period = {name: as_epsilon(nano) for name, nano in roster.per_period} or None
    menu = {**caps, "people": roster.menu(), "living": True, "period": roster.period, "per_period": per_period}
    ledger.register(dataset, **menu, private=roster.private)


def person_column(plan: Plan, roster: LivingRoster) -> str:
    """The column that names people in a file to import: as [people] says, or as in the table."""
    named = roster.person or plan.schema().unit.person
    if named is None:
        raise InputError("say which column names people: `person` under [people] in the plan, or [unit] in the schema")
    return named


def folder_of(plan: Plan, priced: Priced) -> Path:
    """Where a release is written; with people who change, each epoch has a folder of its own."""
    if priced.request.kind == HEAD_COUNTS:
        times = priced.request.parameters.get("count", 1)
        return plan.folder / (priced.request.name + (f" {times}" if times > 1 else ""))
    if priced.part is None:
        return plan.folder / priced.request.name
    return plan.folder / f"epoch-{priced.part.standing.epoch}" / priced.request.name


def preview_living(
    plan: Plan, facts: Facts, requests: Sequence[Request], source: Source, counting: Priced | None, **whose: str | None
) -> tuple[list[Priced], tuple[str, ...]]:
    """The releases priced one after the other, each for people as the one before would leave them. Nothing is written.

    One that nobody can pay for is refused by itself: it is shown at the price for people who had enough left.
    Where a private roster's heads have still to be counted, `counting` comes first, and what needs the counts is only tried.
    `whose` allowance pays, where an analyst asks.
    """
    ledger, standing = _look(plan)
    capped = capped_in(plan, facts.schema, facts.roster)
    priced: list[Priced] = []
    asks: list[Ask] = []
    settled: list[Foreseen | None] = []
    if counting is not None:
        counting = charged_to_people(counting, standing)
        text = request_text(counting, dataset_name=plan.dataset, source=source)
        asks.append(Ask(to_attributes(Charge(counting.chosen.charge.total), counting, capped), text, None, **whose))
        priced.append(counting)
        settled.append(None)
    for request in requests:
        if counting is not None and request.epsilon is None:
            with at_release(request.name):
                seen_beforehand(request, facts, counting, standing)
            continue
        epoch = 0 if standing is None else int(standing.epoch)
        text = living_text(request, facts, epoch=epoch, dataset_name=plan.dataset, source=source)
        entry = ledger.find(plan.dataset, text, recipient=request.recipient) if ledger is not None and epoch else None
        known = None if entry is None else Foreseen(paid=True, entry=entry.id)
        try:
            with at_release(request.name):
                item = price(request, facts, standing, as_granted=entry is not None)
        except BudgetError as error:
            if standing is None or not int(standing.heads.sum()):  # there is nobody for whom it had a price
                raise
            item = price(request, facts, if_all_could_pay(request, standing))
            item = replace(item, notes=(*item.notes, "shown as if everybody had enough left"))
            known = Foreseen(refusal=str(error))
        if known is None and item.part is not None:
            standing = item.part.after(item.chosen.charge)
            # What each cohort can pay is in the price already; only the caps that hold for all are left to ask.
            cost = to_attributes(Charge(item.chosen.charge.total), item, capped)
            asks.append(Ask(cost, text, request.recipient, **whose))
        priced.append(item)
        settled.append(known)
    caps = None if ledger is None else replace(ledger.caps(plan.dataset, **whose), people=None)
    said = iter([] if caps is None else foresee(None, caps, asks))
    foreseen = [next(said) if known is None else known for known in settled]
    notes = () if ledger is None else waiting(ledger.people(plan.dataset))
    return [replace(p, foreseen=f) for p, f in zip(priced, foreseen, strict=True)], notes


def next_counting(plan: Plan, roster: Roster, source: Source) -> tuple[Priced, Ledger]:
    """Counting a private roster's heads once more, for people as they stand, and the ledger that it is charged to."""
    schema = plan.schema()
    life = people(plan, create=False)
    _, times = newest_heads(schema, roster, plan.ledger, plan.dataset, source)
    return charged_to_people(of_heads(schema, roster, times + 1), life.standing()), ledger_of(plan, None)


def waiting(life: Life) -> tuple[str, ...]:
    """What people have chosen that does not hold yet, in a sentence; nothing if nothing waits."""
    pending = life.pending()
    if not pending.total:
        return ()
    return (
        f"{pending.total:,} choices wait: those that lower a grant or withdraw hold from the next release on, the others "
        "from the next epoch",
    )


def again_priced(priced: Priced, facts: Facts, ledger: Ledger, dataset: str) -> Priced:
    """The same release for people as they stand now: the releases before it in the plan have been charged meanwhile."""
    if priced.part is None or priced.request.kind == HEAD_COUNTS or (priced.foreseen is not None and priced.foreseen.paid):
        return priced
    life = ledger.people(dataset)
    life.bind()
    return replace(price(priced.request, facts, life.standing()), foreseen=priced.foreseen)


def standing_in(plan: Plan) -> Standing | None:
    """Where the people of a living roster stand, by the plan's ledger; nothing is written."""
    return _look(plan)[1]


def _look(plan: Plan) -> tuple[Ledger | None, Standing | None]:
    """The ledger and where people stand, if they are known there; the ledger is neither made nor registered in."""
    roster = plan.roster()
    if not known(plan):
        return None, None
    key = roster.key_file if isinstance(roster, LivingRoster) else None
    ledger = Ledger.open(plan.ledger, create=False, key=key)
    return ledger, ledger.people(plan.dataset).standing()
