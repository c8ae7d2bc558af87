"""Histograms for experiments: real ones from a folder of public data, families made here, and those kept aside."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

DPBENCH = ("HEPTH", "ADULTFRANK", "INCOME", "MEDCOST", "NETTRACE", "PATENT", "SEARCHLOGS", "BIDS-ALL")


@dataclass(frozen=True, eq=False)
class Case:
    """One true histogram; `aside` marks those no constant was ever chosen on."""

    name: str
    counts: NDArray[np.int64]
    ordered: bool = True
    aside: bool = False


def made() -> list[Case]:
    """The families of the slides, made here: lognormal and exponential bins, and a Zipf user stand-in."""
    g = np.random.default_rng(2017)
    lognormal = np.bincount(np.minimum(g.lognormal(4.5, 0.8, 3544).astype(int), 1023), minlength=1024)
    exponential = np.bincount(np.minimum(g.exponential(90.0, 25929).astype(int), 1023), minlength=1024)
    shares = 1.0 / np.arange(1, 2001) ** 1.1
    zipf = g.permutation(g.multinomial(27149, shares / shares.sum()))
    return [
        Case("LOGNORMAL", lognormal.astype(np.int64)),
        Case("EXPONENTIAL", exponential.astype(np.int64)),
        Case("ZIPFUSER", zipf.astype(np.int64), ordered=False),
    ]


def kept_aside() -> list[Case]:
    """Families on which nothing was tuned: smooth, stepped, spiky, periodic, heavy-tailed, empty."""
    g = np.random.default_rng(77)
    n = 2048
    x = np.arange(n) / n
    bumps = 0.7 * np.exp(-(((x - 0.3) / 0.05) ** 2)) + 0.3 * np.exp(-(((x - 0.7) / 0.12) ** 2))
    steps = np.repeat(g.gamma(0.5, 1.0, 32), n // 32)
    waves = 1.2 + np.sin(40 * np.pi * x)
    spikes = np.where(g.random(n) < 0.01, g.pareto(1.2, n) + 1, 0.0)
    tail = 1.0 / (np.arange(n) + 3.0) ** 1.5
    shapes = {"BUMPS": bumps, "STEPS": steps, "WAVES": waves, "SPIKES": spikes, "TAIL": tail, "FLAT": np.ones(n)}
    cases = []
    for name, shape in shapes.items():
        for total in (5_000, 500_000):
            counts = g.multinomial(total, shape / shape.sum()).astype(np.int64)
            cases.append(Case(f"{name}-{total}", counts, aside=True))
    cases.append(Case("SPIKES-unordered", g.permutation(cases[6].counts), ordered=False, aside=True))
    return cases


def real(folder: Path) -> list[Case]:
    """The DPBench 1-D sets and the political blogs: links per blog (unordered) and blogs per number of links (ordered)."""
    import pandas as pd

    table = pd.read_parquet(folder / "dpbench_1d.parquet")
    cases = [Case(name, _column(table[table["dataset"] == name].sort_values("bin")["count"])) for name in DPBENCH]
    nodes = pd.read_parquet(folder / "polblogs_nodes.parquet")
    degree = _column(nodes["in_degree"].astype("int64") + nodes["out_degree"])
    return [*cases, Case("POLB-node", degree, ordered=False), Case("POLB-degree", np.bincount(degree))]


def real_aside(folder: Path) -> list[Case]:
    """Real columns on which nothing was tuned: ages, call lengths, check-in times, venue categories, pages."""
    import pandas as pd

    adult = pd.read_parquet(folder / "adult.parquet", columns=["age", "hours_per_week"])
    bank = pd.read_parquet(folder / "bank_additional_full.parquet", columns=["duration"])
    visits = pd.read_parquet(folder / "foursquare_nyc_top193.parquet", columns=["minute_of_day", "venue", "category"])
    checkins = pd.read_parquet(folder / "ubicomp2013_checkins.parquet", columns=["venue"])
    grid = np.bincount(adult["age"].to_numpy() * 100 + adult["hours_per_week"].to_numpy(), minlength=9200)[:9200]
    return [
        Case("ADULT-age", np.bincount(adult["age"], minlength=100), aside=True),
        Case("ADULT-age-hours", grid, aside=True),
        Case("BANK-duration", np.bincount(np.minimum(bank["duration"], 4095), minlength=4096), aside=True),
        Case("NYC-minute", np.bincount(visits["minute_of_day"], minlength=1440), aside=True),
        Case("NYC-venue", np.bincount(visits["venue"], minlength=15401), ordered=False, aside=True),
        Case("NYC-category", _column(visits["category"].value_counts(sort=False)), ordered=False, aside=True),
        Case("UBICOMP-venue", _column(checkins["venue"].value_counts(sort=False)), ordered=False, aside=True),
    ]


def _column(values: object) -> NDArray[np.int64]:
    return np.asarray(values, dtype=np.int64)
