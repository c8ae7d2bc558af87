"""Allowances of analysts, and requests that are approved beforehand."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from sfumato.service.http.access import Caller, Here, allowed
from sfumato.service.http.paging import Listed, Page
from sfumato.service.requesting import granting, preapprovals

router = APIRouter(tags=["allowances"])

Dataset = Annotated[str, Path(min_length=1, max_length=80, description="a dataset's name")]
Number = Annotated[str, Path(min_length=1, max_length=100, description="what `id` says")]
Purpose = Annotated[str, Field(min_length=1, max_length=120)]
Epsilon = Annotated[
    str, Field(pattern=r"^[0-9]{1,9}(\.[0-9]{1,9})?$", max_length=19, description="an exact decimal", examples=["0.25"])
]
_LAST = 253_402_300_799  # the last second of the year 9999


class Granting(BaseModel):
    """What an analyst may spend for a purpose, in all and in one UTC day. "0" ends it."""

    model_config = ConfigDict(extra="forbid")

    analyst: Annotated[str, Field(min_length=1, max_length=120)]
    purpose: Purpose
    epsilon: Epsilon
    per_day: Epsilon | None = None


class Allowed(BaseModel):
    """An allowance: what was granted, what is spent, what is left. ε as exact decimal text."""

    dataset: str
    analyst: str
    purpose: str
    cap: str
    spent: str
    left: str
    per_day: str | None
    day: str
    spent_today: str
    left_today: str
    granted_at: str
    granted_by: str | None


class Approving(BaseModel):
    """Kinds of request that analysts may make for a purpose, each up to a price."""

    model_config = ConfigDict(extra="forbid")

    purpose: Purpose
    kinds: Annotated[list[Annotated[str, Field(max_length=60)]], Field(min_length=1, max_length=50)]
    most: Epsilon
    ends_at: Annotated[int, Field(ge=0, le=_LAST, description="seconds since 1970")] | None = None


class Preapproved(BaseModel):
    """What an officer has approved beforehand."""

    id: str
    dataset: str
    purpose: str
    kinds: list[str]
    most: str
    officer: str
    created_at: int
    ends_at: int | None
    revoked_at: int | None
    in_force: bool


@router.get("/allowances")
def list_allowances(
    caller: Annotated[Caller, allowed("allowances.read")],
    service: Here,
    page: Page,
    dataset: Annotated[str | None, Query(min_length=1, max_length=80, description="only of this dataset")] = None,
) -> Listed[Allowed]:
    """The caller's own allowances if they are an analyst, or those of all analysts; the newest grant first."""
    return Listed[Allowed](**granting.listed(service, caller, dataset, page))


@router.post("/datasets/{dataset}/allowances", status_code=201)
def grant_allowance(
    dataset: Dataset, body: Granting, caller: Annotated[Caller, allowed("allowances.grant")], service: Here
) -> Allowed:
    """Say what an analyst may spend for a purpose from now on. What was spent stays spent."""
    return Allowed(**granting.grant(service, caller, dataset, **body.model_dump()))


@router.get("/datasets/{dataset}/preapprovals")
def list_preapprovals(
    dataset: Dataset, caller: Annotated[Caller, allowed("preapprovals.read")], service: Here, page: Page
) -> Listed[Preapproved]:
    """What officers have approved beforehand, newest first; those that ended or were revoked too."""
    return Listed[Preapproved](**preapprovals.listed(service, caller, dataset, page))


@router.post("/datasets/{dataset}/preapprovals", status_code=201)
def give_preapproval(
    dataset: Dataset, body: Approving, caller: Annotated[Caller, allowed("preapprovals.write")], service: Here
) -> Preapproved:
    """Approve kinds of request beforehand."""
    given = preapprovals.Given(**body.model_dump())
    return Preapproved(**preapprovals.give(service, caller, dataset, given))


@router.get("/preapprovals/{number}")
def read_preapproval(number: Number, caller: Annotated[Caller, allowed("preapprovals.read")], service: Here) -> Preapproved:
    """What was approved beforehand under this number."""
    return Preapproved(**preapprovals.one(service, caller, number))


@router.post("/preapprovals/{number}/revoke")
def revoke_preapproval(
    number: Number, caller: Annotated[Caller, allowed("preapprovals.write")], service: Here
) -> Preapproved:
    """End it now. Requests that wait are not covered any more; what was charged stays spent."""
    return Preapproved(**preapprovals.revoke(service, caller, number))
