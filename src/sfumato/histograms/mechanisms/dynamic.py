"""`sdpa` and `dpa`: budgets that fall along the bins (Chan & Loukides 2017), as a *protection policy*.

With n bins in a **public** order, bin i gets the share f(i) of nε:

- SDPA: ``f(i) ∝ n - i``;
- DPA: ``f(i) ∝ ceil(n/2) + δ (n - 2i - 1) / 2``: all bins alike at δ = 0, SDPA at δ = 1 and odd n.

**Guarantee.** As published the shares sum to nε and the release is said to cost ε. But a record is in one bin, so the
release costs the *largest* bin budget: ``(1 + δ(n-1) / (2 ceil(n/2))) ε`` for DPA, ``2n/(n+1) ε`` for SDPA. Here the
budgets are scaled so that the largest is the epsilon asked for: bins late in the order are protected more than that.

Published, the order is the order of the *true counts*. Then the noise of a bin tells its rank, and no finite ε covers
that: two tables that differ in one record may swap the scales of two bins, and the ratio of Laplace densities of
different scales grows without bound with the output. A data-dependent order is refused here; `bench/` keeps that
variant, marked not private.

*Proof.* With the order public, the budgets are constants, and AHP's proof holds with ``rates[i]`` per bin.
Noise of a smaller rate is noise of the full rate plus more noise, so accuracy cannot be gained by this; protection can.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sfumato.errors import InputError, PrivacyError
from sfumato.histograms.budgets import Floats, Ints
from sfumato.histograms.estimation.estimate import HistogramEstimate
from sfumato.histograms.mechanisms.ahp import CLUSTERING, ahp
from sfumato.privacy import Exact, Meter
from sfumato.registry import Mechanism, Parameter

ORDER_REFUSED = (
    "an order taken from the counts makes the noise scale depend on the data, which no ε covers; "
    "give a public order (a list of bin positions, most budget first) or use 'ahp' or 'auto'"
)


def sdpa_shares(n: int) -> Floats:
    """f(i) of SDPA; they sum to one.

    >>> sdpa_shares(5).round(3).tolist()
    [0.333, 0.267, 0.2, 0.133, 0.067]
    """
    return (n - np.arange(n)) / (n * (n + 1) / 2)


def dpa_shares(n: int, delta: float) -> Floats:
    """f(i) of DPA; they sum to one.

    >>> dpa_shares(5, 0.5).round(3).tolist()
    [0.267, 0.233, 0.2, 0.167, 0.133]
    """
    if not (np.isfinite(delta) and 0 <= delta <= 1):
        raise InputError(f"delta must lie between 0 (all bins alike) and 1, got {delta!r}")
    v = -(-n // 2) + (n - 2 * np.arange(n) - 1) / 2 * delta
    return np.asarray(v / v.sum())


def published_cost(shares: Floats) -> float:
    """By which factor the release, as published, costs more than the ε it claims: its largest bin budget over ε.

    >>> round(published_cost(dpa_shares(1001, 0.075)), 4), round(published_cost(sdpa_shares(4)), 4)
    (1.0749, 1.6)
    """
    return float(shares.max() * shares.size)


def dpa(
    counts: Exact[Ints],
    *,
    rates: Ints,
    meter: Meter,
    delta: float = 0.075,
    order: ArrayLike | str = "bins",
    clustering: Literal["optimal", "greedy"] = "optimal",
) -> HistogramEstimate:
    """AHP with budgets that fall along a public order, the largest being the one asked for.

    Parameters
    ----------
    order : "bins" or a permutation of the bin positions
        Who comes first gets the most budget (the least protection). Public input.
    """
    allowed = falling_rates(rates, dpa_shares(rates.size, delta), order)
    return _named("dpa", ahp(counts, rates=allowed, meter=meter, clustering=clustering), delta=float(delta))


def sdpa(
    counts: Exact[Ints],
    *,
    rates: Ints,
    meter: Meter,
    order: ArrayLike | str = "bins",
    clustering: Literal["optimal", "greedy"] = "optimal",
) -> HistogramEstimate:
    """DPA's steepest form."""
    allowed = falling_rates(rates, sdpa_shares(rates.size), order)
    return _named("sdpa", ahp(counts, rates=allowed, meter=meter, clustering=clustering))


def falling_rates(rates: Ints, shares: Floats, order: ArrayLike | str) -> Ints:
    """Every bin's rate times its share, scaled so that the first in the order keeps all of it.

    >>> falling_rates(np.full(3, 100), sdpa_shares(3), [2, 1, 0]).tolist()
    [33, 66, 100]
    """
    scaled = np.empty(rates.size)
    scaled[public_order(order, rates.size)] = shares / shares.max()
    allowed = np.maximum(np.floor(rates * scaled * (1 - 1e-15)), 1).astype(np.int64)
    return np.where(scaled == 1.0, rates, allowed)


def _named(name: str, made: HistogramEstimate, **parameters: float) -> HistogramEstimate:
    return replace(made, mechanism=name, parameters={**made.parameters, **parameters})


def public_order(order: ArrayLike | str, n: int) -> Ints:
    """The bin positions in their public order."""
    if isinstance(order, str):
        if order == "counts":
            raise PrivacyError(ORDER_REFUSED)
        if order != "bins":
            raise InputError(f"order is 'bins' or a list of bin positions, got {order!r}")
        return np.arange(n)
    place = np.asarray(order)
    if place.dtype.kind not in "iu" or place.shape != (n,) or not np.array_equal(np.sort(place), np.arange(n)):
        raise InputError(f"an order lists each of the {n} bin positions once")
    return place.astype(np.int64)


_ORDER = Parameter("order", "any", "'bins', or every bin position once, the least protected first; public", "bins")
MECHANISMS = (
    Mechanism(
        "dpa",
        ("histogram",),
        dpa,
        "AHP with budgets that fall along a public order: protects late bins more",
        parameters=(
            Parameter("delta", "number", "how steeply the budgets fall: 0 all alike, 1 steepest", 0.075, low=0, high=1),
            _ORDER,
            CLUSTERING,
        ),
        rank={"shape": 10, "ranges": 10},
        paper="Chan & Loukides 2017",
    ),
    Mechanism(
        "sdpa",
        ("histogram",),
        sdpa,
        "DPA at its steepest",
        parameters=(_ORDER, CLUSTERING),
        rank={"shape": 11, "ranges": 11},
        paper="Chan & Loukides 2017",
    ),
)
