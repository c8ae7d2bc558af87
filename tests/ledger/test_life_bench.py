"""The small version of the bench of a million lives: everybody in a cohort of their own, figures for every claim."""

from __future__ import annotations

import pytest

from sfumato.bench import run_bench
from sfumato.bench.ledger_life import LIMITS
from sfumato.bench.ledger_places import SERVER
from sfumato.errors import InputError


@pytest.mark.slow
def test_twenty_thousand_lives_over_six_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SERVER, raising=False)
    found = run_bench("ledger", quick=True, part="life")
    whole = found["figures"]["life"]["sqlite"]["whole"]
    assert (whole["people"], whole["epochs"]) == (20_000, 6)
    assert whole["cohorts"] > 20_000 - 6 * 10, "people share cohorts: this measures less than it says"
    assert whole["megabytes"] < 10
    claims = {claim["name"]: claim for claim in found["claims"]}
    assert len(claims) == len(LIMITS) + 1
    assert sum(str(claim["figure"]).startswith("not measured") for claim in claims.values()) == 1
    assert all(isinstance(claim["holds"], bool) for claim in claims.values())


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(InputError, match="charges, history, crowd, life, kills"):
        run_bench("ledger", quick=True, part="deaths")
