"""Fresh histograms over all strengths of signal, and DAWA as a yardstick for ranges.

Every shape is drawn multinomially at three sizes n and four totals N. With ε of 0.01, 0.1 and 1 the records per bin and
noise, Nε/n, run from 0.002 to 4000. Half of the shapes are kept aside (`aside`): nothing may be chosen by looking at them.

`dawa_reference` is DAWA with the authors' partition (all power-of-two lengths at all starts, costs held at a floor, the
longer interval on ties), the doubled noise that a proof needs (`privacy.partition`), a quarter of ε for the partition and
Laplace noise on the totals. NumPy noise: nothing here is a private release.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from sfumato.bench.histograms_data import DPBENCH, Case

SIZES = (256, 1024, 4096)
TOTALS = (1_000, 10_000, 100_000, 1_000_000)
EPSILONS = (0.01, 0.1, 1.0)
SIGNALS = (0.01, 0.1, 1.0, 10.0, 100.0)  # where the classes of Nε/n meet
PARTITION_SHARE = 0.25

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Make = Callable[[int, np.random.Generator], Floats]


def _place(n: int) -> Floats:
    return (np.arange(n) + 0.5) / n


def _bumps(n: int, g: np.random.Generator) -> Floats:
    x = _place(n)
    return np.asarray(np.exp(-(((x - 0.25) / 0.06) ** 2)) + 0.5 * np.exp(-(((x - 0.65) / 0.15) ** 2)) + 0.01)


def _steps(n: int, g: np.random.Generator) -> Floats:
    return np.repeat(g.gamma(0.6, 1.0, 16), n // 16)


def _spikes(n: int, g: np.random.Generator) -> Floats:
    where = g.choice(n, max(4, n // 100), replace=False)
    out = np.zeros(n)
    out[where] = g.pareto(1.2, where.size) + 1
    return out


def _tail(n: int, g: np.random.Generator) -> Floats:
    return np.asarray(1.0 / (np.arange(n) + 4.0) ** 1.6)


def _sorted(n: int, g: np.random.Generator) -> Floats:
    return np.sort(g.gamma(0.5, 1.0, n))


def _periodic(n: int, g: np.random.Generator) -> Floats:
    return np.asarray(1.1 + np.sin(2 * np.pi * 14 * _place(n)))


def _gaps(n: int, g: np.random.Generator) -> Floats:
    full = np.repeat(g.random(32) < 0.35, n // 32)
    full[: n // 32] = True
    return np.where(full, 1 + 0.5 * np.sin(60 * _place(n)), 0.0)


def _mixture(n: int, g: np.random.Generator) -> Floats:
    smooth = np.exp(-(((_place(n) - 0.55) / 0.2) ** 2))
    lone = _spikes(n, g)
    return np.asarray(0.6 * smooth / smooth.sum() + 0.4 * lone / lone.sum())


def _shuffled(n: int, g: np.random.Generator) -> Floats:
    return g.permutation(1.0 / np.arange(1, n + 1) ** 1.1)


def _flat(n: int, g: np.random.Generator) -> Floats:
    return np.ones(n)


def _huge(n: int, g: np.random.Generator) -> Floats:
    floor = np.full(n, 0.5 / n)
    floor[g.choice(n, 5, replace=False)] += 0.1
    return floor


def _saw(n: int, g: np.random.Generator) -> Floats:
    return np.asarray(_place(n) * 5 % 1 + 0.02)


def _heaped(n: int, g: np.random.Generator) -> Floats:
    """Ages as people tell them: round numbers get what their neighbours lose."""
    return np.asarray(np.exp(-(((_place(n) - 0.4) / 0.25) ** 2)) * np.where(np.arange(n) % 5 == 0, 3.0, 0.5))


def _walk(n: int, g: np.random.Generator) -> Floats:
    return np.asarray(np.exp(np.cumsum(g.normal(0, 3.0 / np.sqrt(n), n))))


def _half(n: int, g: np.random.Generator) -> Floats:
    return np.where(np.arange(n) < 0.37 * n, 1.0, 0.1)


def _lognormal(n: int, g: np.random.Generator) -> Floats:
    return g.lognormal(0.0, 1.5, n)


DEVELOPED: dict[str, Make] = {
    "bumps": _bumps,
    "spikes": _spikes,
    "sorted": _sorted,
    "gaps": _gaps,
    "shuffled": _shuffled,
    "huge": _huge,
    "heaped": _heaped,
    "half": _half,
}
ASIDE: dict[str, Make] = {
    "steps": _steps,
    "tail": _tail,
    "periodic": _periodic,
    "mixture": _mixture,
    "flat": _flat,
    "saw": _saw,
    "walk": _walk,
    "lognormal": _lognormal,
}


def fresh_cases(folder: Path | None = None) -> list[Case]:
    """All shapes at all sizes and totals; with a folder of public data, real columns too.

    >>> cases = fresh_cases()
    >>> len(cases), sum(case.aside for case in cases), cases[0].name, int(cases[0].counts.sum())
    (192, 96, 'bumps-256-1000', 1000)
    """
    cases = []
    for makers, aside in ((DEVELOPED, False), (ASIDE, True)):
        for name, make in makers.items():
            for n in SIZES:
                shape = make(n, np.random.default_rng([n, crc32(name.encode())]))
                cases += _drawn(name, shape, aside=aside)
    if folder is not None:
        for k, (name, column) in enumerate(real_columns(folder).items()):
            for n in SIZES:
                if column.size >= n:
                    folded = np.add.reduceat(column, -(-np.arange(n) * column.size // n))
                    cases += _drawn(name, folded, aside=k % 2 == 1)
    return cases


def _drawn(name: str, shape: Floats, *, aside: bool) -> list[Case]:
    cases = []
    for total in TOTALS:
        title = f"{name}-{shape.size}-{total}"
        g = np.random.default_rng(crc32(title.encode()))
        cases.append(Case(title, g.multinomial(total, shape / shape.sum()).astype(np.int64), aside=aside))
    return cases


def real_columns(folder: Path) -> dict[str, Floats]:
    """Real histograms over ordered bins, in full length; every second one is kept aside."""
    import pandas as pd

    census = pd.read_parquet(folder / "census_income_kdd.parquet", columns=["wage_per_hour", "dividends_from_stocks"])
    visits = pd.read_parquet(folder / "foursquare_nyc_top193.parquet", columns=["minute_of_day", "venue"])
    pages = pd.read_parquet(folder / "msnbc_sequences.parquet", columns=["n_pages"])
    ratings = pd.read_parquet(folder / "ml1m_ratings.parquet", columns=["user", "movie"])
    bank = pd.read_parquet(folder / "bank_additional_full.parquet", columns=["duration"])
    table = pd.read_parquet(folder / "dpbench_1d.parquet")
    columns = {
        "census-wage": _held(census["wage_per_hour"], 8192),
        "census-dividends": _held(census["dividends_from_stocks"], 8192),
        "nyc-minute": _held(visits["minute_of_day"], 1440),
        "nyc-venue": _held(visits["venue"], 16384),
        "msnbc-length": _held(pages["n_pages"], 4096),
        "ml-movie": _held(ratings["movie"], 4096),
        "ml-per-user": _held(ratings["user"].value_counts(), 2048),
        "bank-duration": _held(bank["duration"], 4096),
    }
    for name in DPBENCH:
        column = table[table["dataset"] == name].sort_values("bin")["count"]
        columns[f"dpbench-{name}"] = np.asarray(column, dtype=np.float64)
    return columns


def _held(values: object, size: int) -> Floats:
    column = np.clip(np.asarray(values, dtype=np.int64), 0, size - 1)
    return np.bincount(column, minlength=size).astype(np.float64)


def signal_class(counts: Ints, epsilon: float) -> int:
    """Which of the six classes of Nε/n a cell is in, faintest first.

    >>> signal_class(np.full(1000, 2), 0.01), signal_class(np.full(1000, 2), 1.0)
    (1, 3)
    """
    return int(np.searchsorted(SIGNALS, float(counts.sum()) * epsilon / counts.size))


def dawa_reference(counts: Ints, epsilon: float, rng: np.random.Generator) -> Floats:
    """DAWA for ranges as its authors describe it, with the noise that its proof needs.

    >>> dawa_reference(np.full(64, 100), 1.0, np.random.default_rng(0)).shape
    (64,)
    """
    n = counts.size
    first, second = PARTITION_SHARE * epsilon, (1 - PARTITION_SHARE) * epsilon
    exact = _deviations(np.ascontiguousarray(counts, dtype=np.int64).tobytes())
    costs = []
    for k, deviation in enumerate(exact):
        scale = (4 - 2 / 2**k - 2 / n) / first
        costs.append((np.maximum(deviation + rng.laplace(0, scale, deviation.size), 0.0) + 1 / second).tolist())
    best, begun = [0.0], [0]
    for stop in range(1, n + 1):
        low, start = np.inf, stop - 1
        for k in range(len(costs) - 1, -1, -1):  # the longest first: it wins a tie
            begin = stop - 2**k
            if begin >= 0 and best[begin] + costs[k][begin] < low:
                low, start = best[begin] + costs[k][begin], begin
        best.append(low)
        begun.append(start)
    cuts = [n]
    while cuts[-1] > 0:
        cuts.append(begun[cuts[-1]])
    edges = np.array(cuts[::-1])
    lengths = np.diff(edges)
    totals = np.add.reduceat(counts, edges[:-1]) + rng.laplace(0, 1 / second, lengths.size)
    return np.asarray(np.repeat(totals / lengths, lengths))


@lru_cache(maxsize=4)
def _deviations(content: bytes) -> list[Floats]:
    """Sum of absolute deviations of every interval, a list per power-of-two length."""
    counts = np.frombuffer(content, dtype=np.int64).astype(np.float64)
    prefix = np.concatenate([[0.0], np.cumsum(counts)])
    out = [np.zeros(counts.size)]
    length = 2
    while length <= counts.size:
        mean = (prefix[length:] - prefix[:-length]) / length
        spread = np.zeros(mean.size)
        for shift in range(length):
            spread += np.abs(counts[shift : shift + mean.size] - mean)
        out.append(spread)
        length *= 2
    return out
