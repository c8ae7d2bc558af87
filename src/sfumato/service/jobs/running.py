"""Putting an approved plan into the queue, once."""

from __future__ import annotations

from sqlalchemy import select, update

from sfumato.service.context import Service
from sfumato.service.http.access import Caller
from sfumato.service.http.problems import ProblemError, missing
from sfumato.service.jobs.queue import enqueue
from sfumato.service.store import schema
from sfumato.service.store.database import record


def run_plan(service: Service, caller: Caller, plan_id: str) -> str:
    """The job of one's own approved plan, which is made with the first call; a plan is run once.

    A job that was cancelled before it charged anything does not count: its plan can be run again.
    """
    plans, jobs = schema.plans, schema.jobs
    with service.store.write() as connection:
        mine = (plans.c.id == plan_id) & (plans.c.author_id == caller.id)
        plan = connection.execute(select(plans).where(mine).with_for_update()).one_or_none()
        if plan is None:
            raise missing()
        if plan.state == "run":
            known = select(jobs.c.id).where(jobs.c.plan_id == plan_id, jobs.c.state != "cancelled")
            return str(connection.execute(known).scalar_one())
        if plan.state != "approved":
            raise ProblemError(409, f"this plan is {plan.state}, and one that an officer approved can be run")
        connection.execute(update(plans).where(mine).values(state="run"))
        job_id = enqueue(connection, dataset_id=plan.dataset_id, account_id=caller.id, plan_id=plan_id)
        record(connection, "plans.run", account_id=caller.id, dataset_id=plan.dataset_id, target=plan_id)
        return job_id
