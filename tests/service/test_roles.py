"""The table of roles, and that every route is under it."""

from fastapi.routing import APIRoute

from sfumato.service.http.access import action_of
from sfumato.service.roles import ACTIONS

OPEN = {"/v1/openapi.json", "/healthz", "/readyz", "/metrics"}  # routes for everybody, signed in or not


def test_every_route_names_an_action_or_is_stated_to_be_open(app):
    routes = [route for route in app.routes if isinstance(route, APIRoute)]
    unnamed = {route.path for route in routes if action_of(route) is None}
    assert unnamed <= OPEN
    assert {action_of(route) for route in routes} - {None} <= set(ACTIONS)


def test_nobody_else_decides(client_as):
    assert client_as(None).get("/v1/openapi.json").status_code == 200
