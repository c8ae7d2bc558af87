"""How likely an answer was: for noise on integers, for a choice, and for a cut of two bins. Natural logarithms throughout.

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
    """The probability that a partition of two bins keeps them together, if the intervals cost `costs`.

    >>> line = {"starts": np.array([0, 1, 0]), "stops": np.array([1, 2, 2]), "rate": np.array([NANO] * 3)}
    >>> round(cut_probability(Call("partition", None, line), np.array([0, 0, 10**6])), 6)
    0.0
    """
    starts, stops, rates = (np.asarray(call.public[name]) for name in ("starts", "stops", "rate"))
    listed = list(zip(starts.tolist(), stops.tolist(), strict=True))
    if sorted(listed) != [(0, 1), (0, 2), (1, 2)]:
        raise InputError("the likelihood of a cut has a closed form for two bins only: audit what is published")
    left, right, both = listed.index((0, 1)), listed.index((1, 2)), listed.index((0, 2))
    behind = int(costs[both]) - int(costs[left]) - int(costs[right])
    x = rates / NANO * times
    return _together(behind + (right < both), float(x[left]), float(x[right]), float(x[both]))


@lru_cache(maxsize=4096)
def _together(needed: int, left: float, right: float, both: float) -> float:
    """``P(G_both >= needed + G_left + G_right)`` of independent geometrics with these rates."""
    size = int(_NEGLIGIBLE / min(left, right)) + 2
    tails = [np.exp(-np.arange(size) * rate) * -np.expm1(-rate) for rate in (left, right)]
    width = 1 << (2 * size - 1).bit_length()
    law = np.fft.irfft(np.fft.rfft(tails[0], width) * np.fft.rfft(tails[1], width), width)[: 2 * size - 1]
    reached = np.exp(-np.maximum(needed + np.arange(law.size), 0) * both)
    return float(np.clip((np.maximum(law, 0) * reached).sum(), 1e-300, 1 - 1e-16))


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
            together = cut_probability(call, exact, times)
            return float(np.log(together if len(call.answer) == 1 else 1 - together))
        case "objective" | "output":
            raise InputError(f"the likelihood of an answer has no closed form for {call.kind}: audit what is published")
        case _:
            return 0.0


@cache
def quadrature() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights on (0, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(64)  # exact for up to 128 candidates
    return (nodes + 1) / 2, weights / 2
