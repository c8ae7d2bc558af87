"""Requests to a service: with what the caller is known by, tried again where that is harmless, errors as our own.

Tried again is what can be done twice without harm: GET, PUT, DELETE, and a POST, which carries an ``Idempotency-Key`` and so
is done once however often it is sent. Signing in has no such key, and is sent once.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

import httpx

from sfumato import errors
from sfumato.errors import InputError, LedgerError, SfumatoError

RETRIES: Final = 4
LONGEST_WAIT: Final = 30.0
_AGAIN: Final = frozenset({429, 502, 503, 504})
_KINDS: Final = ("BudgetError", "InputError", "LedgerError", "PrivacyError", "SchemaError")


class ServiceError(SfumatoError):
    """The service refused, or could not be reached.

    Parameters
    ----------
    detail : str
        What it said.
    status : int, optional
        The HTTP status; left out where there was no answer.
    """

    def __init__(self, detail: str, status: int | None = None) -> None:
        super().__init__(detail)
        self.status = status


class AccessError(ServiceError):
    """The service does not know the caller (401), or does not let them do this (403).

    Parameters
    ----------
    detail : str
        What it said.
    status : int, optional
        The HTTP status.
    """


class Connection:
    """What a client sends by.

    Parameters
    ----------
    http : httpx.Client
        With the address of the service.
    pause : callable
        Waits for so many seconds.
    """

    def __init__(self, http: httpx.Client, pause: Callable[[float], None] = time.sleep) -> None:
        self._http, self.pause = http, pause

    def get(self, path: str, **query: Any) -> Any:
        """The JSON at a `path`; what is ``None`` in `query` is left out."""
        return _json(self.send("GET", path, params=_given(query)))

    def raw(self, path: str) -> bytes:
        """The bytes at a `path`."""
        return self.send("GET", path).content

    def post(self, path: str, body: Any = None, *, code: str | None = None, key: str | None = None) -> Any:
        """Send a `body`, once, whatever happens on the way.

        Parameters
        ----------
        path : str
            Where to.
        body : JSON, optional
            What.
        code : str, optional
            The one-time code of a second factor.
        key : str, optional
            The ``Idempotency-Key``: the same for the same request; a new one if left out.
        """
        headers = {"Idempotency-Key": key or str(uuid.uuid4())}
        if code is not None:
            headers["X-One-Time-Code"] = code
        return _json(self.send("POST", path, json=body, headers=headers))

    def put(self, path: str, body: Any) -> Any:
        """Put a `body` to a `path`."""
        return _json(self.send("PUT", path, json=body))

    def delete(self, path: str) -> Any:
        """Delete what is at a `path`."""
        return _json(self.send("DELETE", path))

    def pages(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        """Every item of a list, newest first, asked for a page at a time."""
        before = None
        while True:
            found = self.get(path, before=before, **query)
            yield from found["items"]
            before = found["older"]
            if before is None:
                return

    def send(self, method: str, path: str, *, again: bool = True, **more: Any) -> httpx.Response:
        """A request that was answered well.

        Parameters
        ----------
        method, path : str
            Of the request.
        again : bool
            Whether it may be sent again.
        **more
            As for `httpx.Client.request`.
        """
        for turn in range(RETRIES if again else 1):
            last = not again or turn == RETRIES - 1
            try:
                answer = self._http.request(method, f"/v1{path}", **more)
            except httpx.TransportError as error:
                if last:
                    raise ServiceError(
                        f"the service cannot be reached ({type(error).__name__}); check address and network"
                    ) from None
                self.pause(0.5 * 2**turn)
                continue
            if answer.is_success:
                return answer
            wait = _waits(answer)
            if wait is None or last:
                raise error_of(answer)
            self.pause(wait)
        raise AssertionError("a request is sent at least once")

    def close(self) -> None:
        """Let the connection go."""
        self._http.close()

    def __repr__(self) -> str:
        return f"Connection({str(self._http.base_url)!r})"


def place(*parts: str) -> str:
    """A path of which no part leads elsewhere.

    >>> place("datasets", "clinic 2/..", "requests")
    '/datasets/clinic%202%2F../requests'
    """
    for part in parts:
        if part in ("", ".", ".."):
            raise InputError(f"{part!r} is not a name")
    return "/" + "/".join(quote(part, safe="") for part in parts)


def error_of(answer: httpx.Response) -> SfumatoError:
    """The error that an answer is: the same classes that a table on this machine raises."""
    try:
        problem = answer.json()
        detail, kind = str(problem["detail"]), problem.get("kind")
    except (ValueError, KeyError, TypeError, AttributeError):
        detail, kind = f"the service answered with status {answer.status_code}", None
    status = answer.status_code
    if kind in _KINDS:
        made: SfumatoError = getattr(errors, kind)(detail)
        return made
    if status in (401, 403):
        return AccessError(detail, status)
    if status == 422:
        return InputError(detail)
    if status == 503 and kind == "LedgerError":
        return LedgerError(detail)
    return ServiceError(detail, status)


def _waits(answer: httpx.Response) -> float | None:
    """How long to wait before a request is sent again; ``None`` if that would not help."""
    told = answer.headers.get("Retry-After", "")
    if answer.status_code not in _AGAIN and not (answer.status_code == 409 and told):
        return None
    return min(float(told), LONGEST_WAIT) if told.isdigit() else 1.0


def _given(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None}


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json() if answer.content else None
    except ValueError:
        raise ServiceError("this is not the answer of a Sfumato service; check the address", answer.status_code) from None
