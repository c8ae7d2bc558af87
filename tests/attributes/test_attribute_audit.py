"""The audit sees nearly the whole claimed loss, and no more."""

from __future__ import annotations

import pytest

from sfumato.audit.harness import AuditCase, audit
from sfumato.audit.registry import case
from sfumato.privacy import Seeded


@pytest.mark.parametrize(
    ("name", "trials", "share"),
    [("attributes-overall", 60_000, 0.85), ("attributes-one", 60_000, 0.85), ("attributes-stream", 2000, 0.4)],
)
def test_claims_are_tight_but_not_refuted(name, trials, share):
    result = audit(name, trials=trials, source=Seeded(5))
    assert not result.caught
    assert result.lower > share * float(result.claimed)


def test_a_claim_thirty_percent_too_small_is_refuted():
    honest = case("attributes-overall")
    bold = AuditCase("bold", int(0.7 * honest.claimed), honest.draw, honest.neighbours)
    assert audit(bold, trials=60_000, source=Seeded(6)).caught
