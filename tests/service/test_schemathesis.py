"""Requests made up from the description, sent as every role and as nobody: no 5xx, nothing to whom it is not due.

A few hundred here; `python tests/service/schemathesis_full.py` sends more than ten thousand.
"""

from __future__ import annotations

from support.service_fuzz import Tally, fuzz, operations
from support.service_world import World

OPEN = {"GET /healthz", "GET /metrics"}


def test_made_up_requests(clinics: World, monkeypatch):
    monkeypatch.setattr("sfumato.service.accounts.second_factor.confirm_code", lambda *_: None)
    tally = Tally()
    with clinics.copied() as world:
        for operation in operations(world):
            fuzz(world, operation, 1, tally)
    assert tally.cases > 400
    assert not [status for status in tally.statuses if status >= 500]
    assert {address for address, caller in tally.answered if caller is None} <= OPEN
