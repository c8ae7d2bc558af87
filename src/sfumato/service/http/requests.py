"""What analysts ask."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from sfumato.service.http.access import Caller, Here, allowed
from sfumato.service.requesting import asking

router = APIRouter(tags=["requests"])

Dataset = Annotated[str, Path(min_length=1, max_length=80, description="a dataset's name")]
Purpose = Annotated[str, Field(min_length=1, max_length=120)]


class Asked(BaseModel):
    """One release for a purpose. `release` has the keys of a plan's ``[[release]]``; its recipient is whoever asks."""

    model_config = ConfigDict(extra="forbid")

    purpose: Purpose
    release: dict[Annotated[str, Field(max_length=200)], Any] = Field(
        max_length=100, examples=[{"kind": "count", "where": "age >= 65", "epsilon": "0.1"}]
    )


class Queued(BaseModel):
    """A request that waits for its turn."""

    job: str
    price: str | None
    already_paid: bool


class Previewed(BaseModel):
    """What a request would cost and tell, and why it would be refused now."""

    price: str | None
    fits: bool
    refusals: list[str]
    release: dict[str, Any] | None
    allowance: dict[str, Any] | None


@router.post("/datasets/{dataset}/requests", status_code=202)
def make_request(
    dataset: Dataset, body: Asked, caller: Annotated[Caller, allowed("requests.make")], service: Here
) -> Queued:
    """Ask for a release that is approved beforehand. It is charged when its turn comes, to the caller's allowance too."""
    return Queued(**asking.ask(service, caller, dataset, body.purpose, body.release))


@router.post("/datasets/{dataset}/requests/preview")
def preview_request(
    dataset: Dataset, body: Asked, caller: Annotated[Caller, allowed("requests.preview")], service: Here
) -> Previewed:
    """What a request would cost, the expected error of every mechanism, and whether it may be made. Nothing is spent."""
    return Previewed(**asking.preview(service, caller, dataset, body.purpose, body.release))
