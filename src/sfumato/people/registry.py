"""The mechanisms for people with different budgets: one line each. A mechanism's own file says what it is."""

from __future__ import annotations

from sfumato.people import histogram
from sfumato.people.mechanisms import adaptive, adaptive_cells, affine, exponential, partitioned, robust, sampling, simple
from sfumato.registry import register

for _mechanism in (
    affine.MECHANISM,
    adaptive.MECHANISM,
    *partitioned.MECHANISMS,
    sampling.MECHANISM,
    *simple.MECHANISMS[:2],
    exponential.MECHANISM,
    robust.MECHANISM,
    *simple.MECHANISMS[2:],
    histogram.MECHANISM,
    adaptive_cells.MECHANISM,
):
    register(_mechanism)
