"""When the end of a job is told: at moments that are fixed before anything private is read.

A job has one *window* for each release that it makes. A window begins when the job is taken, or when the one before it was
over; it gives the release at least `longest` seconds and ends at a slot. Shortly before that the release is settled in the
ledger, whether it finished early, failed or had to be killed. All of these moments follow from the clock when the job was
taken, the number of releases and the settings. So the ledger is written to at moments that are the same whatever the table
holds: charged when a window begins, settled when its time is over. A release that fails does not stop those after it, or
their charges would tell. Nothing about the end of a job is told before its last window is over (`deliver_at`), and then
only whether it finished or failed.

The ledger's entries name the job that they are for, so that whoever shows them finds out which ends are not told yet
(`untold`), and so that a runner that starts after a crash knows what was charged for which job.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, case, literal, select

from sfumato.service.store import schema

if TYPE_CHECKING:
    from sfumato.ledger.records import Release

SETTLING: Final = 1
"""Seconds before the end of a window at which its release is settled: the ledger is written meanwhile."""

HELD: Final = ("finished", "failed")
"""How a job that was taken can end; neither is told before its slot."""


class Window(NamedTuple):
    """The time of one release, in whole seconds since 1970.

    Attributes
    ----------
    start : int
        It is charged from here on.
    settled : int
        It is stopped and settled here, and not earlier.
    told : int
        The slot at which it is over.
    """

    start: int
    settled: int
    told: int


def next_slot(moment: int, slot: int) -> int:
    """The first boundary of a slot after a moment.

    >>> next_slot(119, 60), next_slot(120, 60)
    (120, 180)
    """
    return (moment // slot + 1) * slot


def windows(taken: int, releases: int, *, longest: int, slot: int) -> list[Window]:
    """The windows of a job that is taken now; the job is told when the last of them is.

    >>> windows(100, 2, longest=30, slot=60)
    [Window(start=100, settled=179, told=180), Window(start=180, settled=239, told=240)]
    """
    found: list[Window] = []
    for _ in range(max(1, releases)):
        start = found[-1].told if found else taken
        told = next_slot(start + longest + SETTLING - 1, slot)
        found.append(Window(start, told - SETTLING, told))
    return found


def windows_of(job: Any) -> list[Window]:
    """The windows that were fixed when a job was taken; none if it waits."""
    return [] if job.windows is None else [Window(*window) for window in json.loads(job.windows)]


def told_state(job: Any, now: int) -> str:
    """The state of a job as anybody may know it: whatever happened, it runs until its slot."""
    hidden = job.state in HELD and job.deliver_at is not None and now < job.deliver_at
    return "running" if hidden else str(job.state)


def told_state_sql(now: int) -> ColumnElement[str]:
    """The same as an expression over `schema.jobs`, for counting and filtering."""
    table = schema.jobs
    hidden = and_(table.c.state.in_(HELD), table.c.deliver_at > now)
    return case((hidden, literal("running")), else_=table.c.state)


def told_progress(job: Any, now: int) -> dict[str, int] | None:
    """How many windows of a job are over, and of how many: from the clock alone."""
    found = windows_of(job)
    return None if not found else {"told": sum(w.told <= now for w in found), "of": len(found)}


_JOB = re.compile(r" \[(job_[A-Za-z0-9_-]{1,80})\]\Z")


def asked_by(account: str, job_id: str) -> str:
    """Who asks, as the ledger keeps it: the account and the job.

    >>> job_of(asked_by("ana", "job_1"))
    'job_1'
    """
    return f"{account} [{job_id}]"


def account_of(by: str | None) -> str | None:
    """The account in what the ledger keeps of who asked."""
    return None if by is None else _JOB.sub("", by)


def job_of(by: str | None) -> str | None:
    """The job that an entry of the ledger is for; ``None`` if it was not made through the service."""
    found = None if by is None else _JOB.search(by)
    return None if found is None else found[1]


def untold(connection: Connection, entries: Iterable[Release], now: int) -> set[int]:
    """The entries of the ledger whose end is not told yet: to everybody they are reserved, without an end.

    Whoever shows entries shows these with the state ``"reserved"``, no moment of finishing and no artefact.
    """
    of = {entry.id: job for entry in entries if (job := job_of(entry.by)) is not None}
    if not of:
        return set()
    table = schema.jobs
    ended = table.c.state.in_(HELD) & (table.c.deliver_at <= now)
    over = select(table.c.id).where(table.c.id.in_(set(of.values())), ended)
    told = set(connection.execute(over).scalars())
    return {entry for entry, job in of.items() if job not in told}
