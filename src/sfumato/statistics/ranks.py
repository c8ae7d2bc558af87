"""Choosing a point of the lattice by its rank: the step that every quantile is made of.

For weighted counts ``c`` on points in order let A be the weight strictly below a point, E the weight on it, n the whole
and q the share that is wanted below. A point is a q-quantile if ``A <= q n <= A + E``. Its score says how deep q n lies
in that interval, or by how much it misses it:

    u(x) = min( q n - A(x),  A(x) + E(x) - q n )

The usual score ``-|A - q n|`` (Smith 2011) knows neither ties nor the far side of a point that holds many records: at the
point that holds a third of all ages it prefers the empty one beside it if that lies nearer in rank.

**Spread.** *Adding or taking away one record of weight w changes u by an amount between -w m and +w m, m = max(q, 1 - q),
so the spread is 2 w m.* A record below x adds w (1 - q) to ``A - q n`` and to ``A + E - q n``; one above takes w q from
both; one at x takes w q from the first and adds w (1 - q) to the second. So each of the two terms, and hence their
minimum, moves by at most w m. The bound is attained: let q >= 1/2 and let the record lie above a point x that is above
the quantile; u(x) grows by w q (x is overshot by less), while a point below the quantile falls by w q.

*Against replacement* on the whole table n stays or the record leaves the condition. Moving a record from v up to v' takes
w from A on (v, v'] and from A + E on [v, v'), so each term moves by at most w, the spread is at most 2 w, and leaving is
no more than that. The Meter doubles a price against replacement, so the spread to state is ``w min(2 m, 1)``. In a
branch, which a record may leave for another branch, n does change and 2 w m is stated.

**Dividing a point.** To go on with the records below and above a chosen point, its own weight E is divided: ``floor(E j /
J)`` goes down, the rest up, for a public j. *One record of weight w more changes both parts together by w, and neither
falls*: ``floor((E + w) t) - floor(E t)`` lies in [0, w] for 0 <= t <= 1. Losses are linear in the weight, so a record
that is divided so loses a mean of what it would lose on either side, at most the larger: the rule of parallel branches. j
itself is chosen by ``-|A + floor(E j / J) - q n|``, whose spread is 2 w m as above.

Scores are integers: q is a fraction. They are divided by a power of two, which float64 does exactly; where they pass
2**53 they are held there, which moves no score by more than before.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy import NANO, Exact, Meter, Nano
from sfumato.privacy.losses import choice_rate

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

FINEST = 1_000_000
"""The largest denominator of a share."""
PARTS = 1024
"""Into how many parts the records of one point can be divided."""
_HELD = (1 << 53) - 1


def as_share(q: float | Fraction) -> Fraction:
    """The share as the nearest fraction with a small denominator, strictly between 0 and 1.

    >>> as_share(0.1), as_share(1e-9)
    (Fraction(1, 10), Fraction(1, 1000000))
    """
    exact = q if isinstance(q, Fraction) else Fraction(str(q))
    least = Fraction(1, FINEST)
    return min(max(exact.limit_denominator(FINEST), least), 1 - least)


def rank_scores(counts: Integers, q: Fraction) -> Floats:
    """u of every point, in the unit of `_unit`.

    >>> (rank_scores(np.array([3, 5, 2]), Fraction(1, 2)) * _unit(Fraction(1, 2)) / 2).tolist()
    [-2.0, 2.0, -3.0]
    """
    upto = np.cumsum(counts)
    wanted = q.numerator * int(upto[-1])
    scores = np.minimum(wanted - q.denominator * (upto - counts), q.denominator * upto - wanted)
    return np.asarray(np.clip(scores, -_HELD, _HELD) / _unit(q))


def part_scores(counts: Integers, q: Fraction, point: int) -> Floats:
    """How near each division of `point` comes to the rank, in the unit of `_unit`."""
    below, here, whole = int(counts[:point].sum()), int(counts[point]), int(counts.sum())
    parts = np.array([below + here * j // PARTS for j in range(PARTS + 1)], dtype=np.int64)
    scores = -np.abs(q.denominator * parts - q.numerator * whole)
    return np.asarray(np.clip(scores, -_HELD, _HELD) / _unit(q))


def _unit(q: Fraction) -> float:
    """What scores are divided by, so that a record moves them by about one: a power of two, hence without rounding."""
    return float(1 << (q.denominator - 1).bit_length())


def spread_of(q: Fraction, *, replaced: bool = False) -> float:
    """The spread of the scores for a record of weight one; `replaced` for the whole table against replacement.

    >>> spread_of(Fraction(1, 2)), spread_of(Fraction(9, 10)) * _unit(Fraction(9, 10)) / 10
    (1.0, 1.8)
    """
    whole = 2 * max(q.numerator, q.denominator - q.numerator)
    return (min(whole, q.denominator) if replaced else whole) / _unit(q)


def _choose(meter: Meter, scores: Exact[Any], spread: float, nano: int, weights: Integers | None, label: str) -> int:
    """A choice that costs a row of the heaviest group at most `nano`."""
    moved = np.array(spread) if weights is None else spread * weights.astype(np.float64)
    rate = choice_rate(Nano(nano), float(moved.max()))
    return meter.choose(scores, rate=rate, spread=moved if weights is not None else spread, label=label)


def choose_point(
    meter: Meter,
    counts: Exact[Integers],
    q: Fraction,
    *,
    nano: int,
    weights: Integers | None = None,
    whole: bool = False,
    label: str,
) -> int:
    """The index of a point whose rank is near q, at a price of `nano` for a row of the heaviest group.

    Parameters
    ----------
    meter : Meter
    counts : Exact of integers
        Weighted counts per point.
    q : Fraction
    nano : int
    weights : int64 array, optional
        What a record of each person group weighs; one if left out.
    whole : bool
        Whether these are all records of the table: in no branch.
    label : str

    Returns
    -------
    int

    Examples
    --------
    >>> choose_point(Meter(), Exact(np.array([1000, 0, 9000])), Fraction(1, 2), nano=10**9, label="median")
    2
    """
    replaced = whole and weights is None and meter.neighbours == "replacement"
    spread = spread_of(q, replaced=replaced)
    return _choose(meter, counts.map(partial(rank_scores, q=q)), spread, nano, weights, label)


def choose_part(
    meter: Meter, counts: Exact[Integers], q: Fraction, *, point: int, nano: int, weights: Integers | None, label: str
) -> int:
    """How many of the `PARTS` parts of a point go with what lies below it; arguments as for `choose_point`."""
    return _choose(meter, counts.map(partial(part_scores, q=q, point=point)), spread_of(q), nano, weights, label)


def below(counts: Integers, point: int, part: int) -> Integers:
    """What lies below the division of a point, the point included.

    >>> below(np.array([4, 10, 7]), 1, PARTS // 2).tolist()
    [4, 5]
    """
    found = counts[: point + 1].copy()
    found[-1] = int(found[-1]) * part // PARTS
    return found


def above(counts: Integers, point: int, part: int) -> Integers:
    """What lies above the division of a point, the point included.

    >>> above(np.array([4, 10, 7]), 1, PARTS // 2).tolist()
    [5, 7]
    """
    found = counts[point:].copy()
    found[0] -= int(found[0]) * part // PARTS
    return found


def rank_rate(q: float | Fraction, nano: float) -> float:
    """How steeply the chance of a point falls with its rank: per unit of weight, in ε."""
    return nano / NANO / (2 * max(float(q), 1 - float(q)))


def rank_bound(points: int, rate: float, miss: float) -> float:
    """By how much a chosen point misses its rank on one side, but for a chance of `miss`.

    Some point has a score of at least 0. Each of the others that misses by t beats its exponential noise with a chance of
    ``exp(-rate t) / 2``; there are fewer than `points` of them.

    >>> round(rank_bound(100, 0.5, 0.01), 2)
    17.03
    """
    return max(0.0, math.log(max(points, 1) / (2 * miss)) / rate)
