"""The slides' tables with the loss counted honestly: sets x δ x ε, KLD averaged over the histograms of a set.

For each δ: `published` is the slides' mechanism at its claimed ε (not private: its order comes from the counts, and even
its largest bin budget exceeds the claim), `same_loss_ahp` is AHP simply given that largest bin budget, and `sound` is DPA
over the public order of the bins at the claimed ε. All three cluster greedily, as the slides do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.bench.histograms_published import leaking_ahp, published
from sfumato.histograms.estimation.metrics import kld
from sfumato.histograms.mechanisms.dynamic import dpa, dpa_shares, published_cost
from sfumato.privacy import Exact, Meter, Seeded, positive_nano

DELTAS = (0.0, 0.025, 0.05, 0.075, 0.1, 0.15)
Tables = dict[str, list[NDArray[np.int64]]]


def made_tables(count: int) -> Tables:
    """Families like the slides' two synthetic sets: many small histograms each."""
    g = np.random.default_rng(4)
    lognormal = [np.bincount(np.minimum(g.lognormal(3, 1, 54).astype(int), 127), minlength=128) for _ in range(count)]
    exponential = [np.bincount(np.minimum(g.exponential(20, 508).astype(int), 127), minlength=128) for _ in range(count)]
    return {"LOGNORMAL": lognormal, "EXPONENTIAL": exponential}


def real_tables(folder: Path, count: int) -> Tables:
    """Check-in sets (one histogram per user) and the political blogs (one histogram)."""
    import pandas as pd

    nyc = pd.read_parquet(folder / "foursquare_nyc_top193.parquet", columns=["user", "category"])
    ubicomp = pd.read_parquet(folder / "ubicomp2013_checkins.parquet", columns=["user", "venue"])
    nodes = pd.read_parquet(folder / "polblogs_nodes.parquet", columns=["in_degree", "out_degree"])
    degree = (nodes["in_degree"].astype("int64") + nodes["out_degree"]).to_numpy(dtype=np.int64)
    return {
        "NYC": _per_user(nyc, "category", count),
        "UBICOMP": _per_user(ubicomp, "venue", count),
        "CONPOLBLOGS": [degree],
    }


def _per_user(frame: Any, column: str, count: int) -> list[NDArray[np.int64]]:
    codes = frame[column].astype("category").cat.codes.to_numpy()
    users = frame["user"].to_numpy()
    return [np.bincount(codes[users == u], minlength=int(codes.max()) + 1) for u in np.unique(users)[:count]]


def table(
    tables: Tables, *, deltas: Sequence[float], epsilons: Sequence[float], repeats: int, progress: Callable[[str], None]
) -> list[dict[str, Any]]:
    """One row per set, ε and δ."""
    rows = []
    for name, histograms in tables.items():
        for epsilon in epsilons:
            claim = positive_nano(epsilon)
            for delta in deltas:
                scores: dict[str, list[float]] = {"published": [], "same_loss_ahp": [], "sound": []}
                for seed, counts in enumerate(histograms * repeats):
                    meter = Meter(source=Seeded(seed))
                    shares = dpa_shares(counts.size, delta)
                    rates = np.full(counts.size, claim)
                    scores["published"].append(
                        kld(counts, published(counts, epsilon=epsilon, shares=shares, meter=meter)[0])
                    )
                    scores["same_loss_ahp"].append(kld(counts, leaking_ahp(shares, epsilon)(counts, meter=meter)))
                    sound = dpa(Exact(counts), rates=rates, meter=meter, delta=delta, clustering="greedy")
                    scores["sound"].append(kld(counts, sound.counts))
                cost = published_cost(dpa_shares(histograms[0].size, delta))
                means = {k: round(float(np.mean(v)), 5) for k, v in scores.items()}
                rows.append(
                    {"set": name, "epsilon": epsilon, "delta": delta, "true_cost": round(cost * epsilon, 5), **means}
                )
        progress(f"slides: {name}")
    return rows
