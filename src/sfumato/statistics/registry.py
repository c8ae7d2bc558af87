"""The mechanisms for everyday questions: one line each. A mechanism's own file says what it is."""

from __future__ import annotations

from sfumato.registry import Mechanism, register
from sfumato.statistics import crosstab, crosstab_people, top, top_people

_EVERY: tuple[Mechanism, ...] = (
    *crosstab.MECHANISMS,
    *crosstab_people.MECHANISMS,
    *top.MECHANISMS,
    *top_people.MECHANISMS,
)

for _mechanism in _EVERY:
    register(_mechanism)
