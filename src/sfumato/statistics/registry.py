"""The mechanisms for everyday questions: one line each. A mechanism's own file says what it is."""

from __future__ import annotations

from sfumato.registry import Mechanism, register
from sfumato.statistics import profiles

_EVERY: tuple[Mechanism, ...] = (
    profiles.MULTILEVEL,
    profiles.COMPOSITION,
)

for _mechanism in _EVERY:
    register(_mechanism)
