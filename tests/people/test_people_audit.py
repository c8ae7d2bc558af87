"""The audit cases of this family run, hold, and would catch a claim that is too small."""

from dataclasses import replace

import pytest

from sfumato.audit.harness import audit
from sfumato.audit.registry import case, names
from sfumato.privacy import NANO, Seeded


@pytest.mark.parametrize("name", [n for n in names() if n.startswith("people-")])
def test_no_answers_tell_more_than_is_claimed(name):
    subject = case(name)
    runs = [subject.run(i % 2, Seeded(i)) for i in range(12)]
    assert max(most for _, most, _ in runs) <= subject.claimed / NANO * (1 + 1e-6)
    assert max(most for _, most, _ in runs) >= 0.85 * subject.claimed / NANO
    assert max(abs(ratio) for ratio, _, _ in runs) <= subject.claimed / NANO * (1 + 1e-6)


def test_a_claim_that_is_too_small_is_caught():
    honest = case("people-affine-open")
    lie = replace(honest, name="people-affine-lie", claimed=int(0.9 * honest.claimed))
    assert audit(lie, trials=1000, source=Seeded(5)).caught
