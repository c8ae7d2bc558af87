"""Plans: written, previewed, submitted."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Row

from sfumato.service.http.access import Caller, Here, allowed
from sfumato.service.http.paging import Listed, Page, page
from sfumato.service.http.planned import Digest, Line, Releases
from sfumato.service.planning import plans
from sfumato.service.planning.datasets import DATASET_NAME, dataset_for, dataset_of
from sfumato.service.store import schema

router = APIRouter(tags=["plans"])
PlanId = Annotated[str, Path(min_length=1, max_length=100, description="the plan's identifier")]
DatasetName = Annotated[str, Field(max_length=80, pattern=DATASET_NAME)]
State = Literal["draft", "submitted", "approved", "refused", "withdrawn", "run"]


class PlanGiven(BaseModel):
    """A plan to write: a dataset, a name for people, and releases."""

    model_config = ConfigDict(extra="forbid")
    dataset: DatasetName
    name: Line
    releases: Releases


class PlanFileGiven(BaseModel):
    """A plan to write, as the text of a plan file."""

    model_config = ConfigDict(extra="forbid")
    dataset: DatasetName
    name: Line
    toml: Annotated[str, Field(min_length=1, max_length=500_000)]


class PlanChanged(BaseModel):
    """A draft in place of the one with this digest."""

    model_config = ConfigDict(extra="forbid")
    name: Line
    releases: Releases
    digest: Digest


class PreviewGiven(BaseModel):
    """Releases to preview that are not written down."""

    model_config = ConfigDict(extra="forbid")
    dataset: DatasetName
    releases: Releases


class DigestGiven(BaseModel):
    """The digest of what one has read."""

    model_config = ConfigDict(extra="forbid")
    digest: Digest


class PlanListed(BaseModel):
    """A plan in a list."""

    id: str
    dataset: str
    name: str
    author: str
    own: bool
    state: State
    digest: str
    price: str | None
    created_at: int
    submitted_at: int | None


class PlanShown(PlanListed):
    """A plan with its releases."""

    releases: list[dict[str, Any]]


def listed(plan: Row[Any], caller: Caller) -> dict[str, Any]:
    """What a list says of a plan."""
    return {
        "id": plan.id,
        "dataset": plan.dataset,
        "name": plan.name,
        "author": plan.author,
        "own": plan.author_id == caller.id,
        "state": plan.state,
        "digest": plan.digest,
        "price": None if plan.preview is None else json.loads(plan.preview)["price"],
        "created_at": plan.created_at,
        "submitted_at": plan.submitted_at,
    }


def shown(plan: Row[Any], caller: Caller) -> PlanShown:
    """A plan as somebody reads it."""
    return PlanShown(**listed(plan, caller), releases=json.loads(plan.releases))


@router.get("/plans")
def list_plans(
    service: Here,
    caller: Annotated[Caller, allowed("plans.read")],
    asked: Page,
    dataset: Annotated[str | None, Query(max_length=80)] = None,
    state: Annotated[State | None, Query()] = None,
) -> Listed[PlanListed]:
    """Plans, newest first: one's own; to officers all that were submitted, to a custodian those for their datasets."""
    table, query = schema.plans, plans.visible(caller)
    with service.store.read() as connection:
        if dataset is not None:
            query = query.where(table.c.dataset_id == dataset_for(service, connection, caller, dataset).id)
        if state is not None:
            query = query.where(table.c.state == state)
        rows, older = page(connection, query, asked, table.c.created_at, table.c.id)
    return Listed(items=[PlanListed(**listed(row, caller)) for row in rows], older=older)


@router.post("/plans", status_code=201)
def write_plan(service: Here, caller: Annotated[Caller, allowed("plans.write")], given: PlanGiven) -> PlanShown:
    """A new draft."""
    made = plans.create(service, caller, dataset=given.dataset, name=given.name, releases=given.releases)
    return shown(made, caller)


@router.post("/plans/import", status_code=201)
def import_plan(service: Here, caller: Annotated[Caller, allowed("plans.write")], given: PlanFileGiven) -> PlanShown:
    """A new draft from the text of a plan file, in which all but the releases says what the dataset says, or nothing."""
    return shown(plans.create(service, caller, dataset=given.dataset, name=given.name, releases=given.toml), caller)


@router.post("/previews")
def preview_releases(
    service: Here, caller: Annotated[Caller, allowed("plans.preview")], given: PreviewGiven
) -> dict[str, Any]:
    """Price, promise, errors and what is left after, of releases that are not written down. Nothing private is read."""
    with service.store.read() as connection:
        dataset = dataset_for(service, connection, caller, given.dataset)
    return plans.previewed(service, dataset, given.releases)


@router.get("/plans/{plan}")
def read_plan(service: Here, caller: Annotated[Caller, allowed("plans.read")], plan: PlanId) -> PlanShown:
    """One plan."""
    with service.store.read() as connection:
        return shown(plans.plan_of(connection, caller, plan), caller)


@router.put("/plans/{plan}")
def change_plan(
    service: Here, caller: Annotated[Caller, allowed("plans.write")], plan: PlanId, given: PlanChanged
) -> PlanShown:
    """Change a draft of one's own, as long as it is the one that was read."""
    about: dict[str, Any] = {"name": given.name, "releases": given.releases, "digest": given.digest}
    return shown(plans.change(service, caller, plan, **about), caller)


@router.get("/plans/{plan}/file", response_class=PlainTextResponse)
def export_plan(service: Here, caller: Annotated[Caller, allowed("plans.read")], plan: PlanId) -> str:
    """The plan as the text of a plan file."""
    return plans.plan_file(service, caller, plan)


@router.get("/plans/{plan}/preview")
def preview_plan(service: Here, caller: Annotated[Caller, allowed("plans.preview")], plan: PlanId) -> dict[str, Any]:
    """Price, promise, errors and what is left after, as of now. Nothing private is read."""
    with service.store.read() as connection:
        found = plans.plan_of(connection, caller, plan)
        dataset = dataset_of(connection, found.dataset)
    return plans.previewed(service, dataset, json.loads(found.releases))


@router.post("/plans/{plan}/submit")
def submit_plan(
    service: Here, caller: Annotated[Caller, allowed("plans.submit")], plan: PlanId, given: DigestGiven
) -> PlanShown:
    """Hand a draft of one's own to the officers; from then on it never changes."""
    return shown(plans.submit(service, caller, plan, digest=given.digest), caller)


@router.post("/plans/{plan}/withdraw")
def withdraw_plan(service: Here, caller: Annotated[Caller, allowed("plans.submit")], plan: PlanId) -> PlanShown:
    """Take back a plan of one's own on which nobody has decided."""
    return shown(plans.withdraw(service, caller, plan), caller)
