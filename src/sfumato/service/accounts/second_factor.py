"""The second factor: a one-time code (RFC 6238) for each action that asks for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.service.http.problems import ProblemError

if TYPE_CHECKING:
    from sfumato.service.context import Service
    from sfumato.service.http.access import Caller


def confirm_code(service: Service, caller: Caller, code: str | None) -> None:
    """Use up a code of the caller's; refused if it is not one, or was used before."""
    raise ProblemError(403, "this needs a one-time code in the header X-One-Time-Code")
