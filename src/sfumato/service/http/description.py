"""The OpenAPI description: what every address has in common is said once, here.

Errors are problems (RFC 9457) whatever the address; an address that asks for an action is under the two ways to be known and
says which roles may do it, from the same table that decides.
"""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI

from sfumato.service.http.access import action_of
from sfumato.service.roles import ACTIONS, ROLES, SECOND_FACTOR

PROBLEM: Final[dict[str, Any]] = {
    "title": "Problem",
    "description": "What was asked, what is there, what to do.",
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["at", "why"],
                "properties": {"at": {"type": "string"}, "why": {"type": "string"}},
            },
        },
    },
}
_REFUSED: Final[dict[str, Any]] = {
    "description": "It was refused, and nothing was changed.",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
_KNOWN_BY: Final[dict[str, Any]] = {
    "token": {"type": "http", "scheme": "bearer", "description": "A token of one's own, or one made for a program."},
    "session": {"type": "apiKey", "in": "cookie", "name": "__Host-sfumato", "description": "What signing in gives."},
}
_METHODS: Final = ("get", "put", "post", "delete", "patch")


class DescribedAPI(FastAPI):
    """An application whose description says what all its addresses have in common."""

    def openapi(self) -> dict[str, Any]:
        """The description, made when it is first asked for."""
        if self.openapi_schema is None:
            self.openapi_schema = _completed(super().openapi(), _actions(self))
        return self.openapi_schema


def _actions(app: FastAPI) -> dict[tuple[str, str], str | None]:
    """Method and address -> action. FastAPI keeps included routers whole, or, in older versions, copies of their routes."""
    found: dict[tuple[str, str], str | None] = {}
    for route in app.routes:
        each: Any = route.effective_route_contexts() if hasattr(route, "effective_route_contexts") else [route]
        for one in each:
            if hasattr(one, "dependant"):
                found |= {(method.lower(), one.path): action_of(one) for method in one.methods or ()}
    return found


def _completed(description: dict[str, Any], actions: dict[tuple[str, str], str | None]) -> dict[str, Any]:
    components = description.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    schemas["Problem"] = PROBLEM
    components["securitySchemes"] = _KNOWN_BY
    for path, methods in description.get("paths", {}).items():
        for method in _METHODS:
            if method not in methods:
                continue
            operation = methods[method]
            responses = operation.setdefault("responses", {})
            for status in [status for status in responses if status[0] in "45"]:
                told = responses[status].get("description", _REFUSED["description"])
                responses[status] = {**_REFUSED, "description": told}  # FastAPI's own form is never sent
            responses.pop("422", None)
            responses["4XX"] = _REFUSED
            action = actions.get((method, path))
            if action is not None:
                operation["security"] = [{"session": []}, {"token": []}]
                operation["x-action"] = action
                operation["x-roles"] = [role for role in ROLES if role in ACTIONS[action]]
                if action in SECOND_FACTOR:
                    operation["x-one-time-code"] = True
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    return description
