"""Every way into the service, read from the application itself: whatever is not found here cannot be called.

FastAPI keeps an included router as one object (older versions copied its routes), so `app.routes` alone shows none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sfumato.service.http.access import action_of


@dataclass(frozen=True)
class Endpoint:
    """One method of one address, with the action that it asks for."""

    method: str
    path: str
    action: str | None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def endpoints(app: Any) -> list[Endpoint]:
    """All of them, in the order of their addresses; HEAD goes with GET."""
    found = [
        Endpoint(method, route.path, action_of(route) if hasattr(route, "dependant") else None)
        for route in flat(app.routes)
        for method in sorted(set(route.methods or ()) - {"HEAD"})
    ]
    assert len(set(found)) == len(found), "two routes answer the same address"
    return sorted(found, key=lambda endpoint: (endpoint.path, endpoint.method))


def flat(routes: Iterable[Any]) -> Iterator[Any]:
    """The routes of routers within routers; what is neither a route nor a router must not be there."""
    for route in routes:
        if hasattr(route, "effective_route_contexts"):
            yield from route.effective_route_contexts()
        elif hasattr(route, "methods"):
            yield route
        else:
            raise AssertionError(f"{route!r} can be called and is not under the table of roles")
