"""Requests that schemathesis makes up from the description, sent as each kind of people.

Half of them name things that exist, their own and others', in the place of made-up names: those reach the code behind the
look-up. No answer is a 5xx, every answer is of the declared status, content type and form, and no answer holds a text that
was planted where only others may see it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from sfumato.service.roles import ROLES

NOT_SENT = ("GET /readyz",)
"""Whose 503 is its answer where no runner runs."""

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@dataclass
class Tally:
    """How many requests were sent, and how they were answered."""

    statuses: Counter[int] = field(default_factory=Counter)
    answered: Counter[tuple[str, str | None]] = field(default_factory=Counter)
    """Addresses that gave what was asked for, and to whom."""

    @property
    def cases(self) -> int:
        """How many."""
        return sum(self.statuses.values())


def operations(world: Any) -> list[Any]:
    """Every address that is sent something."""
    schema = schemathesis.openapi.from_asgi("/v1/openapi.json", world.app)
    found = [operation.ok() for operation in schema.get_all_operations()]
    return [operation for operation in found if operation.label not in NOT_SENT]


def fuzz(world: Any, operation: Any, examples: int, tally: Tally) -> None:
    """Make up requests for an address, and send each of them as every kind of people and as nobody.

    Making them up costs more than sending them, so each is sent by all; whoever may send it does so last.
    """
    roles = operation.definition.raw.get("x-roles", ())
    callers = sorted((None, *ROLES), key=lambda role: role in roles)
    _fuzz_one(operation, tally, world, known_names(world), callers, examples)


def _fuzz_one(operation: Any, tally: Tally, world: Any, known: Any, callers: Sequence[str | None], examples: int) -> None:
    right = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    wrong = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
    names = {name: st.sampled_from(known[name]) for name in _parameters(operation.path) if known.get(name)}

    @settings(
        max_examples=examples,
        phases=(Phase.explicit, Phase.generate),
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of(right, wrong), st.fixed_dictionaries(names), st.booleans())
    def send(case: Any, real: dict[str, str], use: bool) -> None:
        if use and isinstance(case.path_parameters, dict):
            case.path_parameters = {**case.path_parameters, **real}
        for caller in callers:
            answer = case.call(headers={} if caller is None else {"X-Test-Caller": caller})
            tally.statuses[answer.status_code] += 1
            if answer.status_code < 300:
                tally.answered[operation.label, caller] += 1
            case.validate_response(answer, checks=CHECKS)
            told = answer.content.decode("utf-8", "replace") + str(dict(answer.headers))
            leaked = [text for text in world.hidden_from(caller) if text in told]
            assert not leaked, f"{operation.label} told {leaked} to {caller}"

    send()


def _parameters(path: str) -> list[str]:
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]


def known_names(world: Any) -> dict[str, list[str]]:
    """Names that exist, by path parameter: everybody's, so that others' are tried too."""
    found: dict[str, set[str]] = {}
    for things in world.things.values():
        for thing, value in things.items():
            for parameter in _MEANS.get(thing, (thing,) if " " not in thing else ()):
                found.setdefault(parameter, set()).add(value)
    found["name"] = {"certificate.json", "data.csv", "report.html"}
    return {parameter: sorted(values) for parameter, values in found.items()}


_MEANS = {
    **{f"{state} plan": ("plan", "plan_id") for state in ("draft", "submitted", "approved", "run", "refused", "withdrawn")},
    "account": ("account_id",),
    "job": ("job_id",),
    "waiting job": ("job_id",),
    "preapproval": ("number",),
    "entry": ("number",),
    "release": ("release_id",),
    "token": ("token_id",),
}
"""Which parameters a thing of the world goes into."""
