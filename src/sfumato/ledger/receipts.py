"""A receipt: what was spent on one person, by which release, for whom, under which grant, and what is left.

Releases that failed, and those that were never finished, are charged too: nobody can tell whether their noise was seen.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select

from sfumato.ledger import clock, cohorts, schema
from sfumato.ledger.choices import Choices
from sfumato.ledger.life_records import Line, Receipt
from sfumato.ledger.packing import CHUNK
from sfumato.ledger.replay import fixed_charges, story, tell
from sfumato.ledger.requests import question
from sfumato.ledger.standing import Menu
from sfumato.ledger.state import FAR, GONE, State
from sfumato.ledger.states import at_place, changed_from_outside
from sfumato.privacy.units import epsilon_text


def waiting_for(waiting: Choices, which: int, menu: Menu) -> str:
    """What a choice asks for, in a word."""
    if waiting.tiers[which] == GONE:
        return "withdraw"
    return menu.called(int(waiting.tiers[which])) or epsilon_text(int(waiting.grants[which]))


def receipt(
    connection: Connection, dataset_id: int, dataset: str, menu: Menu, *, person: str, place: int, waiting: str | None
) -> Receipt:
    """The receipt of the person at a `place`; -1 is somebody who waits to join."""
    releases = _releases(connection, dataset_id)
    lines: list[Line] = []
    at, now, epoch, tier = 0, State.empty(), 0, None  # the one person's vectors have one entry
    left_at: str | None = None
    what = story(connection, dataset_id)
    for told in tell(connection, what, place // CHUNK, place % CHUNK) if place >= 0 else ():
        now = told.state
        epoch = epoch if told.change is None else int(told.change.epoch)
        if at >= len(now.grants):
            continue
        tier = menu.called(int(now.tiers[at]))
        if now.tiers[at] != GONE:
            left_at = None
        elif left_at is None and told.change is not None:  # of those who left twice, the last time
            left_at = told.change.at
        if told.change is not None and told.change.kind == "start":
            lines += _before(connection, dataset_id, releases, int(now.tiers[at]), tier, int(now.grants[at]))
        elif told.charge is not None and told.paid[at]:
            release = releases[told.charge.release_id]
            lines.append(_line(release, epoch, tier, int(now.grants[at]), int(told.paid[at])))
    epoch = max([epoch, *(int(change.epoch) for change, _ in what.turns if change is not None)])
    period = clock.period_of(menu.period, clock.now())
    now = now.entered(period)
    grant, cap, base, spent, code = (
        (int(v[at]) for v in (now.grants, now.caps, now.base, now.spent, now.tiers)) if place >= 0 else (0, FAR, 0, 0, -1)
    )
    if sum(line.charged for line in lines) != spent or (
        place >= 0 and at_place(connection, dataset_id, place, ("spent",)) != [spent]
    ):
        raise changed_from_outside()
    for_life = max(0, grant - spent)
    capped = cap != FAR and code != GONE
    in_period = max(0, cap - (spent - base)) if capped else None
    return Receipt(
        dataset=dataset,
        person=person,
        lines=tuple(lines),
        tier=tier,
        grant=grant,
        spent=spent,
        left_for_life=for_life,
        period=now.period if menu.period else None,
        per_period=cap if capped else None,
        spent_in_period=spent - base if menu.period else None,
        left_in_period=in_period,
        left=for_life if in_period is None else min(for_life, in_period),
        withdrawn=code == GONE,
        withdrawn_at=left_at,
        waiting=waiting,
        epoch=epoch,
    )


def _releases(connection: Connection, dataset_id: int) -> dict[int, Any]:
    table = schema.releases
    columns = (table.c.id, table.c.name, table.c.recipient, table.c.reserved_at, table.c.state, table.c.request)
    return {int(row.id): row for row in connection.execute(select(*columns).where(table.c.dataset_id == dataset_id))}


def _before(
    connection: Connection, dataset_id: int, releases: dict[int, Any], level: int, tier: str | None, grant: int
) -> list[Line]:
    """The releases from when the roster was one of head counts."""
    table = schema.rosters
    query = select(table.c.levels).where(table.c.dataset_id == dataset_id)
    levels = cohorts.unpack(connection.execute(query).scalar_one())
    found = []
    for row in fixed_charges(connection, dataset_id):
        charged = int(cohorts.charge_of(levels, row)[level])
        if charged:
            found.append(_line(releases[row.release_id], 0, tier, grant, charged))
    return found


def _line(release: Any, epoch: int, tier: str | None, grant: int, charged: int) -> Line:
    who = (int(release.id), release.name, release.recipient, release.reserved_at, release.state)
    return Line(*who, epoch, tier, grant, charged, *question(release.request))
