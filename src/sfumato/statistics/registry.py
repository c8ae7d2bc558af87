"""The mechanisms for everyday questions: one line each. A mechanism's own file says what it is."""

from __future__ import annotations

from sfumato.registry import Mechanism, register

_EVERY: tuple[Mechanism, ...] = ()

for _mechanism in _EVERY:
    register(_mechanism)
