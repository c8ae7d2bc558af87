"""Totals of attributes on the pair of tables for which their price is tight: all rows of a person, of the heaviest item."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes.catalogue import Catalogue
from sfumato.audit.registry import attack_every
from sfumato.audit.transcripts import TranscriptCase
from sfumato.privacy import Exact, Meter, Nano
from sfumato.privacy.budgets import AttributeBudgets
from sfumato.registry import Mechanism
from sfumato.statistics.profiles import dense, noisy_totals

_ROWS = 2  # of each person
_FILMS = Catalogue.of({"Heat": {"action": 1, "crime": 2}, "Ghost": {"romance": 1}, "Alien": {"action": 1, "horror": 1}})
_BUDGETS = AttributeBudgets.of({"action": "0.2", "crime": "0.4", "romance": "0.1", "horror": "0.3"})
_SEEN = np.array([40, 30, 20])


def _cases(entry: Mechanism) -> list[TranscriptCase]:
    policy = entry.make(_FILMS, budgets=_BUDGETS, epsilon="0.5")
    matrix = dense(_FILMS)
    heaviest = int((matrix @ policy.rates).argmax())
    more = _SEEN + _ROWS * (np.arange(_SEEN.size) == heaviest)

    def fit(counts: NDArray[np.int64], meter: Meter) -> list[NDArray[Any]]:
        return [noisy_totals(Exact(counts, rows_per_person=_ROWS), matrix, policy, meter)]

    def meter(source: Any) -> Meter:
        return Meter(rows_per_person=_ROWS, attributes=policy.attributes, source=source)

    claimed = Nano(_ROWS * policy.charge.total)
    words = f"one person more or less, with {_ROWS} rows of the heaviest item"
    return [TranscriptCase(f"profile-{entry.name}", claimed, fit, (more, _SEEN), words, meter=meter)]


attack_every("profile", _cases)
