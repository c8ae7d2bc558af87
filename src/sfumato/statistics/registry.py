"""The mechanisms for everyday questions: one line each. A mechanism's own file says what it is."""

from __future__ import annotations

from sfumato.registry import Mechanism, register
from sfumato.statistics import figure_offers, groups, quantile_offers

_EVERY: tuple[Mechanism, ...] = (
    *groups.MECHANISMS,
    *figure_offers.MECHANISMS,
    quantile_offers.CHOICE,
    quantile_offers.WEIGHTED,
)

for _mechanism in _EVERY:
    register(_mechanism)
