"""The mechanisms for everyday questions: one line each. A mechanism's own file says what it is."""

from __future__ import annotations

from sfumato.registry import Mechanism, register
from sfumato.statistics import crosstab, crosstab_people, figure_offers, groups, profiles, quantile_offers, top, top_people

_EVERY: tuple[Mechanism, ...] = (
    *groups.MECHANISMS,
    *figure_offers.MECHANISMS,
    quantile_offers.CHOICE,
    quantile_offers.WEIGHTED,
    *crosstab.MECHANISMS,
    *crosstab_people.MECHANISMS,
    *top.MECHANISMS,
    *top_people.MECHANISMS,
    profiles.MULTILEVEL,
    profiles.COMPOSITION,
)

for _mechanism in _EVERY:
    register(_mechanism)
