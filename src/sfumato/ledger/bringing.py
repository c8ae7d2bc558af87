"""Many people at once: an import into a living roster, and a fixed roster that comes alive."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from sfumato.errors import InputError, LedgerError
from sfumato.ledger import choices, cohorts, epochs, menus, persons, states
from sfumato.ledger.choices import Choices
from sfumato.ledger.life_records import Pending
from sfumato.ledger.persons import MEMBER
from sfumato.ledger.standing import Menu
from sfumato.ledger.state import GONE, State
from sfumato.privacy.units import epsilon_text


def refuse_twice(hashed: NDArray[np.void]) -> None:
    """Refuse people who are brought more than once: which of their grants would count?"""
    high, low = hashed["high"].astype(np.uint64), hashed["low"].astype(np.uint64)
    order = np.lexsort((low, high))
    again = int(((np.diff(high[order]) == 0) & (np.diff(low[order]) == 0)).sum())
    if again:
        raise InputError(
            f"{again} of the identifiers brought are repetitions (7 and '7' are the same); bring each person once"
        )


def bring(
    connection: Connection, dataset_id: int, menu: Menu, hashed: NDArray[np.void], grants: Any, *, missing: str
) -> Pending:
    """Keep the choices of those brought; see `sfumato.ledger.life.Life.bring`."""
    amounts, tiers, caps = menus.granted(menu, grants, len(hashed))
    places = persons.places(connection, dataset_id, hashed)
    known = places >= 0
    hashed["place"] = np.where(known, places, 0)
    now = states.load(connection, dataset_id)
    waiting = choices.read(connection, dataset_id)[0].last_of_each()
    chosen = Choices(hashed, known, amounts, tiers, caps)
    out = _withdrew(now, waiting, chosen)
    stay = choices.none()
    if missing == "withdraw":
        stay = _missing(now, waiting, chosen)
    kept = chosen[~out]
    if not len(waiting):  # who waits for something else takes it back by this; the others need no line
        kept = kept[_differs(now, kept)]
    both = _joined(kept, stay)
    choices.write(connection, dataset_id, both, _lowering(now, both))
    return by_kind(now, both)


def bring_fixed(
    connection: Connection, dataset_id: int, dataset: str, hashed: NDArray[np.void], grants: Any, at: str
) -> Pending:
    """Give the people of a fixed roster their names, each with the history of their level."""
    group = cohorts.load(connection, dataset_id)
    if group is None:
        raise LedgerError(f"{dataset!r} was registered without people; register it under a new name, with living=True")
    roster = group.people
    if roster.private:
        raise LedgerError(
            f"the roster of {dataset!r} is private: no head counts are kept that people could be matched with. Register it "
            "under a new name, with living=True and private=True"
        )
    menu = Menu(roster.levels, roster.names)
    amounts, tiers, caps = menus.granted(menu, grants, len(hashed))
    if (tiers < 0).any():
        raise InputError(
            f"the people of {dataset!r} are in tiers; give each person's tier by name, or its ε where it has none"
        )
    heads = np.bincount(tiers, minlength=len(roster.levels))
    wrong = np.flatnonzero(heads != roster.counts)
    if wrong.size:
        first = int(wrong[0])
        which = menu.called(first) or f"ε {epsilon_text(int(roster.levels[first]))}"
        raise InputError(
            f"{dataset!r} was registered with {int(roster.counts[first]):,} people at {which} and {int(heads[first]):,} "
            f"were brought ({wrong.size} of {len(roster.levels)} levels differ); bring everybody it was registered with, "
            "and let them change afterwards"
        )
    menus.come_alive(connection, dataset_id, menu, fixed=True)
    chosen = Choices(hashed, np.zeros(len(hashed), dtype=bool), amounts, tiers, caps)
    spent = roster.spent[tiers]
    done = epochs.take_in(connection, dataset_id, State.empty(), chosen, at=at, kind="start", last=0, spent=spent)
    return Pending(join=done.joined)


def by_kind(now: State, waiting: Choices) -> Pending:
    """How many of these choices (one per person) would do what, if they came into force now."""
    grants, tiers, _ = _now(now, waiting)
    out, was_out = waiting.tiers == GONE, tiers == GONE
    stays = ~out & ~was_out & _differs(now, waiting)
    return Pending(
        join=int((was_out & ~out).sum()),
        raise_=int((stays & (waiting.grants > grants)).sum()),
        lower=int((stays & (waiting.grants < grants)).sum()),
        move=int((stays & (waiting.grants == grants)).sum()),
        withdraw=int((out & ~was_out).sum()),
    )


def _now(now: State, chosen: Choices) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """What each of them grants, their tier and cap; who is not there counts as withdrawn."""
    size = len(now.grants)
    at = np.where(chosen.known, chosen.places, size)
    return np.append(now.grants, 0)[at], np.append(now.tiers, GONE)[at], np.append(now.caps, 0)[at]


def _differs(now: State, chosen: Choices) -> NDArray[np.bool_]:
    grants, tiers, caps = _now(now, chosen)
    found: NDArray[np.bool_] = (grants != chosen.grants) | (tiers != chosen.tiers) | (caps != chosen.caps)
    return found


def _lowering(now: State, chosen: Choices) -> NDArray[np.bool_]:
    return choices.lowers(chosen, *_now(now, chosen))


def _withdrew(now: State, waiting: Choices, chosen: Choices) -> NDArray[np.bool_]:
    """Who of those brought has withdrawn, or said so: an import does not bring them back."""
    out = now.tiers == GONE
    asked = waiting.known
    out[waiting.places[asked]] = waiting.tiers[asked] == GONE
    refused = waiting.people[~asked & (waiting.tiers == GONE)].copy()  # newcomers who joined and took it back
    refused["place"] = 0
    found: NDArray[np.bool_] = np.where(
        chosen.known,
        np.append(out, False)[np.where(chosen.known, chosen.places, -1)],
        persons.match(refused, chosen.people) >= 0,
    )
    return found


def _missing(now: State, waiting: Choices, chosen: Choices) -> Choices:
    """Withdrawals of everybody who is there, or waits to join, and was not brought."""
    there = now.tiers != GONE
    there[waiting.places[waiting.known]] = True
    there[chosen.places[chosen.known]] = False
    places = np.flatnonzero(there)
    known = np.zeros(len(places), dtype=MEMBER)
    known["place"] = places
    new = waiting.people[~waiting.known]
    brought = chosen.people[~chosen.known].copy()
    brought["place"] = 1
    new = new[persons.match(brought, new) < 0]
    both = np.concatenate([known, new])
    nothing = np.zeros(len(both), dtype=np.int64)
    return Choices(both, np.arange(len(both)) < len(known), nothing, nothing + GONE, nothing)


def _joined(first: Choices, second: Choices) -> Choices:
    columns = ("people", "known", "grants", "tiers", "caps")
    return Choices(*(np.concatenate([getattr(first, name), getattr(second, name)]) for name in columns))
