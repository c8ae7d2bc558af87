"""``Idempotency-Key``: a request that is sent again is answered again, and done once.

Routes do nothing for it. `access.allowed` calls `begin` as soon as it knows the caller, for every POST with the header; the
middleware in `guarding` gives the reply to `finish`. What is kept is the reply to a request that made something (2xx),
sealed, for a day and for its account; after an error nothing was made and the key is free again. A reply that shows a
secret is marked by `shown_once` and not kept.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any, Final

from fastapi import Request
from sqlalchemy import delete, select, update

from sfumato.service.context import Service
from sfumato.service.http.problems import ProblemError
from sfumato.service.store import database, schema
from sfumato.service.store.inserting import insert_new

HEADER: Final = "idempotency-key"
KEPT: Final = 86_400
LARGEST: Final = 1_048_576
_KEY = re.compile(r"[\x21-\x7e]{1,200}")
_STATE: Final = "idempotent"
_replies = schema.replies


@dataclass
class Begun:
    """A request with a key that is under way.

    Attributes
    ----------
    account_id : str
        Whose it is.
    key : str
        The header.
    secret : bool
        Whether its reply may be shown once only.
    """

    account_id: str
    key: str
    secret: bool = False


class ReplayError(Exception):
    """Not an error: the request was done before, and this is what was answered."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__("answered before")
        self.status, self.body = status, body


def digest_of_request(method: str, path: str, query: bytes, body: bytes) -> str:
    """What makes two requests the same one."""
    told = hashlib.sha256()
    for part in (method.encode(), path.encode("utf-8", "surrogatepass"), query, body):
        told.update(len(part).to_bytes(8, "big") + part)
    return told.hexdigest()


def begin(service: Service, account_id: str, request: Request) -> None:
    """Take the key of a request for this account; one that was taken before is answered or refused.

    Parameters
    ----------
    service : Service
    account_id : str
        Who is calling.
    request : Request
        Whose digest the middleware has put into its state.

    Raises
    ------
    ReplayError
        With the reply that was given before.
    ProblemError
        If the key is not one (422), was used for another request (422), or is under way (409).
    """
    key = request.headers.get(HEADER)
    if key is None or request.method != "POST" or getattr(request.state, _STATE, None) is not None:
        return
    if not _KEY.fullmatch(key):
        raise ProblemError(422, "Idempotency-Key must be 1 to 200 printable ASCII characters without spaces, such as a UUID")
    asked: str = request.state.request_digest
    with service.store.write() as connection:
        # The row goes in last: on PostgreSQL the second of two waits there until the first is told.
        old = delete(_replies).where(_replies.c.account_id == account_id, _replies.c.created_at < database.now() - KEPT)
        connection.execute(old)
        new = insert_new(connection, _replies, account_id=account_id, key=key, request=asked, created_at=database.now())
    if not new:
        _answered_before(service, account_id, key, asked)
    setattr(request.state, _STATE, Begun(account_id, key))


def shown_once(request: Request) -> None:
    """Do not keep the reply to this request: it shows a secret."""
    begun = getattr(request.state, _STATE, None)
    if begun is not None:
        begun.secret = True


def begun_in(scope: Any) -> Begun | None:
    """The key that a request took."""
    found: Begun | None = scope.get("state", {}).get(_STATE)
    return found


def finish(service: Service, begun: Begun, status: int, body: bytes) -> None:
    """Keep the reply to a request that made something; otherwise give the key back."""
    mine = (_replies.c.account_id == begun.account_id, _replies.c.key == begun.key)
    with service.store.write() as connection:
        if not 200 <= status < 300:
            connection.execute(delete(_replies).where(*mine, _replies.c.status.is_(None)))
            return
        connection.execute(update(_replies).where(*mine).values(status=status, body=_kept(service, begun, body)))


def _kept(service: Service, begun: Begun, body: bytes) -> str | None:
    if begun.secret or len(body) > LARGEST:
        return None
    try:
        return service.sealer.seal(body.decode(), _place(begun.account_id, begun.key))
    except UnicodeDecodeError:  # a file, which its address gives again
        return None


def _answered_before(service: Service, account_id: str, key: str, asked: str) -> None:
    with service.store.read() as connection:
        row = connection.execute(
            select(_replies).where(_replies.c.account_id == account_id, _replies.c.key == key)
        ).one_or_none()
    if row is None or (row.status is None and row.request == asked):
        raise ProblemError(
            409,
            "a request with this Idempotency-Key is under way; wait and send it again. If it stays so, the service was"
            " stopped meanwhile: look whether it was done, and send it with another key if not",
            {"Retry-After": "1"},
        )
    if row.request != asked:
        raise ProblemError(422, "this Idempotency-Key was used for another request; use a new one for each")
    if row.body is None:
        raise ProblemError(409, "this request was done; its answer was shown once, or is too long, and is not kept")
    raise ReplayError(row.status, service.sealer.unseal(row.body, _place(account_id, key)).encode())


def _place(account_id: str, key: str) -> str:
    return json.dumps(["reply", account_id, key])
