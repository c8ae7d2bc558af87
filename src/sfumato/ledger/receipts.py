"""A receipt: what was spent on one person, by which release, for whom, under which grant, and what is left.

Where the person stands is read from what is kept. Their releases are told from the newest back, as many as were asked for
(`sfumato.ledger.personal`): a receipt takes as long as it has lines, not as long as the ledger is old. When it reaches their
first release, the lines must add up to what is kept, or the ledger was changed from outside.

Releases that failed, and those that were never finished, are charged too: nobody can tell whether their noise was seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, select

from sfumato.errors import InputError
from sfumato.ledger import choices, clock, schema
from sfumato.ledger.allowance import ALLOWANCE, whose
from sfumato.ledger.choices import Choices
from sfumato.ledger.life_records import Line, Receipt
from sfumato.ledger.personal import Own, Paid, paid_by
from sfumato.ledger.requests import question
from sfumato.ledger.standing import Menu
from sfumato.ledger.state import FAR, GONE
from sfumato.ledger.states import at_place, changed_from_outside, last_turns
from sfumato.privacy.units import epsilon_text

LINES = 1000  # on a receipt, if nobody says how many
_AT_ONCE = 900  # numbers in one statement; some builds of SQLite take no more than 999


@dataclass(frozen=True)
class Part:
    """Which lines are wanted: the newest `limit` before a release; with 0 none, and then they are not added up."""

    limit: int
    before: int | None

    @classmethod
    def of(cls, limit: int | None, before: int | None) -> Part:
        """Checked as given by a caller."""
        for what, given in (("limit", limit), ("before", before)):
            if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < 1):
                raise InputError(f"{what} is a whole number from 1, got {given!r}")
        return cls(LINES if limit is None else limit, before)


@dataclass(frozen=True)
class Who:
    """Whose receipt it is: `place` -1 is somebody who waits to join, `choice` what they chose and is not in force yet."""

    dataset: str
    person: str
    place: int
    choice: Choices | None


def waiting_for(waiting: Choices, which: int, menu: Menu) -> str:
    """What a choice asks for, in a word."""
    if waiting.tiers[which] == GONE:
        return "withdraw"
    return menu.called(int(waiting.tiers[which])) or epsilon_text(int(waiting.grants[which]))


def receipt(connection: Connection, dataset_id: int, menu: Menu, who: Who, part: Part) -> Receipt:
    """The receipt of one person."""
    change, charge = last_turns(connection, dataset_id)
    epoch = 0 if change is None else int(change.epoch)
    own = Own(connection, dataset_id, who.place)
    grant, code, cap = (0, -1, FAR) if who.place < 0 else own.now()
    spent = base = 0
    if who.place >= 0:
        spent, base = at_place(connection, dataset_id, who.place, ("spent", "base"))
    began, period = None if charge is None else charge.period, clock.period_of(menu.period, clock.now())
    if period is not None and (began is None or period > began):  # a period begins with nothing spent in it
        began, base = period, spent
    found: list[Paid] = []
    older = None
    if who.place >= 0 and part.limit:
        found, older = paid_by(connection, dataset_id, own, part.limit, part.before)
    if part.before is None and part.limit and not _possible(found, spent, whole=older is None):
        raise changed_from_outside()
    waiting = who.choice
    if waiting is not None and who.place >= 0 and _is_so(waiting, grant, code, cap):
        waiting = None  # they changed their mind, and changed it back
    for_life = max(0, grant - spent)
    capped = cap != FAR and code != GONE
    in_period = max(0, cap - (spent - base)) if capped else None
    return Receipt(
        dataset=who.dataset,
        person=who.person,
        lines=_lines(connection, menu, found),
        tier=None if who.place < 0 else menu.called(code),
        grant=grant,
        spent=spent,
        left_for_life=for_life,
        period=began if menu.period else None,
        per_period=cap if capped else None,
        spent_in_period=spent - base if menu.period else None,
        left_in_period=in_period,
        left=for_life if in_period is None else min(for_life, in_period),
        withdrawn=code == GONE,
        withdrawn_at=own.left_at(),
        waiting=None if waiting is None else waiting_for(waiting, 0, menu),
        waiting_lowers=waiting is not None and bool(choices.lowers(waiting, *_columns(grant, code, cap))[0]),
        epoch=epoch,
        older=older,
    )


def _is_so(waiting: Choices, *now: int) -> bool:
    return tuple(int(column[0]) for column in (waiting.grants, waiting.tiers, waiting.caps)) == now


def _columns(*values: int) -> tuple[Any, ...]:
    return tuple(np.array([value], dtype=np.int64) for value in values)


def _possible(found: list[Paid], spent: int, *, whole: bool) -> bool:
    """Whether lines up to the newest lead to what is kept, and no charge passed what the person granted at the time."""
    running = spent
    for paid in reversed(found):  # back from now: what they had spent after each release
        if running > paid.grant or paid.charged > running:
            return False
        running -= paid.charged
    return running == 0 if whole else running > 0


def _lines(connection: Connection, menu: Menu, found: list[Paid]) -> tuple[Line, ...]:
    table, charges, rows, purposes = schema.releases, schema.charges, {}, {}
    columns = (
        table.c.id,
        table.c.name,
        table.c.recipient,
        table.c.reserved_at,
        table.c.state,
        table.c.request,
        table.c.asked_by,
    )
    numbers = [paid.release for paid in found]
    for start in range(0, len(numbers), _AT_ONCE):
        some = numbers[start : start + _AT_ONCE]
        rows.update({int(row.id): row for row in connection.execute(select(*columns).where(table.c.id.in_(some)))})
        own = select(charges.c.release_id, charges.c.name).where(charges.c.release_id.in_(some), charges.c.kind == ALLOWANCE)
        purposes.update({int(number): whose(ALLOWANCE, name)[1] for number, name in connection.execute(own)})
    return tuple(_line(rows[p.release], p, menu.called(p.tier), purposes.get(p.release)) for p in found)


def _line(release: Any, paid: Paid, tier: str | None, purpose: str | None) -> Line:
    who = (int(release.id), release.name, release.recipient, release.reserved_at, release.state)
    return Line(*who, paid.epoch, tier, paid.grant, paid.charged, *question(release.request), purpose, release.asked_by)
