"""Requests read from the description: for every address, every place where a text goes in.

An attack that is tried by kind puts its text into each of those places, one at a time, in a request that is right otherwise,
so a field that somebody adds later is attacked too.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

Place = tuple[str, ...]
"""Where a text goes: ("path", name), ("query", name), ("header", name), or ("body", key, "0", key ...)."""


@dataclass(frozen=True)
class Call:
    """A request: an address with its parameters filled in, and what goes with it."""

    method: str
    template: str
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None

    @property
    def url(self) -> str:
        """The address; whatever a parameter holds stays within its own segment."""
        found = self.template
        for name, value in self.path.items():
            found = found.replace("{" + name + "}", quote(value, safe="", errors="surrogatepass"))
        return found

    def with_text(self, place: Place, text: str) -> Call:
        """The same with another text at one place."""
        kind, *rest = place
        if kind == "body":
            body = copy.deepcopy(self.body)
            inner = body
            for step in rest[:-1]:
                inner = inner[int(step)] if isinstance(inner, list) else inner[step]
            inner[int(rest[-1]) if isinstance(inner, list) else rest[-1]] = text
            return replace(self, body=body)
        slot = {"path": "path", "query": "query", "header": "headers"}[kind]
        return replace(self, **{slot: {**getattr(self, slot), rest[0]: text}})


class Description:
    """The OpenAPI description of an application."""

    def __init__(self, app: Any) -> None:
        self.whole = app.openapi()

    def operations(self) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Method, address and what is said of it."""
        for path, methods in self.whole["paths"].items():
            for method, operation in methods.items():
                yield method.upper(), path, operation

    def call(self, method: str, path: str, known: Call | None = None) -> Call:
        """A whole request: what is `known` to be right, and examples for everything else that can be said."""
        operation = self.whole["paths"][path][method.lower()]
        made: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "header": {}, "cookie": {}}
        for parameter in operation.get("parameters", ()):
            made[parameter["in"]][parameter["name"]] = self.example(parameter["schema"])
        body = None
        for content in operation.get("requestBody", {}).get("content", {}).values():
            body = self.example(content["schema"], whole=True)
        if known is None:
            return Call(method, path, made["path"], made["query"], made["header"], body)
        return Call(
            method,
            path,
            {**made["path"], **known.path},
            dict(known.query),
            dict(known.headers),
            known.body if known.body is not None else body,
        )

    def texts(self, method: str, path: str, call: Call) -> list[Place]:
        """Every place of the address, of its parameters and of the call's body where a text goes in."""
        operation = self.whole["paths"][path][method.lower()]
        places: list[Place] = [
            (parameter["in"], parameter["name"])
            for parameter in operation.get("parameters", ())
            if parameter["in"] != "cookie"
        ]
        return places + [("body", *inner) for inner in _texts(call.body)]

    def resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """A schema, not a reference to one."""
        while "$ref" in schema:
            schema = self.whole["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return schema

    def example(self, schema: Mapping[str, Any], *, whole: bool = False, depth: int = 0) -> Any:
        """A value that a schema allows, the smallest; with everything that is optional if `whole`."""
        schema = self.resolved(schema)
        for given in ("const", "default"):
            if given in schema and schema[given] not in (None, [], {}):
                return schema[given]
        if schema.get("enum"):
            return schema["enum"][0]
        for part in ("anyOf", "oneOf", "allOf"):
            if part in schema:
                chosen = [s for s in schema[part] if self.resolved(s).get("type") != "null"]
                return self.example(chosen[0], whole=whole, depth=depth) if chosen else None
        kind = schema.get("type", "object" if "properties" in schema else "string")
        if kind == "object":
            wanted = schema.get("properties", {}) if whole and depth < 6 else schema.get("required", ())
            found = {
                name: self.example(schema["properties"][name], whole=whole, depth=depth + 1)
                for name in wanted
                if name in schema.get("properties", {})
            }
            more = schema.get("additionalProperties")
            if whole and isinstance(more, dict) and not found:
                found["key"] = self.example(more, whole=whole, depth=depth + 1)
            return found
        if kind == "array":
            size = max(schema.get("minItems", 0), 1 if whole else 0)
            return [self.example(schema.get("items", {}), whole=whole, depth=depth + 1) for _ in range(size)]
        if kind == "integer":
            return int(schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1))
        if kind == "number":
            return float(schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1))
        if kind == "boolean":
            return False
        if kind == "null":
            return None
        return _text(schema)


def _text(schema: Mapping[str, Any]) -> str:
    """A text that fits: an amount where the pattern lets digits through only."""
    import re

    pattern = schema.get("pattern", "")
    for candidate in ("a", "0.1", "1", "plan_AAAAAAAAAAAAAAAAAAAAAA", "2026-01-01", "a" * 40, "123456", "0" * 64):
        wide_enough = len(candidate) >= schema.get("minLength", 0) and len(candidate) <= schema.get("maxLength", 10**6)
        if wide_enough and re.search(pattern, candidate):
            return candidate
    return "a" * max(1, schema.get("minLength", 1))


def _texts(value: Any) -> Iterator[Place]:
    if isinstance(value, str):
        yield ()
    elif isinstance(value, dict):
        for name, inner in value.items():
            for rest in _texts(inner):
                yield (name, *rest)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            for rest in _texts(inner):
                yield (str(number), *rest)
