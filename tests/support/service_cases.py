"""One line for each endpoint: a request that is right, what it names, and what its owner is answered.

A name in the address or in the body (``"{dataset}"``) stands for one's own thing, for the same kind of thing of another of
the same role, or for one that is not there. Roles in `shared` have nothing that is another's: officers and administrators.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from support.service_kinds import Call
from support.service_world import COUNT, PEOPLE, PURPOSE, SCHEMA, World

OFFICER = frozenset({"officer"})
ALL_SEEING = frozenset({"officer", "administrator"})
_CALLED = {
    "account_id": "account",
    "plan_id": "plan",
    "job_id": "job",
    "number": "preapproval",
    "release_id": "release",
    "token_id": "token",
}
_NAME = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Case:
    """What an endpoint is sent, and what it answers to somebody who may."""

    status: int = 200
    body: Any = None
    things: Mapping[str, Any] = field(default_factory=dict)
    """Name in the address -> which thing of the world it is, for all or by role."""
    own: Mapping[str, int] = field(default_factory=dict)
    """Roles that are answered something else for their own."""
    shared: frozenset[str] = ALL_SEEING
    missing: int = 404
    query: Mapping[str, Any] = field(default_factory=dict)
    template: str = ""

    def names(self, name: str) -> set[str]:
        """The names in the address and in the body."""
        return {found for found in _NAME.findall(name + repr(self.body)) if found not in ("name",)}

    def call(self, world: World, name: str, role: str, whose: str) -> Call:
        """The request, as somebody of a role sends it: about their own, another's or nothing."""
        method, _, path = name.partition(" ")
        values = {key: self._value(world, key, role, whose) for key in self.names(name)}
        values["name"] = "certificate.json"
        in_path = {key: values[key] for key in _NAME.findall(path)}
        return Call(method, path, in_path, dict(self.query), {}, _filled(self.body, values))

    def _value(self, world: World, key: str, role: str, whose: str) -> str:
        thing = self.things.get(key, _CALLED.get(key, key))
        thing = thing[role] if isinstance(thing, Mapping) else thing
        other = f"{role} 2" if f"{role} 2" in world.things else role
        found = world.things[other if whose == "another's" else role][thing]
        if whose == "missing" and key != "digest":
            return "nowhere" if key == "dataset" else "999" if key == "number" and thing == "entry" else found[:-4] + "AAAA"
        return found


def _filled(body: Any, values: Mapping[str, str]) -> Any:
    if isinstance(body, str):
        return _NAME.sub(lambda found: values.get(found[1], found[0]), body)
    if isinstance(body, dict):
        return {key: _filled(value, values) for key, value in body.items()}
    return [_filled(value, values) for value in body] if isinstance(body, list) else body


_PLANS = {"plan": {"custodian": "approved plan", "officer": "approved plan"}}
_DRAFT, _SUBMITTED = {"plan": "draft plan"}, {"plan": "submitted plan"}
_PASSWORD = "a long walk by the river"
_DATASET = {
    "name": "a new one",
    "source": "source 3",
    "schema": SCHEMA,
    "people": PEOPLE,
    "caps": {"epsilon": "1", "rows": 60},
}
_REQUEST = {"purpose": PURPOSE, "release": {**COUNT, "where": "age >= 30"}}
_SOMEBODY = {"account_id": "account"}

CASES: dict[str, Case] = {
    # open to everybody
    "GET /healthz": Case(),
    "GET /readyz": Case(503),
    "GET /metrics": Case(404),
    "GET /v1/openapi.json": Case(),
    "POST /v1/sign-in": Case(401, {"name": "nobody", "password": _PASSWORD}),
    "POST /v1/join": Case(403, {"code": "AAAA-AAAA-AAAA-AAAA", "name": "somebody", "password": _PASSWORD}),
    "POST /v1/set-password": Case(403, {"code": "AAAA-AAAA-AAAA-AAAA", "password": _PASSWORD}),
    "POST /v1/oidc/start": Case(404, {}),
    "GET /v1/oidc/callback": Case(404, query={"state": "a", "code": "b"}),
    # one's own account
    "GET /v1/session": Case(),
    "POST /v1/sign-out": Case(204),
    "POST /v1/sign-out-elsewhere": Case(204),
    "POST /v1/account/password": Case(403, {"password": _PASSWORD, "new_password": "another walk by the river"}),
    "POST /v1/account/second-factor": Case(403, {"password": _PASSWORD}),
    "POST /v1/account/second-factor/confirm": Case(409, {"code": "123456"}),
    "GET /v1/tokens": Case(),
    "POST /v1/tokens": Case(201, {"name": "mine", "scopes": ["session.read"], "days": 1}),
    "DELETE /v1/tokens/{token_id}": Case(204, shared=frozenset({"administrator"})),
    # the person
    "GET /v1/me": Case(),
    "POST /v1/me/invitations": Case(403, {"code": "AAAA-AAAA-AAAA-AAAA"}),
    "GET /v1/me/{dataset}": Case(),
    "PUT /v1/me/{dataset}/grant": Case(200, {"tier": "strict"}),
    "GET /v1/me/{dataset}/policy": Case(404),
    "PUT /v1/me/{dataset}/policy": Case(
        200, {"recipients": {"adnet": {"epsilon": "0.1", "attributes": {"age": "0.1"}}}, "together": "1"}
    ),
    "GET /v1/me/{dataset}/policy/versions": Case(),
    "GET /v1/me/{dataset}/receipt": Case(),
    "GET /v1/me/{dataset}/statement": Case(),
    "POST /v1/me/{dataset}/withdraw": Case(200, {"confirm": "{dataset}"}),
    # datasets and their people
    "GET /v1/sources": Case(),
    "GET /v1/datasets": Case(),
    "POST /v1/datasets": Case(201, _DATASET),
    "POST /v1/datasets/check": Case(200, _DATASET),
    "GET /v1/datasets/{dataset}": Case(),
    "GET /v1/datasets/{dataset}/people": Case(),
    "POST /v1/datasets/{dataset}/people": Case(200, {"people": [{"person": "new", "grant": "open"}]}),
    "POST /v1/datasets/{dataset}/invitations": Case(201, {"people": ["5"], "days": 1}),
    "POST /v1/datasets/{dataset}/epochs": Case(201, {}),
    "PUT /v1/datasets/{dataset}/epochs/next": Case(200, {"next": "2099-01-01"}),
    # plans and decisions
    "GET /v1/plans": Case(),
    "POST /v1/plans": Case(201, {"dataset": "{dataset}", "name": "a new one", "releases": [COUNT]}),
    "POST /v1/plans/import": Case(
        201,
        {"dataset": "{dataset}", "name": "a new one", "toml": '[[release]]\nname = "a"\nkind = "count"\nepsilon = "0.1"\n'},
    ),
    "POST /v1/previews": Case(200, {"dataset": "{dataset}", "releases": [COUNT]}),
    "GET /v1/plans/{plan}": Case(things=_PLANS),
    "PUT /v1/plans/{plan}": Case(200, {"name": "changed", "releases": [COUNT], "digest": "{digest}"}, _DRAFT),
    "GET /v1/plans/{plan}/file": Case(things=_PLANS),
    "GET /v1/plans/{plan}/preview": Case(things=_PLANS),
    "POST /v1/plans/{plan}/submit": Case(200, {"digest": "{digest}"}, _DRAFT),
    "POST /v1/plans/{plan}/withdraw": Case(200, things=_SUBMITTED),
    "POST /v1/plans/{plan_id}/run": Case(202, things={"plan_id": "approved plan"}),
    "GET /v1/approvals": Case(),
    "GET /v1/approvals/{plan}": Case(things=_SUBMITTED),
    "POST /v1/approvals/{plan}": Case(
        200, {"decision": "approved", "reason": "it is fine", "digest": "{digest}"}, _SUBMITTED
    ),
    "GET /v1/datasets/{dataset}/record": Case(),
    # analysts
    "GET /v1/allowances": Case(),
    "POST /v1/datasets/{dataset}/allowances": Case(201, {"analyst": "analyst", "purpose": PURPOSE, "epsilon": "2"}),
    "GET /v1/datasets/{dataset}/preapprovals": Case(),
    "POST /v1/datasets/{dataset}/preapprovals": Case(201, {"purpose": "care", "kinds": ["count"], "most": "0.1"}),
    "GET /v1/preapprovals/{number}": Case(),
    "POST /v1/preapprovals/{number}/revoke": Case(200),
    "POST /v1/datasets/{dataset}/requests": Case(202, _REQUEST),
    "POST /v1/datasets/{dataset}/requests/preview": Case(200, _REQUEST),
    # what comes of it
    "GET /v1/jobs": Case(),
    "GET /v1/jobs/{job_id}": Case(),
    "DELETE /v1/jobs/{job_id}": Case(
        200, things={"job_id": {"analyst": "waiting job", "custodian": "job"}}, own={"custodian": 409}
    ),
    "GET /v1/releases": Case(),
    "GET /v1/releases/{release_id}": Case(),
    "GET /v1/releases/{release_id}/bundle": Case(),
    "GET /v1/releases/{release_id}/files/{name}": Case(),
    "GET /v1/datasets/{dataset}/balance": Case(),
    "GET /v1/datasets/{dataset}/history": Case(),
    # the log and the keys
    "GET /v1/keys": Case(),
    "POST /v1/keys/rotate": Case(201),
    "GET /v1/log/{dataset}/checkpoint": Case(),
    "GET /v1/log/{dataset}/entries": Case(),
    "GET /v1/log/{dataset}/entries/{number}/proof": Case(things={"number": "entry"}),
    "GET /v1/log/{dataset}/consistency": Case(query={"old": 1}),
    # the house
    "GET /v1/accounts": Case(),
    "POST /v1/accounts": Case(201, {"name": "somebody new", "role": "analyst"}),
    "GET /v1/accounts/{account_id}": Case(things=_SOMEBODY),
    "POST /v1/accounts/{account_id}/disable": Case(409, things=_SOMEBODY),
    "POST /v1/accounts/{account_id}/enable": Case(things=_SOMEBODY),
    "POST /v1/accounts/{account_id}/reset": Case(201, things=_SOMEBODY),
    "POST /v1/accounts/{account_id}/second-factor/reset": Case(204, things=_SOMEBODY),
    "GET /v1/settings": Case(),
}
