"""The publishers of tables for classification: one line each. A mechanism's own file says what it is."""

from __future__ import annotations

from sfumato.grids.publishers import diffgen, marginals, pph, privbayes, privpfc, uniform
from sfumato.registry import register

for _mechanism in (
    privpfc.MECHANISM,
    diffgen.MECHANISM,
    pph.MECHANISM,
    privbayes.MECHANISM,
    marginals.MECHANISM,
    uniform.MECHANISM,
):
    register(_mechanism)
