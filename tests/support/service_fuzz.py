"""Requests that schemathesis makes up from the description, sent as each kind of people.

Half of them name things that exist, their own and others', in the place of made-up names: those reach the code behind the
look-up. No answer is a 5xx, every answer is of the declared status, content type and form, and no answer holds a text that
was planted where only others may see it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
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

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@dataclass
class Tally:
    """How many requests were sent, and how they were answered."""

    statuses: Counter[int] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    """Addresses that gave what was asked for."""

    @property
    def cases(self) -> int:
        """How many."""
        return sum(self.statuses.values())


def fuzz(
    app: Any,
    *,
    headers: Mapping[str, str],
    known: Mapping[str, Sequence[str]],
    hidden: Collection[str],
    allowed: int,
    refused: int,
    role: str | None,
    skip: Collection[str] = (),
) -> Tally:
    """Send requests to every address as somebody.

    `known` has names that exist by path parameter, `hidden` the texts that this caller must never see, `allowed` and
    `refused` say how many requests go to an address that the role may use and to one that it may not.
    """
    tally = Tally()
    schema = schemathesis.openapi.from_asgi("/v1/openapi.json", app)
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.label in skip:
            continue
        roles = operation.definition.raw.get("x-roles", (role,))
        _fuzz_one(operation, tally, headers, known, hidden, allowed if role in roles else refused)
    return tally


def _fuzz_one(operation: Any, tally: Tally, headers: Any, known: Any, hidden: Collection[str], examples: int) -> None:
    right = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    wrong = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
    names = {name: st.sampled_from(sorted(known[name])) for name in _parameters(operation.path) if known.get(name)}

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
        answer = case.call(headers=dict(headers))
        tally.statuses[answer.status_code] += 1
        if answer.status_code < 300:
            tally.answered[operation.label] += 1
        case.validate_response(answer, checks=CHECKS)
        told = answer.content.decode("utf-8", "replace") + str(dict(answer.headers))
        leaked = [text for text in hidden if text in told]
        assert not leaked, f"{operation.label} told {leaked} to {dict(headers)}"

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
