"""How fast exact noise is: against NumPy's floating-point Laplace and OpenDP's exact one, with a scale per coordinate.

All ratios come from one run, each the median of pairs measured back to back. Speed "on one core" is counted in the
thread's own processor time, so that other work on the machine is not counted; the choice is timed by the clock.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, thread_time
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from sfumato.bench import not_measured
from sfumato.errors import NotInstalledError
from sfumato.extras import need
from sfumato.privacy import NANO, noise

LEAST_PER_SECOND = 10e6
MOST_OF_NUMPY = 2.0
LEAST_OF_OPENDP = 100.0
MOST_CHOICE_SECONDS = 0.5


def run(*, quick: bool = False, progress: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Measure, and compare with the limits; `quick` uses shorter vectors and fewer rounds."""
    size, rounds = (1 << 20, 9) if quick else (1 << 22, 15)
    rng = np.random.default_rng(0)
    rates = _rates(rng, size)
    progress(f"drawing {size:,} coordinates, each with a scale of its own")
    ours, numpys = _pairs(rounds, lambda: noise.laplace(rates), _numpy_laplace(rng, rates))
    progress("drawing with OpenDP on a shorter vector")
    theirs, note = None, "per coordinate, on a shorter vector of one scale: its vector call has no scale per coordinate"
    try:
        theirs = _opendp_per_coordinate(4_000 if quick else 20_000)
    except NotInstalledError as missing:
        note = str(missing)
    progress("choosing among a million scores")
    scores = rng.integers(0, 1000, 1_000_000)
    choices = [_seconds(lambda: noise.choose(scores, rate=NANO // 100), perf_counter) for _ in range(5)]
    per_second = size / float(np.median(ours))
    ratio = float(np.median(ours / numpys))
    ours_each = float(np.median(ours)) / size
    figures: dict[str, Any] = {
        "coordinates": size,
        "coordinates_per_second": round(per_second),
        "nanoseconds_per_coordinate": round(1e9 / per_second, 2),
        "times_numpy_laplace": round(ratio, 3),
        "opendp_microseconds_per_coordinate": None if theirs is None else round(1e6 * theirs, 3),
        "times_faster_than_opendp": None if theirs is None else round(theirs / ours_each, 1),
        "opendp_note": note,
        "choice_among_a_million_seconds": round(float(np.median(choices)), 4),
        "share_left_open": _left_open(1 << 18 if quick else 1 << 21),
    }
    return {"figures": figures, "claims": _claims(figures)}


def _claims(figures: dict[str, Any]) -> list[dict[str, Any]]:
    speed, ratio = figures["coordinates_per_second"], figures["times_numpy_laplace"]
    faster, choice = figures["times_faster_than_opendp"], figures["choice_among_a_million_seconds"]
    peer = "times faster than OpenDP's vector Laplace"
    return [
        _claim("coordinates a second on one core, a different scale each", speed, ">=", LEAST_PER_SECOND),
        _claim("time as a multiple of numpy.random.Generator.laplace", ratio, "<=", MOST_OF_NUMPY),
        not_measured(peer, f">= {LEAST_OF_OPENDP:g}", figures["opendp_note"])
        if faster is None
        else _claim(peer, faster, ">=", LEAST_OF_OPENDP),
        _claim("seconds for a choice among a million scores", choice, "<", MOST_CHOICE_SECONDS),
    ]


def _claim(name: str, figure: float, sign: str, limit: float) -> dict[str, Any]:
    holds = {">=": figure >= limit, "<=": figure <= limit, "<": figure < limit}[sign]
    return {"name": name, "figure": figure, "limit": f"{sign} {limit:g}", "holds": bool(holds)}


def _rates(rng: np.random.Generator, size: int) -> NDArray[np.int64]:
    """Scales from 1 to a billion, evenly on a logarithmic scale: the whole range that people and bins use."""
    return np.maximum(1, (NANO * 10.0 ** rng.uniform(-9, 0, size)).astype(np.int64))


def _numpy_laplace(rng: np.random.Generator, rates: NDArray[np.int64]) -> Callable[[], object]:
    scales = NANO / rates
    return lambda: rng.laplace(0.0, scales)


def _seconds(work: Callable[[], object], clock: Callable[[], float] = thread_time) -> float:
    start = clock()
    work()
    return clock() - start


def _pairs(
    rounds: int, first: Callable[[], object], second: Callable[[], object]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    first(), second()  # the first call pays for loading the cipher and the pages of the result
    times = np.array([(_seconds(first), _seconds(second)) for _ in range(rounds)])
    return times[:, 0], times[:, 1]


def _opendp_per_coordinate(size: int) -> float:
    dp = need("opendp.prelude", "the comparison with OpenDP")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    measurement = dp.m.make_laplace(*space, scale=1000.0)
    values = [0] * size
    return float(np.median([_seconds(lambda: measurement(values)) for _ in range(5)])) / size


def _left_open(size: int) -> dict[str, dict[str, float]]:
    """Share of draws that each step of the sampler leaves to the next, by scale."""
    out = {}
    for exponent in (9, 6, 3):
        with (
            patch.object(noise, "_geometric", wraps=noise._geometric) as second,
            patch.object(noise, "_exact_geometric", wraps=noise._exact_geometric) as third,
        ):
            noise.laplace(np.full(size, 10 ** (9 - exponent)))
        out[f"scale 1e{exponent}"] = {
            "by one margin for all": sum(call.args[0].size for call in second.call_args_list) / size,
            "by a margin of its own": third.call_count / size,
        }
    return out
