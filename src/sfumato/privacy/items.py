"""Noise for histories of items: many people's at once, and streams in which an item enters several sums.

Both are `Meter.charge` with a statement about who is in which sum, and noise at the rates that were paid for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, LedgerError, PrivacyError
from sfumato.privacy.exact import Exact
from sfumato.privacy.integers import as_int64
from sfumato.privacy.meter import Meter
from sfumato.privacy.sealed import checksum, same, write_durably

T = TypeVar("T")
Sums = Exact[NDArray[np.int64]] | NDArray[np.int64]


def laplace_each(
    meter: Meter,
    values: Sums,
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
    >>> nothing = Exact(np.zeros((3, 2), int))
    >>> noisy = laplace_each(meter, nothing, rate=np.array([10**8] * 2), touches=np.array([[1, 1]]))
    >>> noisy.shape, meter.guarantee().epsilon
    ((3, 2), Decimal('0.2'))
    """
    require_items(meter)
    meter.charge(rate=rate, touches=touches, attributes=attributes, label=label)
    meter.assume("each person's history is one row, and noise is drawn for each person separately")
    exact = as_int64(meter._open_for_noise(values))
    if exact.ndim != 2 or exact.shape[1] != np.size(rate):
        raise InputError("histories of many people are a matrix with one row per person and one column per noise rate")
    return meter._noisy(exact, rate, {}, label)


class Shares:
    """A stream that was paid for: called with sums and parts, it adds noise of rate ``floor(rate / parts)``."""

    def __init__(self, meter: Meter, rates: NDArray[np.int64], label: str) -> None:
        self._meter = meter
        self._rates = rates
        self._label = label

    def __call__(self, values: Sums, parts: int) -> NDArray[np.int64]:
        """One noisy vector: one of `values` for each rate, at the rates divided by `parts`."""
        self._meter._account.require_here()
        least = int(self._rates.min())
        if parts < 1 or least < parts:
            raise InputError(f"a budget of {least} nano-ε per unit cannot be split into {parts} parts")
        exact = as_int64(self._meter._open_for_noise(values))
        if exact.shape != self._rates.shape:  # a matrix would be several sums for the price of one
            raise InputError(f"one draw is one vector of {self._rates.size} sums; draw each row by itself")
        return self._meter._noisy(exact, self._rates // parts, {"parts": parts}, self._label)

    def hold(self, value: Exact[T]) -> Exact[T]:
        """The same private `value`, computed now: it is paid for, and a stream must not keep all that it is made of."""
        self._meter._account.require_here()
        self._meter._open_for_noise(value)
        return value

    def keep(self, path: str, value: Exact[NDArray[np.int64]], public: Mapping[str, Any]) -> None:
        """Write a private `value` and what is `public` beside it to the file `path`, which only its owner can read.

        Durably: when this returns, it is there whatever happens next. `recall` brings it back.
        """
        self._meter._account.require_here()
        body = {**public, "private": as_int64(self._meter._open_for_noise(value)).tolist()}
        write_durably(path, json.dumps({**body, "checksum": checksum(body)}))


def recall(path: str, kind: str, version: int) -> tuple[dict[str, Any], Exact[NDArray[np.int64]]]:
    """What `Shares.keep` wrote to `path`, as far as it is public, and the private value; damaged files are refused."""
    try:
        with open(path, encoding="utf-8") as file:
            body = json.load(file)
        seal = body.pop("checksum")
        whole = body["kind"] == kind and same(checksum(body), seal)
        private = np.array(body.pop("private"), dtype=np.int64)
        found = int(body["version"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        whole, found = False, version
    if not whole or found != version:
        why = "is not readable, or was changed" if not whole else f"has version {found}, this software reads {version}"
        raise LedgerError(f"{path} {why}; nothing is released from it")
    return body, Exact(private)


def laplace_shares(
    meter: Meter,
    *,
    rate: NDArray[np.int64],
    touches: NDArray[np.int64],
    attributes: Sequence[str] | None = None,
    why: str,
    label: str = "",
) -> Shares:
    """Pay once for a stream; returns ``draw(values, parts)``, which adds noise of rate ``floor(rate / parts)``.

    The caller states (`why`) that each item enters at most p of the sums drawn with ``parts >= p``. Then over the whole
    stream it loses at most ``p floor(r_j / p) <= r_j`` per unit of attribute j, which is what was paid. Sums may be chosen
    by looking at earlier answers: given these, each draw's ratio of probabilities is bounded as stated, and ratios multiply.

    >>> meter = Meter(neighbours="item")
    >>> draw = laplace_shares(meter, rate=np.array([10**8]), touches=np.array([[1]]), why="each item is in two sums")
    >>> draw(Exact(np.array([5])), 2).shape, meter.guarantee().epsilon
    ((1,), Decimal('0.1'))
    """
    rates: NDArray[Any] = np.array(rate, dtype=np.int64)
    require_items(meter)
    meter.charge(rate=rates, touches=touches, attributes=attributes, label=label)
    meter.assume(why)
    return Shares(meter, rates, label)


def require_items(meter: Meter) -> None:
    """Refuse a `meter` that speaks of whole people."""
    if meter.neighbours != "item":
        raise PrivacyError("histories are priced per item: a whole person's would cost the sum over their items")
