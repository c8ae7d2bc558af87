"""Exact noise: discrete Laplace with its own rate per coordinate, the exponential choice, spherical vectors.

**Discrete Laplace.** `laplace(rates)` draws X_j with ``P(X_j = x) ∝ exp(-|x| r_j / 1e9)``: integer rates in nano-ε per
unit, so a person who can move coordinate j by w units loses exactly ``w r_j`` nano-ε (ratio of two terms, triangle
inequality). No floating-point noise is added here, so attacks on its support (Mironov 2012) find nothing; the real vectors
at the end (`spherical`, `coordinatewise`) are for linear models, which are rounded before their release.

*Method.* Let U be uniform on (0, 1), given as a bit string of which 63 bits are known: ``u <= 2**63 U < u + 1``. Then
``K = floor(-ln(U) b)``, b = 1e9 / r, is geometric with ``P(K >= k) = exp(-k / b)``. With a fair sign, rejecting
(minus, 0), ``P(X = x) ∝ exp(-|x| / b)``.

*Why float64 is enough.* float64 only *brackets* K. Write L = -ln(u / 2**63); the true -ln(U) lies in [L - 1/u, L]. The
computed L is off by u to float64 (relative 2**-53 in u, so absolute 2**-53 in L) and by the logarithm (assumed within 8
units in the last place, relative 2**-49; NumPy promises 4 and a test checks this machine); ``x = L * (1e9 / r)`` adds two
roundings and ``x ± margin`` one (relative 2**-53 each, so below 2**-51 together). Three steps, each for what the one
before left open:

1. everywhere, margin 2**-14: for u >= 2**48, L <= 15 ln 2 < 10.4, and b <= 1e9, the errors add up to less than
   ``(10.4 (2**-49 + 2**-51) + 2**-53 + 2**-48) 1e9 < 2**-15``. Where x - margin and x + margin have the same integer part,
   that is K (below 0 the truncation to 0 is right: -ln(U) is positive). It leaves one draw in about 1e4.
2. there, the margin of that very draw, ``(L 2**-48 + 2**-51 + 1/u) b``: it leaves one in 1e14 / b.
3. there, more bits of U are revealed and `decimal`, whose ln is correctly rounded, decides.

Hence K has *exactly* its distribution given uniform bits; a 53-bit inverse CDF would not.

**Choice.** `choose(scores, rate)` is the noisy maximum with exponential noise (the same law as permute-and-flip,
McKenna & Sheldon 2020; Ding et al. 2021), again by brackets and lazily revealed bits. If one person moves every score by
an amount in [low, high], the loss is ``rate (high - low)``: shift all scores by a common amount so that changes lie in
[0, s]; for fixed noise of the others, item i must beat t on one table and at most t + s on the other, and
``P(E >= x + s) >= exp(-rate s) P(E >= x)`` for every x. Summing over the others' noise gives the bound.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError
from sfumato.privacy.source import SECURE, Source
from sfumato.privacy.units import NANO

MAX_RATE = 10**15  # nano-ε per unit; a million ε per unit is no privacy
_BLOCK = 1 << 15  # draws per block: the working set stays in the cache
_RELATIVE = 2.0**-48
_ABSOLUTE = 2.0**-51
_TO_UNIT = 2.0**-63
_FAST_MARGIN = 2.0**-14
_FAST_FROM = np.int64(1 << 48)  # smallest u for which _FAST_MARGIN is proven
_LOW_63 = np.int64((1 << 63) - 1)


def _precise(digits: int) -> decimal.Context:
    """A decimal context of our own: whatever the caller has set for theirs must not reach the noise."""
    return decimal.Context(prec=digits, rounding=decimal.ROUND_HALF_EVEN, Emin=-(10**6), Emax=10**6, traps=[])


def _minus_log_bounds(u: int, bits: int, digits: int) -> tuple[Decimal, Decimal]:
    """Rigorous bounds on -ln(U) for u <= 2**bits U < u + 1, u >= 1, with about `digits` digits."""
    with decimal.localcontext(_precise(digits + 30)):  # the division is rounded too; 25 spare digits cover both
        whole = Decimal(1 << bits)
        slack = Decimal(10) ** (-digits)
        low = -(Decimal(u + 1) / whole).ln() - slack
        high = -(Decimal(u) / whole).ln() + slack
    return low, high


def _exact_geometric(u: int, scale: Fraction, source: Source) -> int:
    """floor(-ln(U) scale), U known to 63 bits u, revealing more bits until the floor is certain."""
    bits = 63
    while True:
        if u > 0:
            digits = bits // 3 + 5
            low, high = _minus_log_bounds(u, bits, digits)
            with decimal.localcontext(_precise(digits + 60)):
                first = max(0, int(low * scale.numerator / scale.denominator - Decimal(10) ** (-digits)))
                last = int(high * scale.numerator / scale.denominator + Decimal(10) ** (-digits))
            if first == last:
                return first
        u, bits = (u << 64) | int(source.words(1)[0]), bits + 64


def _geometric(u: NDArray[np.int64], rates: NDArray[np.int64], source: Source) -> NDArray[np.int64]:
    """Steps 2 and 3: floor(-ln(U) 1e9 / rate) for 63-bit u, with a margin per draw, exact where that is not enough."""
    scale = NANO / rates
    f = np.maximum(u, 0.5)  # u = 0 has no upper bound on -ln(U): it goes to the exact branch below
    minus_log = -np.log(f * _TO_UNIT)
    margin = (minus_log * _RELATIVE + _ABSOLUTE + 1.0 / f) * scale
    minus_log *= scale
    low = np.floor(minus_log - margin)
    unsure = (low != np.floor(minus_log + margin)) | (u == 0)
    result = low.astype(np.int64)
    for i in np.flatnonzero(unsure):
        result[i] = _exact_geometric(int(u[i]), Fraction(NANO, int(rates[i])), source)
    return result


def check_rates(rates: ArrayLike) -> NDArray[np.int64]:
    """Noise rates as int64, each from 1 to MAX_RATE nano-ε per unit."""
    array = np.asarray(rates)
    if array.dtype.kind not in "iu":
        raise InputError(f"noise rates are integers of nano-ε per unit, got {array.dtype}; use nano_down(epsilon)")
    array = array.astype(np.int64, copy=False)
    if array.size and (array.min() < 1 or array.max() > MAX_RATE):
        raise InputError(f"noise rates must lie between 1 and {MAX_RATE} nano-ε per unit")
    return array


def laplace(rates: ArrayLike, *, source: Source = SECURE) -> NDArray[np.int64]:
    """Discrete Laplace noise, ``P(X = x) ∝ exp(-|x| rate / 1e9)``, one independent draw per rate.

    Parameters
    ----------
    rates : integers
        Nano-ε per unit and coordinate; the scale is ``1e9 / rate`` units, the variance
        ``2 q / (1 - q)**2`` with ``q = exp(-rate / 1e9)``.
    source : Source
        Random bits; cryptographic unless an experiment says otherwise.

    Examples
    --------
    >>> from sfumato.privacy.source import Seeded
    >>> laplace([10**9, 10**8, 10**3], source=Seeded(1)).shape
    (3,)
    """
    checked = check_rates(rates)
    return _signed(checked.reshape(-1), source).reshape(checked.shape)


def _signed(rates: NDArray[np.int64], source: Source) -> NDArray[np.int64]:
    out = np.empty(rates.size, dtype=np.int64)
    again = [np.empty(0, dtype=np.intp)]
    with np.errstate(divide="ignore", invalid="ignore"):  # ln(0) where all 63 bits are 0; step 3 takes that draw
        for start in range(0, rates.size, _BLOCK):
            stop = start + _BLOCK
            again.append(start + _signed_block(rates[start:stop], out[start:stop], source))
    rejected = np.concatenate(again)
    if rejected.size:
        out[rejected] = _signed(rates[rejected], source)
    return out


def _signed_block(rates: NDArray[np.int64], out: NDArray[np.int64], source: Source) -> NDArray[np.intp]:
    """Fill `out` with signed geometric draws and return where (minus, 0) came up, which would count zero twice."""
    words = source.words(rates.size).view(np.int64)
    minus = words >> 63  # the top bit is the sign: 0 or -1
    u = words & _LOW_63
    x = u.astype(np.float64)
    x *= _TO_UNIT
    np.log(x, out=x)
    low = np.divide(-NANO, rates)
    x *= low
    np.subtract(x, _FAST_MARGIN, out=low)
    x += _FAST_MARGIN
    np.copyto(out, low, casting="unsafe")  # truncates
    unsure = out != x.astype(np.int64)
    unsure |= u < _FAST_FROM
    slow = np.flatnonzero(unsure)
    if slow.size:
        out[slow] = _geometric(u[slow], rates[slow], source)
    out ^= minus  # K, or -K - 1 which is -1 for (minus, 0) only
    rejected = np.flatnonzero(out == -1)
    out -= minus
    return rejected


def geometric(rates: ArrayLike, *, source: Source = SECURE) -> NDArray[np.int64]:
    """One-sided noise, ``P(X >= k) = exp(-k rate / 1e9)`` for k >= 0, exactly; one independent draw per rate.

    >>> int(geometric([10**9, 10**3]).min()) >= 0
    True
    """
    checked = check_rates(rates)
    u = source.words(checked.size).view(np.int64) & _LOW_63
    return _geometric(u, checked.reshape(-1), source).reshape(checked.shape)


def laplace_variance(rates: ArrayLike) -> NDArray[np.float64]:
    """The variance of `laplace(rates)`, in squared units.

    >>> float(laplace_variance(10**9).round(4))
    1.8413
    """
    x = np.asarray(rates, dtype=np.float64) / NANO
    # 2q/(1-q)^2 = 1/(2 sinh(x/2)^2), which does not cancel for small x; beyond x = 600 it is 0 in float64.
    return np.asarray(0.5 / np.sinh(np.minimum(x, 600.0) / 2.0) ** 2)


def choose(scores: ArrayLike, *, rate: int, source: Source = SECURE) -> int:
    """The exponential choice: index of the largest ``score rate / 1e9 + Exponential(1)``.

    Parameters
    ----------
    scores : integers or floats
        Up to millions of candidates. Taken as the exact numbers they are.
    rate : int
        Nano-ε per unit of score. The loss is ``rate`` times the spread of the changes one person can cause.

    Examples
    --------
    >>> choose([0, 1000, 3], rate=10**9)
    1
    """
    values = np.asarray(scores)
    if values.ndim != 1 or values.size == 0:
        raise InputError("choose needs a flat, non-empty list of scores")
    if values.dtype.kind not in "iuf":
        raise InputError(f"scores are integers or floats, got {values.dtype}")
    if values.dtype.kind in "iu" and max(-int(values.min()), int(values.max())) >= 1 << 53:
        raise InputError("integer scores must stay below 2**53")
    real = values.astype(np.float64)
    if not np.isfinite(real).all():
        raise InputError("scores must be finite")
    rate = int(check_rates(rate))
    words = source.words(real.size) >> np.uint64(1)
    f = np.maximum(words.astype(np.float64), 0.5)
    minus_log = -np.log(f * _TO_UNIT)
    with np.errstate(over="ignore"):
        # The gap to the top, its product with the rate and the rate itself are rounded once each: relative 3 * 2**-53.
        # A gap beyond 1e300 cannot win with any noise that 63 bits allow, so its size does not matter.
        shifted = np.maximum((real - real.max()) * (rate / NANO), -1e300)
    value = shifted + minus_log
    margin = (minus_log - shifted) * _RELATIVE + _ABSOLUTE + 1.0 / f
    high = value + margin
    high[words == 0] = np.inf
    candidates = np.flatnonzero(high >= (value - margin).max())
    if candidates.size == 1:
        return int(candidates[0])
    return _decide(candidates, real, words, Fraction(rate, NANO), source)


def _decide(
    candidates: NDArray[np.intp],
    scores: NDArray[np.float64],
    words: NDArray[np.uint64],
    eta: Fraction,
    source: Source,
) -> int:
    """Exact comparison of a few candidates whose float64 brackets overlap, by revealing more bits."""
    alive = [(int(i), Fraction(float(scores[i])) * eta, int(words[i])) for i in candidates]
    bits = 63
    while True:
        digits = bits // 3 + 5
        bounds = []
        for i, base, u in alive:
            low, high = _minus_log_bounds(u, bits, digits) if u else (Decimal(0), Decimal("Infinity"))
            top = base + Fraction(high) if u else None
            bounds.append((i, base, u, base + Fraction(low), top))
        best = max(low for *_, low, _ in bounds)
        alive = [(i, base, u) for i, base, u, _, top in bounds if top is None or top >= best]
        if len(alive) == 1:
            return alive[0][0]
        more = source.words(len(alive))
        alive = [(i, base, (u << 64) | int(w)) for (i, base, u), w in zip(alive, more, strict=True)]
        bits += 64


def check_thresholds(thresholds: ArrayLike) -> NDArray[np.uint64]:
    """Probabilities as integers over 2**63, each from 0 to 2**63."""
    # A mixed list of 0 and 2**63 would become float64: Python integers are looked at one by one.
    array = thresholds if isinstance(thresholds, np.ndarray | np.generic) else np.asarray(thresholds, dtype=object)
    whole = array.dtype.kind in "iu" or all(isinstance(t, int | np.integer) for t in array.flat)
    if not whole or (array.size and (int(array.min()) < 0 or int(array.max()) > 1 << 63)):
        raise InputError("a probability p is given as the integer threshold int(p * 2**63), between 0 and 2**63")
    return np.asarray(array).astype(np.uint64)


def binomial(counts: ArrayLike, thresholds: ArrayLike, *, source: Source = SECURE) -> NDArray[np.int64]:
    """How many of `counts[i]` records survive when each is kept with probability ``thresholds[i] / 2**63``, exactly.

    >>> binomial([5, 7], [0, 1 << 63]).tolist()
    [0, 7]
    """
    totals, limits = np.asarray(counts), check_thresholds(thresholds)
    if totals.dtype.kind not in "iu" or (totals.size and int(totals.min()) < 0):
        raise InputError("counts must be integers, none negative")
    totals, limits = np.broadcast_arrays(totals, limits)
    kept = np.zeros(totals.size, dtype=np.int64)
    for i, (n, limit) in enumerate(zip(totals.reshape(-1).tolist(), limits.reshape(-1), strict=True)):
        if limit == np.uint64(1 << 63):
            kept[i] = n
            continue
        for start in range(0, n, 1 << 20):
            words = source.words(min(1 << 20, n - start)) >> np.uint64(1)
            kept[i] += int(np.count_nonzero(words < limit))
    return kept.reshape(totals.shape)


def spherical(dimension: int, beta: float, *, source: Source = SECURE) -> NDArray[np.float64]:
    """A vector with density ∝ exp(-beta ‖b‖): uniform direction, norm Gamma(dimension, 1/beta).

    The vector is real and computed in float64 from 52-bit uniforms: it is only used *inside* an optimiser (objective
    perturbation), whose guarantee assumes real arithmetic and says so.

    >>> spherical(4, 2.0).shape
    (4,)
    """
    if dimension < 1:
        raise InputError(f"a noise vector needs at least one coordinate, got {dimension}")
    if not (np.isfinite(beta) and beta > 0):
        raise InputError(f"beta must be a positive number, got {beta!r}")
    half = (dimension + 1) // 2
    # Half a step off the lattice: neither 0 nor 1 comes up, so no logarithm is infinite and no direction is 0 / 0.
    uniform = ((source.words(2 * half + dimension) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    radius = np.sqrt(-2.0 * np.log(uniform[:half]))
    angle = 2.0 * np.pi * uniform[half : 2 * half]
    normal = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:dimension]
    norm = -np.log(uniform[2 * half :]).sum() / beta  # a sum of exponentials is Gamma(dimension)
    return np.asarray(norm * normal / np.linalg.norm(normal))


def coordinatewise(dimension: int, rate: float, *, source: Source = SECURE) -> NDArray[np.float64]:
    """A vector with density ∝ exp(-rate Σ|b_i|): independent real Laplace coordinates, for the same use as `spherical`.

    >>> coordinatewise(4, 2.0).shape
    (4,)
    """
    if dimension < 1:
        raise InputError(f"a noise vector needs at least one coordinate, got {dimension}")
    if not (np.isfinite(rate) and rate > 0):
        raise InputError(f"the rate must be a positive number, got {rate!r}")
    words = source.words(dimension)
    uniform = ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    # The bits that the uniform does not use give the sign.
    return np.where(words & np.uint64(1), 1.0, -1.0) * -np.log(uniform) / rate
