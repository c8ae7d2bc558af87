"""Who sends a request: by the cookie of a session or by a token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import Request

if TYPE_CHECKING:
    from sfumato.service.context import Service
    from sfumato.service.http.access import Caller


def recognise(service: Service, request: Request) -> Caller | None:
    """The caller, or ``None`` for nobody that is known."""
    return None
