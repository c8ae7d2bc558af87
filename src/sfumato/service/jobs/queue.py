"""The queue: one table. Every step is one conditional UPDATE, so that of two who want different things exactly one wins.

A job waits, is taken by one runner, charges, and ends. It is cancelled only where `charging_at` is still empty, and a runner
charges only after it has filled `charging_at` of a job that nobody cancelled. Rows that another runner looks at are skipped
on PostgreSQL (``SKIP LOCKED``); on SQLite there is one writer at a time (``BEGIN IMMEDIATE``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Row, insert, or_, select, update

from sfumato.service.fresh import fresh_id
from sfumato.service.http.problems import ProblemError, missing
from sfumato.service.jobs.slots import Window
from sfumato.service.store import schema
from sfumato.service.store.database import Store, now, record

if TYPE_CHECKING:
    from sfumato.service.context import Service
    from sfumato.service.http.access import Caller

LEASE: Final = 15
"""Seconds after which a runner that gave no sign of life has lost its jobs."""

_jobs = schema.jobs


def enqueue(
    connection: Connection,
    *,
    dataset_id: str,
    account_id: str,
    plan_id: str | None = None,
    request: Mapping[str, Any] | str | None = None,
    purpose: str | None = None,
) -> str:
    """Put a job at the end of the queue: an approved plan, or one release (`request`) for a `purpose`. Returns its number.

    It is part of the caller's transaction: whoever checks that a plan is approved does both in one.
    """
    job_id = fresh_id("job")
    asked = json.dumps(request, sort_keys=True, ensure_ascii=False) if isinstance(request, Mapping) else request
    row = {
        "id": job_id,
        "dataset_id": dataset_id,
        "account_id": account_id,
        "plan_id": plan_id,
        "request": asked,
        "purpose": purpose,
        "state": "waiting",
        "created_at": now(),
        "attempts": 0,
    }
    connection.execute(insert(_jobs).values(row))
    return job_id


def cancel(service: Service, caller: Caller, job_id: str) -> None:
    """Cancel one's own job, if nothing has been charged for it; its plan can then be run again."""
    with service.store.write() as connection:
        job = connection.execute(select(_jobs).where(_jobs.c.id == job_id, _jobs.c.account_id == caller.id)).one_or_none()
        if job is None:
            raise missing()
        if job.state == "cancelled":
            return
        if not cancelled(connection, job_id):
            raise ProblemError(409, "this job has begun to charge its budget, or is over; it cannot be cancelled any more")
        if job.plan_id is not None:
            plans = schema.plans
            mine = (plans.c.id == job.plan_id) & (plans.c.state == "run")
            connection.execute(update(plans).where(mine).values(state="approved"))
        record(connection, "jobs.cancel", account_id=caller.id, dataset_id=job.dataset_id, target=job_id)


def cancelled(connection: Connection, job_id: str) -> bool:
    """Cancel a job that has not begun to charge; whether it was one."""
    held = (_jobs.c.id == job_id) & _jobs.c.state.in_(("waiting", "running")) & _jobs.c.charging_at.is_(None)
    return connection.execute(update(_jobs).where(held).values(state="cancelled")).rowcount == 1


def take(
    store: Store,
    runner: str,
    *,
    claim: Callable[[str], bool] = lambda _: True,
    lease: int = LEASE,
    besides: Sequence[str] = (),
) -> Row[Any] | None:
    """The job that has waited longest, or one whose runner died, as it was before; from now on it is this `runner`'s.

    It is not taken if `claim` says that somebody still works on it. `besides` are jobs that it shall not be.
    """
    lost = (_jobs.c.state == "running") & (_jobs.c.beat_at < now() - lease) & (_jobs.c.taken_by != runner)
    query = select(_jobs).where(or_(_jobs.c.state == "waiting", lost), _jobs.c.id.not_in(besides))
    query = query.order_by(_jobs.c.created_at, _jobs.c.id).limit(1)
    with store.read() as connection:  # most of the time there is none, and looking must not keep others from writing
        if connection.execute(query).first() is None:
            return None
    with store.write() as connection:
        found = connection.execute(query.with_for_update(skip_locked=True)).one_or_none()
        if found is None or not claim(found.id):
            return None
        mine = {"state": "running", "taken_by": runner, "beat_at": now(), "attempts": found.attempts + 1}
        connection.execute(update(_jobs).where(_jobs.c.id == found.id).values(mine))
    return found


def schedule(store: Store, runner: str, job_id: str, windows: Sequence[Window]) -> bool:
    """Fix when each release of a job starts and is told, from public facts; whether the job is still this runner's."""
    fixed = {"taken_at": windows[0].start, "deliver_at": windows[-1].told, "windows": json.dumps(windows)}
    return _mine(store, runner, job_id, **fixed)


def begin_charging(store: Store, runner: str, job_id: str, mark: int) -> bool:
    """From here on a job cannot be cancelled; false if it was. `mark` is the ledger's last entry of the dataset.

    For a job that charges already it is true as long as the job is this runner's.
    """
    with store.write() as connection:
        free = _of(runner, job_id) & _jobs.c.charging_at.is_(None)
        if connection.execute(update(_jobs).where(free).values(charging_at=now(), mark=mark)).rowcount == 1:
            return True
        return connection.execute(select(_jobs.c.id).where(_of(runner, job_id))).first() is not None


def beat(store: Store, runner: str) -> None:
    """A sign of life for all jobs of a runner."""
    with store.write() as connection:
        mine = (_jobs.c.taken_by == runner) & (_jobs.c.state == "running")
        connection.execute(update(_jobs).where(mine).values(beat_at=now()))


def give_back(store: Store, runner: str, job_id: str) -> bool:
    """Let another runner take a job that was not charged."""
    with store.write() as connection:
        free = _of(runner, job_id) & _jobs.c.charging_at.is_(None)
        cleared = {"state": "waiting", "taken_by": None, "beat_at": None, "taken_at": None, "deliver_at": None}
        return connection.execute(update(_jobs).where(free).values(windows=None, **cleared)).rowcount == 1


def let_go(store: Store, runner: str, job_id: str) -> None:
    """Let another runner go on with a job that was charged for, at once."""
    _mine(store, runner, job_id, beat_at=0)


def end(store: Store, runner: str, job_id: str, *, complete: bool) -> bool:
    """Finished or failed, to be told at the job's slot; with it what it released."""
    with store.write() as connection:
        values = {"state": "finished" if complete else "failed"}
        return connection.execute(update(_jobs).where(_of(runner, job_id)).values(values)).rowcount == 1


def _mine(store: Store, runner: str, job_id: str, **values: Any) -> bool:
    with store.write() as connection:
        return connection.execute(update(_jobs).where(_of(runner, job_id)).values(values)).rowcount == 1


def _of(runner: str, job_id: str) -> Any:
    return (_jobs.c.id == job_id) & (_jobs.c.taken_by == runner) & (_jobs.c.state == "running")
