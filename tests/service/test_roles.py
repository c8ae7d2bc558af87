"""The table of roles in full, and that every route is under it.

The table is written here a second time, by hand, from what each kind of person is there for: a role that gains an action in
the code fails here until somebody has written it down twice.
"""

from __future__ import annotations

import pytest

from sfumato.service.roles import ACTIONS, ROLES, SECOND_FACTOR, may
from support.service_routes import endpoints

TABLE = """
                        person  custodian  officer  analyst  administrator
session.read            x       x          x        x        x
session.end             x       x          x        x        x
password.change         x       x          x        x        x
second_factor.manage    x       x          x        x        x
tokens.manage           x       x          x        x        x
me.read                 x       .          .        .        .
me.receipt              x       .          .        .        .
me.grant                x       .          .        .        .
me.withdraw             x       .          .        .        .
me.policy               x       .          .        .        .
me.statement            x       .          .        .        .
sources.read            .       x          .        .        .
datasets.read           .       x          x        x        .
datasets.register       .       x          .        .        .
people.bring            .       x          .        .        .
people.invite           .       x          .        .        .
people.epoch            .       x          .        .        .
people.read             .       x          x        .        .
plans.read              .       x          x        .        .
plans.write             .       x          .        .        .
plans.preview           .       x          x        .        .
plans.submit            .       x          .        .        .
plans.run               .       x          .        .        .
approvals.read          .       .          x        .        .
plans.decide            .       .          x        .        .
record.export           .       .          x        .        .
allowances.read         .       x          x        x        .
allowances.grant        .       .          x        .        .
preapprovals.read       .       x          x        x        .
preapprovals.write      .       .          x        .        .
requests.make           .       .          .        x        .
requests.preview        .       .          .        x        .
jobs.read               .       x          .        x        .
jobs.cancel             .       x          .        x        .
releases.read           .       x          x        x        .
ledger.read             .       x          x        .        .
log.read                x       x          x        x        .
keys.read               x       x          x        x        x
accounts.manage         .       .          .        .        x
settings.read           .       .          .        .        x
keys.rotate             .       .          .        .        x
"""

WITH_A_CODE = {"plans.decide", "preapprovals.write", "allowances.grant", "keys.rotate"}

OPEN = {
    "GET /v1/openapi.json",
    "GET /healthz",
    "GET /readyz",
    "GET /metrics",
    "POST /v1/sign-in",
    "POST /v1/join",
    "POST /v1/set-password",
    "POST /v1/oidc/start",
    "GET /v1/oidc/callback",
}
"""What answers somebody who is not signed in: the description, and the ways to sign in."""


def _table() -> dict[tuple[str, str], bool]:
    head, *lines = TABLE.strip().splitlines()
    roles = head.split()
    assert tuple(roles) == ROLES
    cells = {}
    for line in lines:
        action, *marks = line.split()
        assert len(marks) == len(roles), line
        assert set(marks) <= {"x", "."}, line
        cells |= {(role, action): mark == "x" for role, mark in zip(roles, marks, strict=True)}
    return cells


EXPECTED = _table()


def test_the_table_has_these_actions_and_no_others():
    assert set(ACTIONS) == {action for _, action in EXPECTED}


@pytest.mark.parametrize("role", ROLES)
def test_the_table_of_roles(role):
    assert {action for action in ACTIONS if may(role, action)} == {a for r, a in EXPECTED if r == role and EXPECTED[r, a]}


def test_what_asks_for_a_code():
    assert SECOND_FACTOR == WITH_A_CODE


def test_the_administrator_has_no_data_and_no_approvals():
    """Said apart from the table, because it is what the table is for."""
    theirs = {action for action in ACTIONS if may("administrator", action)}
    kinds = ("me.", "people.", "plans.", "datasets.", "releases.", "requests.", "allowances.", "preapprovals.", "record.")
    assert not [action for action in theirs if action.startswith(kinds)]


def test_every_endpoint_names_an_action_or_is_stated_to_be_open(app):
    found = endpoints(app)
    assert {str(endpoint) for endpoint in found if endpoint.action is None} == OPEN
    assert {endpoint.action for endpoint in found} - {None} <= set(ACTIONS)


def test_every_action_has_an_endpoint(app):
    assert set(ACTIONS) - {endpoint.action for endpoint in endpoints(app)} == set()
