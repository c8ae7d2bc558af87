"""The people of a dataset, for its custodian."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request

from sfumato.service.http.access import Caller, Here, allowed
from sfumato.service.http.idempotency import shown_once
from sfumato.service.http.person_models import (
    Asked,
    DatasetPath,
    EpochSent,
    EpochShown,
    Invitations,
    InvitedSent,
    NextEpoch,
    PeopleSent,
    PeopleShown,
)
from sfumato.service.people import bringing

router = APIRouter(tags=["people"])


@router.get("/datasets/{dataset}/people")
def people(caller: Annotated[Caller, allowed("people.read")], service: Here, dataset: DatasetPath) -> PeopleShown:
    """Where people stand, by tier, and what waits; of a private roster only the menu."""
    return PeopleShown.model_validate(bringing.standing(service, caller, dataset))


@router.post("/datasets/{dataset}/people")
def bring(
    caller: Annotated[Caller, allowed("people.bring")], service: Here, dataset: DatasetPath, sent: PeopleSent
) -> Asked:
    """Bring people with what they grant, at the next epoch. Whoever has chosen for themselves is left as they are."""
    pairs = [(one.person, one.grant) for one in sent.people]
    return Asked.model_validate(bringing.bring(service, caller.id, dataset, pairs))


@router.post("/datasets/{dataset}/invitations", status_code=201)
def invite(
    caller: Annotated[Caller, allowed("people.invite")],
    service: Here,
    request: Request,
    dataset: DatasetPath,
    sent: InvitedSent,
) -> Invitations:
    """A code for each person, shown once, with which they make an account and see what is theirs."""
    shown_once(request)
    return Invitations.model_validate(bringing.invite(service, caller.id, dataset, sent.people, days=sent.days))


@router.post("/datasets/{dataset}/epochs", status_code=201)
def close_epoch(
    caller: Annotated[Caller, allowed("people.epoch")], service: Here, dataset: DatasetPath, sent: EpochSent
) -> EpochShown:
    """Close an epoch: everything that waits comes into force."""
    return EpochShown.model_validate(bringing.close_epoch(service, caller.id, dataset, sent.next))


@router.put("/datasets/{dataset}/epochs/next")
def announce(
    caller: Annotated[Caller, allowed("people.epoch")], service: Here, dataset: DatasetPath, sent: EpochSent
) -> NextEpoch:
    """Say when the next epoch is to be, or take it back."""
    return NextEpoch.model_validate(bringing.announce(service, caller.id, dataset, sent.next))
