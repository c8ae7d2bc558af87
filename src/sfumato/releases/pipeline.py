"""One release, in the order that keeps it honest.

price from public facts -> the ledger makes the charge durable -> the engine computes the few aggregates -> the mechanism
adds noise through a Meter that cannot pass the charge. Whatever fails after the charge leaves it spent.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from sfumato.errors import InputError, SfumatoError
from sfumato.ledger import Foreseen, Ledger, Reservation
from sfumato.offers import Facts, Offer, Request, choose
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge
from sfumato.privacy.guarantee import cap_sentence
from sfumato.privacy.meter import Meter
from sfumato.privacy.source import SECURE, Source
from sfumato.privacy.units import epsilon_text
from sfumato.releases.attribute_charges import columns_shown, to_attributes
from sfumato.releases.kinds import all_kinds
from sfumato.releases.living import Part, admitted
from sfumato.releases.living_private import admitted_unseen
from sfumato.results import Result
from sfumato.tables.living import LivingRoster

if TYPE_CHECKING:
    from sfumato.ledger import Life, Standing
    from sfumato.tables import Dataset

Progress = Callable[[str], None]
_log = logging.getLogger("sfumato.releases")

HEAD_COUNTS: Final = "head counts"
"""The kind of the first release from a private roster; nobody asks for it in a plan."""

FAILED: Final = (
    "release {name!r} failed while the table was read; its budget stays spent. Why could tell something of the table and is "
    "not shown: check the table against the schema on its own side"
)


def silent(_: str) -> None:
    """No progress shown."""


def at_once() -> None:
    """The ledger hears how a release ended when it ends."""


@dataclass(frozen=True, eq=False)
class Priced:
    """A request with its offers, best first, and the one that will run. Made from public facts only.

    Attributes
    ----------
    request : Request
        What is asked.
    facts : Facts
        What its price was computed from: budgets are those that it may use.
    offers : tuple of Offer
        Every mechanism that can answer it.
    chosen : Offer
        The one that will run.
    notes : tuple of str
        What public facts say beside the prices, such as that nobody can satisfy the condition.
    foreseen : Foreseen or None
        What the ledger would say to it, where a ledger was asked.
    part : Part or None
        Who takes part, where the roster is a living one.
    """

    request: Request
    facts: Facts
    offers: tuple[Offer, ...]
    chosen: Offer
    notes: tuple[str, ...] = ()
    foreseen: Foreseen | None = None
    part: Part | None = None


@dataclass(frozen=True, eq=False)
class Done:
    """A release that was run: its result, the charge it was held to, and the ledger's number for it."""

    priced: Priced
    result: Result
    reservation: Reservation
    fingerprint: str


def price(request: Request, facts: Facts, standing: Standing | None = None, *, as_granted: bool = False) -> Priced:
    """Offers and their prices; reads nothing private.

    On a living roster they are for people as they stand in the ledger, or, `as_granted`, as if nothing had been spent yet.
    """
    taking: Part | None = None
    if isinstance(facts.roster, LivingRoster) and facts.roster.private:
        taking, facts = admitted_unseen(request, facts, standing)
    elif isinstance(facts.roster, LivingRoster):
        taking, facts = admitted(request, facts, standing, as_granted=as_granted)
    elif request.epsilon is not None:
        facts = replace(facts, budgets=None, granted=None)  # the roster stays: who granted nothing is not counted either way
    elif facts.budgets is not None:
        part = request.share or Fraction(1)
        roster = None if facts.roster is None else facts.roster.share(part)
        whole = facts.budgets if facts.granted is None else facts.granted
        facts = replace(facts, budgets=facts.budgets.share(part), roster=roster, granted=whole)
    offers = all_kinds()[request.kind].offers(request, facts)
    chosen = choose(offers, request.mechanism, place=f"release {request.name!r}")
    for offer in offers:
        _log.debug("%r: offer %s, ε %s, %s", request.name, offer.mechanism, epsilon_text(offer.charge.total), offer.note)
    _log.info("%r: %s by %s, at most ε %s", *_named(request, chosen))
    empty = "the schema says that no row can satisfy this condition: the true answer is 0"
    unit = facts.schema.unit
    capped = () if unit.person is None else (cap_sentence(unit.rows_per_person),)
    notes = ((empty,) if facts.nobody(request.where) else ()) + (() if taking is None else taking.notes()) + capped
    return Priced(request, facts, tuple(offers), chosen, notes, part=taking)


def _named(request: Request, chosen: Offer) -> tuple[str, ...]:
    return request.name, request.kind, chosen.mechanism, epsilon_text(chosen.charge.total)


def default_shares(requests: tuple[Request, ...], personal: bool) -> tuple[Request, ...]:
    """Releases that draw on personal budgets without naming a share divide what the named shares leave, equally."""
    if not personal:
        return requests
    open_ones = [r for r in requests if r.epsilon is None and r.share is None]
    named = sum((r.share for r in requests if r.share is not None), Fraction(0))
    if named > 1:
        raise InputError(f"the releases' shares add up to {float(named):g}; everyone has only one budget to share")
    if not open_ones:
        return requests
    if named >= 1:
        raise InputError(f"nothing is left for release {open_ones[0].name!r}: the named shares already add up to 1")
    each = (1 - named) / len(open_ones)
    return tuple(replace(r, share=each) if r.epsilon is None and r.share is None else r for r in requests)


# --- identity --------------------------------------------------------------------------------------------------------


def request_text(priced: Priced, *, dataset_name: str, source: Source) -> str:
    """What makes two requests identical, so that the second is answered from the first, as canonical JSON.

    The dataset's name, schema, roster, question, mechanism and price. Where the data lies is no part of it: a folder that
    moved holds the same data, and whoever gives other data the same name in the same ledger says that it is the same.
    """
    if priced.part is not None and priced.request.kind != HEAD_COUNTS:  # heads are counted once, not in every epoch
        epoch = int(priced.part.standing.epoch)
        return living_text(priced.request, priced.facts, epoch=epoch, dataset_name=dataset_name, source=source)
    price = {
        "chosen": priced.chosen.mechanism,
        "charge": _charge_digest(priced.chosen.charge),
        "held_to": priced.chosen.terms.told(),
    }
    return _text(priced.request, priced.facts, price, dataset_name, source)


def living_text(request: Request, facts: Facts, *, epoch: int, dataset_name: str, source: Source) -> str:
    """The same for a living roster: the question and the epoch.

    What people have left is no part of it, nor what depends on it: the first answer lowers it, and the same question again
    in the same epoch would be another one. Of a private roster the noisy head counts are part of it, which are public.
    """
    if request.epsilon is not None:  # which does not depend on how many there are
        facts = replace(facts, budgets=None, granted=None)
    return _text(request, facts, {"epoch": epoch}, dataset_name, source)


def _text(request: Request, facts: Facts, more: dict[str, Any], dataset_name: str, source: Source) -> str:
    record = request.canonical() | {
        "dataset": dataset_name,
        "schema": schema_digest(facts),
        "roster": _roster_digest(facts),
        **more,
    }
    if request.kind == HEAD_COUNTS:  # who is in which tier has nothing to do with the table's other columns
        del record["schema"]
    if not source.private:  # or a real request would be answered with what an experiment left behind
        record["noise"] = "not private"
    return json.dumps(record, sort_keys=True, default=str)


def fingerprint_of(request: str) -> str:
    """The name of a request in certificates and in the ledger."""
    return _digest(request.encode())


def schema_digest(facts: Facts) -> str:
    """The name of the public schema in certificates: of what decides about figures, not of titles and descriptions."""
    return facts.schema.digest


def _roster_digest(facts: Facts) -> str | None:
    roster = facts.roster
    if roster is None:
        return None
    living = ["living", roster.tiers_nano, roster.period, roster.per_period] if isinstance(roster, LivingRoster) else None
    if living is not None and not roster.private:
        return _digest(json.dumps(living).encode())
    people = facts.granted
    assert people is None or isinstance(people, PersonBudgets)
    counts = [] if people is None else [people.levels.tobytes().hex(), people.counts.tobytes().hex(), people.names]
    if living is not None:
        return _digest(json.dumps([*living, "private", str(roster.head_share), counts]).encode())
    return _digest(json.dumps([roster.budget, roster.person, roster.tiers_nano, counts]).encode())


def _charge_digest(charge: Charge) -> str:
    people = b"" if charge.people is None else charge.people.tobytes()
    return _digest(json.dumps([charge.total, dict(charge.attributes)], sort_keys=True).encode() + people)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# --- running ---------------------------------------------------------------------------------------------------------


def ledger_charge(priced: Priced) -> Charge:
    """The charge as the ledger keeps it: person groups only when the dataset has a roster, cohorts if it is a living one.

    What attributes pay is added by `to_attributes`, once it is known which of them have a cap.
    """
    charge = priced.chosen.charge
    if priced.part is not None:
        return priced.part.charge(charge)
    if priced.chosen.budgets is None:
        return Charge(charge.total)
    return charge


def run(priced: Priced, dataset: Dataset, *, source: Source = SECURE) -> Result:
    """Run the chosen offer under a Meter limited to its price. The charge must be durable by now."""
    chosen = priced.chosen
    meter = Meter.under(chosen.terms, source=source)
    result: Result = chosen.run(dataset, meter)
    if not meter.spent().within(chosen.charge):  # the Meter refuses before this; a guard against a Meter that was bypassed
        raise SfumatoError("a release cost more than its price; nothing is published")
    return result


def _charged(dataset: Dataset, priced: Priced, life: Life | None, release_id: int) -> Dataset:
    """The dataset with a roster that knows who was charged, where that is for the ledger to say."""
    roster = dataset.budgets
    if priced.part is None or life is None or not isinstance(roster, LivingRoster):
        return dataset
    return dataset.with_budgets(priced.part.roster(roster, life, release_id))


def charge_and_run(
    priced: Priced,
    *,
    dataset_name: str,
    ledger: Ledger,
    dataset: Dataset,
    source: Source = SECURE,
    finish: Callable[[Result, Reservation, str], dict[str, Any]],
    progress: Progress = silent,
    by: str | None = None,
    analyst: str | None = None,
    purpose: str | None = None,
    ending: Callable[[], None] = at_once,
) -> tuple[Done | None, Reservation]:
    """Reserve, run, finish, commit. Returns None and the stored reservation when the same request was answered before.

    The allowance of an `analyst` for a `purpose` is charged with everything else, where they are given.
    `finish` makes the release durable (an artefact folder, or nothing) and returns what the ledger should remember.
    `ending` is called when a release that was charged is over, however it ended, before the ledger hears of it: where the
    moment would tell something, it ends the process, and another one settles the release when its time has come.
    """
    request = request_text(priced, dataset_name=dataset_name, source=source)
    fingerprint = fingerprint_of(request)
    name = priced.request.name

    def step(what: str) -> None:
        _log.info("%r: %s", name, what)
        progress(what)

    step("checking the table against the schema")
    dataset.check()  # column names and types only: a missing file must not cost anything
    step("reserving the budget")
    reservation = ledger.reserve(
        dataset_name,
        to_attributes(ledger_charge(priced), priced, ledger.attributes(dataset_name)),
        request=request,
        recipient=priced.request.recipient,
        name=priced.request.name,
        by=by,
        analyst=analyst,
        purpose=purpose,
        **({} if priced.part is None else {"standing": priced.part.standing}),
    )
    if reservation.repeated:
        _log.info("%r: entry %d of the ledger has paid for it", name, reservation.id)
        return None, reservation
    _log.info("%r: charged, entry %d of the ledger", name, reservation.id)
    dataset = _charged(dataset, priced, ledger.people(dataset_name) if priced.part else None, reservation.id)
    dataset = dataset.limited_to(columns_shown(priced.request, priced.facts))  # what attributes were charged for
    result: Result | None = None
    try:
        step("reading aggregates and adding noise")
        result = run(priced, dataset, source=source)
    except Exception:
        # The words of the failure, and even its kind, may depend on the private table: neither is told nor kept.
        ending()
        ledger.fail(reservation.id)
        if not source.private:  # an experiment, whose table is not private: whoever debugs it sees what went wrong
            raise
    except BaseException:  # Ctrl-C: the table may have been read
        ending()
        ledger.fail(reservation.id)
        raise
    if result is None:  # raised here and not above, where the new error would carry the old one in __context__
        raise SfumatoError(FAILED.format(name=name))
    try:
        step("writing the release")
        remembered = finish(result, reservation, fingerprint)
    except Exception as error:  # from here on everything is made of the released figures: the reason may be told
        ending()
        ledger.fail(reservation.id)
        reason = error.strerror if isinstance(error, OSError) and error.strerror else f"{type(error).__name__}: {error}"
        raise SfumatoError(
            f"release {name!r} could not be written ({reason}); its budget stays spent because the table was "
            "read. Mend that and ask again: it will be charged again"
        ) from None
    step("committing")
    ending()
    ledger.commit(reservation.id, remembered)
    return Done(priced, result, reservation, fingerprint), reservation
