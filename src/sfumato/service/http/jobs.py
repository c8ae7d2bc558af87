"""Jobs: what waits and runs, and putting an approved plan there."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict
from sqlalchemy import Row, Select, select

from sfumato.service.http.access import Caller, Here, allowed
from sfumato.service.http.paging import Listed, Page, page
from sfumato.service.http.problems import missing
from sfumato.service.jobs.queue import cancel
from sfumato.service.jobs.running import run_plan
from sfumato.service.jobs.slots import told_progress, told_state
from sfumato.service.store import schema
from sfumato.service.store.database import now

router = APIRouter(tags=["jobs"])
JobId = Annotated[str, Path(max_length=80, description="the number of a job")]
PlanId = Annotated[str, Path(max_length=80, description="the number of a plan")]
_jobs, _datasets = schema.jobs, schema.datasets


class Progress(BaseModel):
    """How many releases of a job have had their time, and of how many; it follows from the clock alone.

    Attributes
    ----------
    told, of : int
    """

    model_config = ConfigDict(extra="forbid")
    told: int
    of: int


class Job(BaseModel):
    """A job as its owner is told of it.

    Attributes
    ----------
    id, dataset : str
    plan : str or None
        The plan that it runs; ``None`` for an analyst's request.
    purpose : str or None
        What an analyst asks for.
    state : str
        ``waiting``, ``running``, ``finished``, ``failed`` or ``cancelled``. Until `deliver_at` a job that was taken runs,
        whatever happened; why one failed is not told.
    created_at : int
        Seconds since 1970, as all moments.
    deliver_at : int or None
        When its end is told; known when it is taken.
    progress : Progress or None
    """

    model_config = ConfigDict(extra="forbid")
    id: str
    dataset: str
    plan: str | None
    purpose: str | None
    state: str
    created_at: int
    deliver_at: int | None
    progress: Progress | None


@router.get("/jobs")
def list_jobs(service: Here, caller: Annotated[Caller, allowed("jobs.read")], wanted: Page) -> Listed[Job]:
    """Your own jobs, newest first."""
    with service.store.read() as connection:
        rows, older = page(connection, _mine(caller), wanted, _jobs.c.created_at, _jobs.c.id)
    return Listed(items=[_told(row) for row in rows], older=older)


@router.get("/jobs/{job_id}")
def one_job(service: Here, caller: Annotated[Caller, allowed("jobs.read")], job_id: JobId) -> Job:
    """A job of yours."""
    return _found(service, caller, job_id)


@router.delete("/jobs/{job_id}")
def cancel_job(service: Here, caller: Annotated[Caller, allowed("jobs.cancel")], job_id: JobId) -> Job:
    """Cancel a job of yours that has not begun to charge its budget."""
    cancel(service, caller, job_id)
    return _found(service, caller, job_id)


@router.post("/plans/{plan_id}/run", status_code=202)
def run(service: Here, caller: Annotated[Caller, allowed("plans.run")], plan_id: PlanId) -> Job:
    """Run a plan of yours that an officer approved; asked again, it is the same job."""
    return _found(service, caller, run_plan(service, caller, plan_id))


def _mine(caller: Caller) -> Select[Any]:
    named = select(_jobs, _datasets.c.name.label("dataset")).join(_datasets, _datasets.c.id == _jobs.c.dataset_id)
    return named.where(_jobs.c.account_id == caller.id)


def _found(service: Here, caller: Caller, job_id: str) -> Job:
    with service.store.read() as connection:
        row = connection.execute(_mine(caller).where(_jobs.c.id == job_id)).one_or_none()
    if row is None:
        raise missing()
    return _told(row)


def _told(row: Row[Any]) -> Job:
    moment = now()
    progress = told_progress(row, moment)
    return Job(
        id=row.id,
        dataset=row.dataset,
        plan=row.plan_id,
        purpose=row.purpose,
        state=told_state(row, moment),
        created_at=row.created_at,
        deliver_at=row.deliver_at,
        progress=None if progress is None else Progress(**progress),
    )
