"""The audit cases of this family run, hold, and would catch a claim that is too small."""

from dataclasses import replace

import pytest

from sfumato.audit.harness import audit
from sfumato.audit.registry import case, names
from sfumato.privacy import Seeded


@pytest.mark.parametrize("name", [n for n in names() if n.startswith("people-")])
def test_cases_hold(name):
    trials = 1000
    found = audit(name, trials=trials, source=Seeded(12))
    assert not found.caught


def test_a_claim_that_is_too_small_is_caught():
    honest = case("people-affine-open")
    lie = replace(honest, name="people-affine-lie", claimed=honest.claimed // 4)
    assert audit(lie, trials=3000, source=Seeded(5)).caught
