"""What was spent and what is left."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel

from sfumato.service.http.access import Caller, Here, allowed
from sfumato.service.http.paging import Listed, Page
from sfumato.service.requesting import spending

router = APIRouter(tags=["ledger"])

Dataset = Annotated[str, Path(min_length=1, max_length=80, description="a dataset's name")]


class Cap(BaseModel):
    """A cap, what it has carried, and what it still allows; without one it only records."""

    cap: str | None
    spent: str
    left: str | None


class Tier(BaseModel):
    """People whose budgets are alike: from the least to the most of them."""

    name: str | None
    people: int | None
    levels: int
    budget: list[str]
    spent: list[str]
    left: list[str]


class Balance(BaseModel):
    """Who has what left in a dataset. ε as exact decimal text."""

    dataset: str
    total: Cap
    together: Cap | None
    attributes: dict[str, Cap]
    recipients: dict[str, Cap]
    people: list[Tier] | None


class Charged(BaseModel):
    """What a release was charged to one cap."""

    kind: str
    name: str
    epsilon: str


class Entry(BaseModel):
    """One release: who asked for what, what it cost, how it ended. How it ended is told when its job is."""

    id: int
    name: str | None
    kind: str | None
    columns: list[str]
    where: str | None
    recipient: str | None
    by: str | None
    job: str | None
    analyst: str | None
    purpose: str | None
    state: str
    total: str
    charges: list[Charged]
    people: str | None
    reserved_at: str
    finished_at: str | None
    epoch: int | None
    fingerprint: str


@router.get("/datasets/{dataset}/balance")
def read_balance(dataset: Dataset, caller: Annotated[Caller, allowed("ledger.read")], service: Here) -> Balance:
    """Every cap of a dataset, and its people by tier; allowances are a list of their own."""
    return Balance(**spending.balance(service, caller, dataset))


@router.get("/datasets/{dataset}/history")
def list_history(
    dataset: Dataset, caller: Annotated[Caller, allowed("ledger.read")], service: Here, page: Page
) -> Listed[Entry]:
    """Every release that was charged, newest first."""
    found: dict[str, Any] = spending.history(service, caller, dataset, page)
    return Listed[Entry](**found)
