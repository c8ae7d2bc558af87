"""The log: checkpoints, proofs, keys."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict

from sfumato.ledger.caps import MAX_BIGINT
from sfumato.service import following
from sfumato.service.http.access import Caller, Here, allowed
from sfumato.service.http.paging import Listed, Page
from sfumato.service.store.database import record

router = APIRouter(tags=["log"])

Dataset = Annotated[str, Path(min_length=1, max_length=80, description="a dataset's name")]
Reader = Annotated[Caller, allowed("log.read")]
Size = Annotated[int | None, Query(ge=0, le=MAX_BIGINT, description="for the log when it had so many entries")]


class Signature(BaseModel):
    """A signature by Ed25519 and the id of the key."""

    key_id: str
    ed25519: str


class SignedCheckpoint(BaseModel):
    """The state of a log, signed. Keep it: a log that was rewritten does not fit it any more."""

    model_config = ConfigDict(extra="forbid")
    type: str
    dataset: str
    size: int
    root: str
    at: str
    signature: Signature


class LogEntry(BaseModel):
    """An entry: the hash for everybody, kind and body for whom they are due to."""

    number: int
    leaf: str
    kind: str | None
    body: str | None


class InclusionProof(BaseModel):
    """That an entry is in the log: hash the body, and the path leads to the root (RFC 9162)."""

    index: int
    leaf: str
    body: str | None
    size: int
    root: str
    path: list[str]


class State(BaseModel):
    """A state of a log."""

    type: str
    dataset: str
    size: int
    root: str


class ConsistencyProof(BaseModel):
    """That a log only grew: both roots follow from the path (RFC 9162)."""

    old: State
    new: State
    path: list[str]


class PublicKey(BaseModel):
    """A public key; each but the first is signed by the one before it."""

    key_id: str
    ed25519: str
    since: str
    follows: str | None = None
    signature: str | None = None


class PublicKeys(BaseModel):
    """All public keys, oldest first: the file for ``sfumato verify --keys``."""

    keys: list[PublicKey]


@router.get("/log/{dataset}/checkpoint")
def read_checkpoint(dataset: Dataset, caller: Reader, service: Here) -> SignedCheckpoint:
    """The state of a dataset's log now, signed."""
    return SignedCheckpoint(**following.checkpoint(service, caller, dataset))


@router.get("/log/{dataset}/entries")
def list_entries(dataset: Dataset, caller: Reader, service: Here, page: Page) -> Listed[LogEntry]:
    """The entries of a dataset's log, newest first."""
    found: dict[str, Any] = following.entries(service, caller, dataset, page)
    return Listed[LogEntry](**found)


@router.get("/log/{dataset}/entries/{number}/proof")
def prove_entry(
    dataset: Dataset,
    number: Annotated[int, Path(ge=0, le=MAX_BIGINT, description="the place of an entry, from 0")],
    caller: Reader,
    service: Here,
    size: Size = None,
) -> InclusionProof:
    """The proof that an entry is in the log."""
    return InclusionProof(**following.proof(service, caller, dataset, number, size))


@router.get("/log/{dataset}/consistency")
def prove_consistency(
    dataset: Dataset,
    caller: Reader,
    service: Here,
    old: Annotated[int, Query(ge=0, le=MAX_BIGINT, description="the size of the smaller log")],
    new: Size = None,
) -> ConsistencyProof:
    """The proof that the log only grew from one size to another, or to now."""
    return ConsistencyProof(**following.consistency(service, caller, dataset, old, new))


@router.get("/keys", response_model_exclude_none=True)
def list_keys(caller: Annotated[Caller, allowed("keys.read")], service: Here) -> PublicKeys:
    """The public keys with which signatures are checked."""
    return PublicKeys(keys=[PublicKey(**key) for key in service.keys.public()])


@router.post("/keys/rotate", status_code=201, response_model_exclude_none=True)
def rotate_keys(caller: Annotated[Caller, allowed("keys.rotate")], service: Here) -> PublicKeys:
    """Make a new signing key, signed by the one before it. What older keys signed stays valid."""
    made = service.keys.rotate()
    with service.store.write() as connection:
        record(connection, "keys.rotate", account_id=caller.id, target=made)
    return PublicKeys(keys=[PublicKey(**key) for key in service.keys.public()])
