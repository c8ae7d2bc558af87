"""When the end of a job is told: at moments that are fixed before anything private is read.

A job has one *window* for each release that it makes. A window begins when the job is taken, or when the one before it was
told; it gives the release `longest` seconds, at whose end the release is settled whether it finished early, failed or had to
be killed, and it is told at the next slot. All of these moments follow from the clock when the job was taken, the number of
releases and the settings. So the ledger is written to at moments that are the same whatever the table holds: charged when a
window begins, settled when its time is over. Nothing about the end of a job is told before the last window is
(`deliver_at`), and then only whether it finished or failed.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, and_, case, literal

from sfumato.service.store import schema

SETTLING: Final = 1
"""Seconds between the end of a release's time and the earliest slot at which it is told: the ledger is written meanwhile."""

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
        The slot at which it may be told.
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
    [Window(start=100, settled=130, told=180), Window(start=180, settled=210, told=240)]
    """
    found: list[Window] = []
    for _ in range(max(1, releases)):
        start = found[-1].told if found else taken
        found.append(Window(start, start + longest, next_slot(start + longest + SETTLING - 1, slot)))
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
