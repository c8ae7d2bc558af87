"""What a job may release, found out anew from the database: an approval is not taken from whoever put the job there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, select

from sfumato.errors import PrivacyError
from sfumato.service.context import Service
from sfumato.service.jobs.slots import asked_by
from sfumato.service.planning.digests import digest_of
from sfumato.service.store import schema


@dataclass(frozen=True)
class Approved:
    """What a job may release.

    Attributes
    ----------
    dataset : row
        The line of the dataset.
    releases : list
        The tables of the releases.
    by : str
        Who asks, for the ledger.
    analyst, purpose : str or None
        Whose allowance pays, where an analyst asks.
    """

    dataset: Row[Any]
    releases: list[dict[str, Any]]
    by: str
    analyst: str | None = None
    purpose: str | None = None


def job_row(connection: Connection, job_id: str) -> Row[Any]:
    """A job as the database has it."""
    return connection.execute(select(schema.jobs).where(schema.jobs.c.id == job_id)).one()


def parts_of(connection: Connection, job: Row[Any]) -> tuple[Row[Any], list[str], bool]:
    """The dataset of a job, the names of its releases, and whether heads of a private roster come first. All is public."""
    dataset = _one(connection, schema.datasets, job.dataset_id)
    if job.plan_id is None:
        releases = [json.loads(job.request)]
    else:
        releases = json.loads(_one(connection, schema.plans, job.plan_id).releases)
    people = {} if dataset.people is None else json.loads(dataset.people)
    return dataset, [str(release["name"]) for release in releases], people.get("roster") == "private"


def approved(service: Service, job_id: str) -> Approved:
    """What a job may release; refused where not every approval is there that it needs."""
    with service.store.read() as connection:
        job = job_row(connection, job_id)
        account = _active(connection, job.account_id)
        dataset = _one(connection, schema.datasets, job.dataset_id)
        by = asked_by(account.name, job_id)
        if job.plan_id is not None:
            return Approved(dataset, _plan(connection, job, account), by)
        return Approved(dataset, [_request(service, connection, job, account, dataset)], by, account.name, job.purpose)


def _plan(connection: Connection, job: Row[Any], account: Row[Any]) -> list[dict[str, Any]]:
    """The releases of a plan that an officer has approved as it is, who is not its author."""
    plan = _one(connection, schema.plans, job.plan_id)
    table = schema.decisions
    decision = connection.execute(select(table).where(table.c.plan_id == plan.id)).one_or_none()
    if decision is None or decision.decision != "approved" or plan.state not in ("approved", "run"):
        raise PrivacyError("no officer has approved this plan; nothing is released and nothing was spent")
    officer = _one(connection, schema.accounts, decision.officer_id)
    if officer.role != "officer" or officer.id == plan.author_id:
        raise PrivacyError("this plan was not approved by an officer other than its author; nothing was spent")
    if account.role != "custodian" or account.id != plan.author_id or plan.dataset_id != job.dataset_id:
        raise PrivacyError("this job is not its plan's custodian's; nothing was spent")
    if decision.plan_digest != plan.digest or digest_of(connection, plan) != plan.digest:
        raise PrivacyError("this plan is not the one that was approved; nothing was spent")
    found: list[dict[str, Any]] = json.loads(plan.releases)
    return found


def _request(
    service: Service, connection: Connection, job: Row[Any], account: Row[Any], dataset: Row[Any]
) -> dict[str, Any]:
    """What an analyst asks, for nobody but themselves."""
    found: dict[str, Any] = json.loads(job.request)
    if account.role != "analyst" or found.get("recipient") != account.name or job.purpose is None:
        raise PrivacyError("an analyst's request is for an analyst, to themselves and for a purpose; nothing was spent")
    return found


def _one(connection: Connection, table: Any, row_id: str) -> Row[Any]:
    return connection.execute(select(table).where(table.c.id == row_id)).one()


def _active(connection: Connection, account_id: str) -> Row[Any]:
    account = _one(connection, schema.accounts, account_id)
    if account.state != "active":
        raise PrivacyError("whoever asked for this has no active account any more; nothing was spent")
    return account
