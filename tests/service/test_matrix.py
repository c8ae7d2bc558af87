"""Every endpoint x every role, and nobody, x {own, another's, missing}: what is answered, and that refusals leave no trace.

The endpoints come from the application: one without a line in `support.service_cases` fails here. What is expected is by
rule: nobody gets 401 and a role without the action 403, whatever they name; what is another's gives the same answer as what
is missing, byte for byte; one's own gives what the line says.
"""

from __future__ import annotations

import pytest
from support.service_cases import CASES
from support.service_world import World, stripped

from sfumato.service.roles import ACTIONS, ROLES
from support.service_routes import Endpoint, endpoints

REFUSED = ("another's", "missing")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.made(tmp_path_factory.mktemp("matrix"))


@pytest.fixture(scope="module")
def known(world: World) -> dict[str, Endpoint]:
    return {str(endpoint): endpoint for endpoint in endpoints(world.app)}


def test_every_endpoint_has_a_line(known):
    assert set(known) == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_who_may_not_is_refused_whatever_they_name(world: World, known, name):
    """401 and 403, the same for what exists and what does not, and nothing is written."""
    case, action = CASES[name], known[name].action
    if action is None:
        return
    before = world.written()
    for role in (None, *ROLES):
        if role is not None and role in ACTIONS[action]:
            continue
        told = set()
        for whose in ("own", *REFUSED):
            answer = world.send(role, case.call(world, name, ROLE_OF[action], whose))
            assert answer.status_code == (401 if role is None else 403), (role, whose, answer.text)
            told.add(stripped(answer))
        assert len(told) == 1, f"{role} can tell what exists: {told}"
    assert world.written() == before


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.names(name) - {"digest"}])
def test_what_is_anothers_looks_like_what_is_missing(world: World, known, name):
    case, action = CASES[name], known[name].action
    before = world.written()
    for role in ROLES:
        if action is not None and role not in ACTIONS[action]:
            continue
        lost = world.send(role, case.call(world, name, role, "missing"))
        assert lost.status_code == case.missing, (role, lost.text)
        if role in case.shared:
            continue
        others = world.send(role, case.call(world, name, role, "another's"))
        assert (others.status_code, stripped(others)) == (lost.status_code, stripped(lost)), role
    assert world.written() == before


@pytest.mark.parametrize("name", CASES)
def test_ones_own(world: World, known, name):
    """What is one's own is answered: on a copy of the world, because most of it changes something."""
    case, action = CASES[name], known[name].action
    for role in ROLES if action is None else sorted(ACTIONS[action]):
        expected = case.own.get(role, case.status)
        if known[name].method == "GET":
            answer = world.send(role, case.call(world, name, role, "own"))
            assert answer.status_code == expected, (role, answer.text)
            continue
        with world.copied() as copy:
            answer = copy.send(role, case.call(copy, name, role, "own"))
            assert answer.status_code == expected, (role, answer.text)


ROLE_OF = {action: sorted(roles)[0] for action, roles in ACTIONS.items()}
"""For each action a role that may do it: whose things the others try to reach."""
