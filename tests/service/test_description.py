"""What the description says about every address, and that it is true of a refusal."""

from __future__ import annotations

from sfumato.service.roles import ACTIONS
from support.service_routes import endpoints


def test_every_endpoint_is_described_with_its_action_and_roles(app):
    described = app.openapi()["paths"]
    for endpoint in endpoints(app):
        if endpoint.path == "/v1/openapi.json":
            continue
        operation = described[endpoint.path][endpoint.method.lower()]
        assert operation.get("x-action") == endpoint.action
        assert set(operation.get("x-roles", ())) == set(ACTIONS.get(endpoint.action, ()))
        assert ("security" in operation) == (endpoint.action is not None)


def test_errors_are_described_as_problems_and_nothing_else(app):
    description = app.openapi()
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            for status, answer in operation["responses"].items():
                if status[0] in "45":
                    assert set(answer.get("content", {})) <= {"application/problem+json"}, (method, path, status)
    assert "HTTPValidationError" not in description["components"]["schemas"]


def test_every_text_and_list_that_comes_in_has_a_longest_length(app):
    """What has no limit is a way to fill the machine; a limit is in the description, where a client sees it too."""
    description = app.openapi()
    unbounded = []
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            where = f"{method.upper()} {path}"
            for parameter in operation.get("parameters", ()):
                unbounded += _unbounded(parameter["schema"], f"{where} {parameter['name']}", description)
            for content in operation.get("requestBody", {}).get("content", {}).values():
                unbounded += _unbounded(content["schema"], where, description)
    assert unbounded == []


def _unbounded(schema, where, description, seen=()):
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return (
            [] if name in seen else _unbounded(description["components"]["schemas"][name], where, description, (*seen, name))
        )
    found = []
    for part in ("anyOf", "oneOf", "allOf"):
        for inner in schema.get(part, ()):
            found += _unbounded(inner, where, description, seen)
    kind = schema.get("type")
    if (
        kind == "string"
        and not ({"maxLength", "enum", "const", "format"} & set(schema))
        and not _closed(schema.get("pattern", ""))
    ):
        found.append(f"{where}: a text without a longest length")
    if kind == "array":
        if "maxItems" not in schema:
            found.append(f"{where}: a list without a longest length")
        found += _unbounded(schema.get("items", {}), f"{where}[]", description, seen)
    if kind == "object":
        for name, inner in schema.get("properties", {}).items():
            found += _unbounded(inner, f"{where}.{name}", description, seen)
        more = schema.get("additionalProperties", "properties" not in schema)
        if more is not False and "maxProperties" not in schema:
            found.append(f"{where}: an object with any number of keys")
        if isinstance(more, dict):
            found += _unbounded(more, f"{where}.*", description, seen)
    return found


def _closed(pattern: str) -> bool:
    """A pattern that says how long a text can be: anchored, without * or +."""
    return pattern.startswith("^") and pattern.endswith("$") and not set("*+") & set(pattern)
