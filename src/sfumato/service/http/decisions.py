"""Decisions about plans, and the record for an assessment."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict
from sqlalchemy import Row

from sfumato.service.http.access import Caller, Here, allowed
from sfumato.service.http.paging import Listed, Page, page
from sfumato.service.http.planned import Digest, Words
from sfumato.service.http.plans import PlanId, PlanListed, PlanShown, listed, shown
from sfumato.service.http.sources import Dataset
from sfumato.service.planning import decisions
from sfumato.service.planning.datasets import dataset_of
from sfumato.service.planning.record import record_of
from sfumato.service.planning.record_page import page as markdown
from sfumato.service.store import schema

router = APIRouter(tags=["decisions"])


class DecisionGiven(BaseModel):
    """A decision with its reason, about the plan with this digest."""

    model_config = ConfigDict(extra="forbid")
    decision: Literal["approved", "refused"]
    reason: Words
    digest: Digest


class DecisionShown(BaseModel):
    """What was decided."""

    plan: str
    plan_digest: str
    decision: Literal["approved", "refused"]
    officer: str
    reason: str
    decided_at: int


class Approval(BaseModel):
    """What an officer decides on: the plan, what it costs and promises, and how it differs from the last one approved."""

    plan: PlanShown
    preview: dict[str, Any]
    differences: dict[str, Any] | None
    decision: DecisionShown | None


class Decided(BaseModel):
    """A plan and what was decided about it."""

    plan: PlanShown
    decision: DecisionShown


def _decision(row: Row[Any]) -> DecisionShown:
    return DecisionShown(
        plan=row.plan_id,
        plan_digest=row.plan_digest,
        decision=row.decision,
        officer=row.officer,
        reason=row.reason,
        decided_at=row.decided_at,
    )


@router.get("/approvals")
def list_approvals(service: Here, caller: Annotated[Caller, allowed("approvals.read")], asked: Page) -> Listed[PlanListed]:
    """The plans that wait for a decision, those submitted last first."""
    table = schema.plans
    with service.store.read() as connection:
        rows, older = page(connection, decisions.queue(), asked, table.c.submitted_at, table.c.id)
    return Listed(items=[PlanListed(**listed(row, caller)) for row in rows], older=older)


@router.get("/approvals/{plan}")
def read_approval(service: Here, caller: Annotated[Caller, allowed("approvals.read")], plan: PlanId) -> Approval:
    """What there is to decide on, with the preview as of now; of a plan that was decided, as it was submitted."""
    found = decisions.for_officer(service, caller, plan)
    decided = found["decision"]
    return Approval(
        plan=shown(found["plan"], caller),
        preview=found["preview"],
        differences=found["differences"],
        decision=None if decided is None else _decision(decided),
    )


@router.post("/approvals/{plan}")
def decide(service: Here, caller: Annotated[Caller, allowed("plans.decide")], plan: PlanId, given: DecisionGiven) -> Decided:
    """Approve or refuse a plan, once, and never one's own. Needs a one-time code."""
    about: dict[str, Any] = {"decision": given.decision, "reason": given.reason, "digest": given.digest}
    found, decided = decisions.decide(service, caller, plan, **about)
    return Decided(plan=shown(found, caller), decision=_decision(decided))


@router.get("/datasets/{dataset}/record", response_model=None)
def export_record(
    service: Here,
    caller: Annotated[Caller, allowed("record.export")],
    dataset: Dataset,
    request: Request,
    format: Annotated[Literal["json", "markdown"] | None, Query()] = None,
) -> Response:
    """The record for a data-protection impact assessment, as JSON or as Markdown."""
    with service.store.read() as connection:
        found = dataset_of(connection, dataset)
    made = record_of(service, found)
    if format is None and "text/markdown" in request.headers.get("accept", ""):
        format = "markdown"
    if format == "markdown":
        return Response(markdown(made), media_type="text/markdown; charset=utf-8")
    return Response(json.dumps(made, ensure_ascii=True), media_type="application/json")
