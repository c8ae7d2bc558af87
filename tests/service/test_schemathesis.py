"""Requests made up from the description, as every role: no 5xx, declared answers, nothing to whom it is not due.

A few hundred here; `python tests/service/schemathesis_full.py` sends ten thousand and more.
"""

from __future__ import annotations

from collections import Counter

import pytest

from sfumato.service.roles import ROLES
from support.service_fuzz import fuzz, known_names
from support.service_world import World


@pytest.mark.parametrize("role", [None, *ROLES])
def test_made_up_requests(clinics: World, role, monkeypatch):
    monkeypatch.setattr("sfumato.service.accounts.second_factor.confirm_code", lambda *_: None)
    with clinics.copied() as world:
        headers = {"Host": "127.0.0.1"} | ({} if role is None else {"X-Test-Caller": role})
        tally = fuzz(
            world.app,
            headers=headers,
            known=known_names(world),
            hidden=world.hidden_from(role),
            allowed=3 if role else 1,
            refused=1 if role else 1,
            role=role,
        )
        assert tally.cases > 50
        assert not Counter({status: count for status, count in tally.statuses.items() if status >= 500})
        if role is None:
            assert set(tally.answered) <= {"GET /healthz", "GET /readyz", "GET /metrics"}
