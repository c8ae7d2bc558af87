"""Three mechanisms with known flaws. An audit that does not catch them would not catch ours either."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.harness import AuditCase
from sfumato.audit.registry import register
from sfumato.privacy import NANO, Source, noise


def _too_small(which: int, n: int, source: Source) -> NDArray[np.int64]:
    """A count with noise of scale 0.7 that claims a scale of 1 at ε = 1, on a lattice of a million steps a person."""
    steps = 10**6
    return steps * (1 - which) + noise.laplace(np.full(n, NANO // steps * 10 // 7), source=source)


def _textbook(which: int, n: int, source: Source) -> NDArray[np.float64]:
    """``count + sign ln(u)`` in float64: the right density, and a support that gives the count away (Mironov 2012)."""
    words = source.words(n)
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    sign = np.where(words & np.uint64(1), 1.0, -1.0)
    return (1.0 - which) + sign * np.log(uniform)


def _exact_heads(which: int, n: int, source: Source) -> NDArray[np.int64]:
    """A noisy count at ε = 1 that is then cut at the number of people in a private roster: exact, and so given away."""
    heads = 10 - which
    return np.minimum(heads + noise.laplace(np.full(n, NANO), source=source), heads)


register(AuditCase("control-exact-heads", NANO, _exact_heads, "one person in a private roster or not in it", control=True))
register(
    AuditCase("control-small-noise", NANO, _too_small, "one person present or absent; noise 30% too small", control=True)
)
register(
    AuditCase(
        "control-floating-point",
        NANO,
        _textbook,
        "one person present or absent; textbook Laplace noise in float64",
        control=True,
    )
)
