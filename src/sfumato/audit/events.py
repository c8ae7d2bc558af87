"""Events by which two sets of outputs may be told apart, found by looking at half of the draws.

An observer of an ε-private release finds no event whose probabilities under two neighbours differ by more than e^ε. Which
event shows a flaw depends on the flaw: noise that is too small shows in the tails, a mechanism that picks shows in single
values, and floating-point noise shows in its *support*: numbers that one neighbour can produce and the other cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Outputs = NDArray[np.int64] | NDArray[np.float64]
FEW_VALUES = 64
TAILS = 48


@dataclass(frozen=True)
class Event:
    """A set of outputs: `holds` says for each output whether it lies in the set."""

    name: str
    holds: Callable[[Outputs], NDArray[np.bool_]]


def candidates(first: Outputs, second: Outputs) -> Iterator[Event]:
    """Events worth testing, judged by draws of one number each under the two neighbours."""
    pooled = np.concatenate([first, second])
    yield from _tails(pooled)
    values = np.unique(pooled)
    if values.size <= FEW_VALUES:
        yield from (_equals(v) for v in values)
    yield from (_only_in(a, b, name) for a, b, name in ((first, second, "first"), (second, first, "second")))
    if pooled.dtype.kind == "f":
        yield from (_finer_than(k) for k in range(20, 61, 4))
        yield from (_finer_than(k) for k in (50, 51, 53, 54))


def _tails(pooled: Outputs) -> Iterator[Event]:
    # Equal steps in log-probability towards both ends: the ratio of a flawed mechanism is largest in the tails.
    share = np.concatenate([0.5 * 0.75 ** np.arange(TAILS // 2), 1 - 0.5 * 0.75 ** np.arange(TAILS // 2)])
    for cut in np.unique(np.quantile(pooled, np.unique(share), method="nearest")).tolist():
        yield Event(f"output <= {cut:.6g}", lambda x, cut=cut: x <= cut)  # type: ignore[misc]
        yield Event(f"output > {cut:.6g}", lambda x, cut=cut: x > cut)  # type: ignore[misc]


def _equals(value: float) -> Event:
    return Event(f"output = {value:.6g}", lambda x: x == value)


def _only_in(mine: Outputs, other: Outputs, name: str) -> Event:
    values = np.setdiff1d(mine, other)
    return Event(f"output among {values.size} values seen under the {name} neighbour only", lambda x: np.isin(x, values))


def _finer_than(k: int) -> Event:
    def holds(x: Outputs) -> NDArray[np.bool_]:
        scaled = x * 2.0**k  # exact: a power of two
        return np.asarray(scaled != np.rint(scaled))

    return Event(f"output is no multiple of 2^-{k}", holds)
