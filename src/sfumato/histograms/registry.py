"""The histogram mechanisms: one line each. A mechanism's own file says what it is."""

from __future__ import annotations

from sfumato.histograms.mechanisms import (
    ahp,
    auto_ranges,
    covariate,
    dawa,
    dynamic,
    geb,
    hierarchical,
    identity,
    noisefirst,
    shape,
    uniform,
)
from sfumato.registry import register

for _mechanism in (
    shape.MECHANISM,
    auto_ranges.MECHANISM,
    covariate.MECHANISM,
    geb.MECHANISM,
    *dawa.MECHANISMS,
    hierarchical.MECHANISM,
    ahp.MECHANISM,
    noisefirst.MECHANISM,
    identity.MECHANISM,
    *dynamic.MECHANISMS,
    uniform.MECHANISM,
):
    register(_mechanism)
