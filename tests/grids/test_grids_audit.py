"""The audit finds nothing above the claims of the grids, and most of what the choice claims."""

import pytest

from sfumato.audit.cases_grids import _choice, _release
from sfumato.audit.harness import audit
from sfumato.privacy import Seeded


@pytest.mark.parametrize(("name", "trials"), [("grid-choice", 4_000), ("privpfc", 1_000)])
def test_audit_does_not_refute_the_claim(name, trials):
    result = audit(name, trials=trials, source=Seeded(5))
    assert not result.caught
    if name == "grid-choice":
        assert result.lower > 0.4  # the pair is close to the worst: a wrong spread would be seen


def test_draws_tell_the_neighbours_apart():
    assert _choice(0, 50, Seeded(1)).max() <= 1
    assert set(_release(0, 20, Seeded(1)) // 500) <= {-1, 0, 1, 2}
