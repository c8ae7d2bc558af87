"""Errors as ``application/problem+json`` (RFC 9457): what was asked, what is there, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import OperationalError
from starlette.exceptions import HTTPException

from sfumato.errors import BudgetError, LedgerError, PrivacyError, SfumatoError

_TITLES = {
    400: "The request is not readable",
    401: "Sign in first",
    403: "Not allowed",
    404: "There is no such thing here",
    405: "Not a method of this address",
    408: "It took too long",
    409: "It does not fit what is there",
    413: "Too large",
    422: "Something in the request is not right",
    429: "Too many requests",
    503: "Not available now",
}
MISSING = "there is none of this name that you may see; check the address"

UNFORESEEN = "something went wrong that is not told here; the service's log has the time and the address"


class ProblemError(Exception):
    """An answer that is an error.

    Parameters
    ----------
    status : int
        The HTTP status.
    detail : str
        What was asked, what is there, what to do.
    headers : mapping, optional
        Headers of the answer.
    mistakes : sequence of str
        All that is wrong, where that is more than one thing.
    """

    def __init__(
        self, status: int, detail: str, headers: dict[str, str] | None = None, *, mistakes: Sequence[str] = ()
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers, self.mistakes = status, detail, headers, tuple(mistakes)


def missing() -> ProblemError:
    """What does not exist and what belongs to somebody else look the same."""
    return ProblemError(404, MISSING)


def answer(status: int, detail: str, headers: dict[str, str] | None = None, **more: Any) -> JSONResponse:
    """A problem as a response."""
    body = {"type": "about:blank", "title": _TITLES.get(status, "It did not work"), "status": status, "detail": detail}
    return JSONResponse(body | more, status, headers, media_type="application/problem+json")


def install(app: FastAPI) -> None:
    """Answer every error as a problem; one that nobody foresaw says nothing about itself."""

    @app.exception_handler(ProblemError)
    def _problem(_: Request, error: ProblemError) -> JSONResponse:
        more = {"mistakes": list(error.mistakes)} if error.mistakes else {}
        return answer(error.status, error.detail, error.headers, **more)

    @app.exception_handler(SfumatoError)
    def _refused(_: Request, error: SfumatoError) -> JSONResponse:
        status = 503 if isinstance(error, LedgerError) else 409 if isinstance(error, BudgetError | PrivacyError) else 422
        return answer(status, str(error), kind=type(error).__name__)

    @app.exception_handler(OperationalError)
    def _no_database(_: Request, error: OperationalError) -> JSONResponse:
        return answer(503, "the service's database does not answer; try again in a moment", {"Retry-After": "5"})

    @app.exception_handler(RequestValidationError)
    def _unreadable(_: Request, error: RequestValidationError) -> JSONResponse:
        # Without the values: they may be a password or a person.
        found = [{"at": ".".join(map(str, e["loc"])), "why": e["msg"]} for e in error.errors()[:20]]
        return answer(422, "; ".join(f"{e['at']}: {e['why']}" for e in found), errors=found)

    @app.exception_handler(HTTPException)
    def _http(_: Request, error: HTTPException) -> JSONResponse:
        return answer(error.status_code, str(error.detail), dict(error.headers or {}))

    @app.exception_handler(Exception)
    def _unforeseen(_: Request, error: Exception) -> JSONResponse:
        return answer(500, UNFORESEEN)
