"""How likely an answer was: for noise on integers, for a choice, and for a line that can be cut in two ways.

Natural logarithms throughout.

`times` multiplies the rate: what the answer would be worth if the noise were that much smaller than was recorded.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError
from sfumato.privacy.calls import Call
from sfumato.privacy.units import NANO

_NEGLIGIBLE = 45.0  # e^-45 is below the last digit of float64


def log_probability(scores: ArrayLike, rate: float, index: int) -> float:
    """The logarithm of the probability that the exponential choice takes a candidate.

    Parameters
    ----------
    scores : floats
    rate : float
        Nano-ε per unit of score.
    index : int
        The candidate.

    Returns
    -------
    float

    Examples
    --------
    >>> round(float(np.exp(log_probability([0.0, 1.0], NANO, 0))), 6) == round(float(np.exp(-1) / 2), 6)
    True
    """
    values = np.asarray(scores, dtype=np.float64)
    nodes, weights = quadrature()
    gaps = np.exp((values - values.max()) * (rate / NANO))
    others = np.delete(gaps, index)
    log_terms = np.log1p(-np.minimum(np.outer(nodes, others), 1 - 1e-15)).sum(axis=1)
    top = float(log_terms.max())
    mine = (values[index] - values.max()) * (rate / NANO)
    return float(mine + top + np.log((weights * np.exp(log_terms - top)).sum()))


def cut_probability(call: Call, costs: NDArray[np.int64], times: float = 1.0) -> float:
    """The probability that a line is cut as the first of its two partitions says, if the intervals cost `costs`.

    >>> line = {"starts": np.array([0, 1, 0]), "stops": np.array([1, 2, 2]), "rate": np.array([NANO] * 3)}
    >>> cuts(Call("partition", None, line))
    ((0, 1), (2,))
    >>> round(cut_probability(Call("partition", None, line), np.array([0, 0, 10**6])), 6)
    1.0
    """
    first, second = cuts(call)
    x = np.asarray(call.public["rate"]) / NANO * times
    needed = sum(int(costs[i]) for i in first) - sum(int(costs[i]) for i in second)
    needed += first[-1] > second[-1]  # of two equal ones that whose last interval is listed first wins
    return _wins(needed, tuple(x[list(first)].tolist()), tuple(x[list(second)].tolist()))


def cuts(call: Call) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The two partitions of a line that has two, without an interval in common; an error for any other line."""
    starts, stops = (tuple(np.asarray(call.public[name]).tolist()) for name in ("starts", "stops"))
    found = _partitions(starts, stops)
    if len(found) != 2 or set(found[0]) & set(found[1]):
        raise InputError("the likelihood of a cut is known for lines with two partitions only: audit what is published")
    return found[0], found[1]


@cache
def _partitions(starts: tuple[int, ...], stops: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """All of them if there are few."""
    complete: list[tuple[int, ...]] = []
    begun: list[tuple[int, ...]] = [()]
    while begun and len(complete) < 3:
        part = begun.pop()
        end = stops[part[-1]] if part else 0
        if end == max(stops):
            complete.append(part)
        begun.extend((*part, i) for i, start in enumerate(starts) if start == end)
    return tuple(sorted(complete))


@lru_cache(maxsize=8192)
def _wins(needed: int, mine: tuple[float, ...], theirs: tuple[float, ...]) -> float:
    """``P(Σ G >= needed + Σ G')`` for independent geometrics G of rates `mine` and G' of rates `theirs`."""
    size = int(_NEGLIGIBLE / min(*mine, *theirs)) + 2
    width = 1 << (max(len(mine), len(theirs)) * size).bit_length()

    def law(rates: tuple[float, ...]) -> NDArray[np.float64]:
        each = [np.exp(-np.arange(size) * rate) * -np.expm1(-rate) for rate in rates]
        if len(each) == 1:
            return np.asarray(each[0])
        return np.asarray(np.maximum(np.fft.irfft(np.prod([np.fft.rfft(e, width) for e in each], axis=0), width), 0))

    tail = np.append(np.cumsum(law(mine)[::-1])[::-1], 0.0)
    others = law(theirs)
    reached = tail[np.clip(needed + np.arange(others.size), 0, tail.size - 1)]
    return float(np.clip((others * reached).sum(), 1e-300, 1 - 1e-16))


def log_likelihood(call: Call, exact: Any, times: float = 1.0) -> float:
    """The logarithm of the likelihood of the call's answer, had the exact value been `exact`; up to a common constant.

    >>> call = Call("laplace", None, {"rate": NANO}, answer=np.array([4]))
    >>> round(log_likelihood(call, np.array([4])) - log_likelihood(call, np.array([6])), 9)
    2.0
    """
    match call.kind:
        case "laplace":
            away = np.abs(call.answer.astype(np.float64) - exact)
            return float(-(away * (np.asarray(call.public["rate"]) / NANO * times)).sum())
        case "choice":
            return log_probability(exact, call.public["rate"] * times, call.answer)
        case "partition":
            first = cut_probability(call, exact, times)
            return float(np.log(first if tuple(call.answer.tolist()) == cuts(call)[0] else 1 - first))
        case _:
            return 0.0


@cache
def quadrature() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights on (0, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(64)  # exact for up to 128 candidates
    return (nodes + 1) / 2, weights / 2
