"""Noise for histories of items: many people's at once, and streams in which an item enters several sums.

Both are `Meter.charge` with a statement about who is in which sum, and noise at the rates that were paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, PrivacyError
from sfumato.privacy.integers import as_int64
from sfumato.privacy.meter import Meter

Draw = Callable[[NDArray[np.int64], int], NDArray[np.int64]]


def laplace_each(
    meter: Meter,
    values: NDArray[np.int64],
    *,
    rate: NDArray[np.int64],
    touches: NDArray[np.int64],
    attributes: Sequence[str] | None = None,
    label: str = "",
) -> NDArray[np.int64]:
    """Noise on the histories of many people, one row each: ``values[i] + Lap(rate)``.

    An item is in one person's history, so it moves one row only and the independent noise of the other rows cancels from
    the ratio of probabilities: the price is that of a single row.

    >>> meter = Meter(neighbours="item")
    >>> noisy = laplace_each(meter, np.zeros((3, 2), int), rate=np.array([10**8] * 2), touches=np.array([[1, 1]]))
    >>> noisy.shape, meter.guarantee().epsilon
    ((3, 2), Decimal('0.2'))
    """
    exact = np.asarray(values)
    if exact.ndim != 2:
        raise InputError("histories of many people are a matrix with one row per person")
    _require_items(meter)
    meter.charge(rate=rate, touches=touches, attributes=attributes, label=label)
    meter.assume("each person's history is one row, and noise is drawn for each person separately")
    return meter._noisy(as_int64(exact), rate, {}, label)


def laplace_shares(
    meter: Meter,
    *,
    rate: NDArray[np.int64],
    touches: NDArray[np.int64],
    attributes: Sequence[str] | None = None,
    why: str,
    label: str = "",
) -> Draw:
    """Pay once for a stream; returns ``draw(values, parts)``, which adds noise of rate ``floor(rate / parts)``.

    The caller states (`why`) that each item enters at most p of the sums drawn with ``parts >= p``. Then over the whole
    stream it loses at most ``p floor(r_j / p) <= r_j`` per unit of attribute j, which is what was paid. Sums may be chosen
    by looking at earlier answers: given these, each draw's ratio of probabilities is bounded as stated, and ratios multiply.

    >>> meter = Meter(neighbours="item")
    >>> draw = laplace_shares(meter, rate=np.array([10**8]), touches=np.array([[1]]), why="each item is in two sums")
    >>> draw(np.array([5]), 2).shape, meter.guarantee().epsilon
    ((1,), Decimal('0.1'))
    """
    rates = np.array(rate, dtype=np.int64)
    _require_items(meter)
    meter.charge(rate=rates, touches=touches, attributes=attributes, label=label)
    meter.assume(why)

    def draw(values: NDArray[np.int64], parts: int) -> NDArray[np.int64]:
        meter._account.require_here()
        if parts < 1 or int(rates.min()) < parts:
            raise InputError(f"a budget of {int(rates.min())} nano-ε per unit cannot be split into {parts} parts")
        return meter._noisy(as_int64(values), rates // parts, {"parts": parts}, label)

    return draw


def _require_items(meter: Meter) -> None:
    if meter.neighbours != "item":
        raise PrivacyError("histories are priced per item: a whole person's would cost the sum over their items")
