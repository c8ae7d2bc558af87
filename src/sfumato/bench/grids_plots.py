"""Pictures for the documentation, made from invented data and from the figures of a bench run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sfumato.bench.grids_data import adult_schema
from sfumato.grids import PrivPfC
from sfumato.grids.published.plots import PALETTE, plot_schema
from sfumato.privacy import Seeded
from sfumato.tables.domains import Categorical, Numeric
from sfumato.tables.schema import Schema


def plots(folder: Path, figures: dict[str, Any] | None = None) -> list[Path]:
    """Write the pictures of docs/grids.md."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    made = []

    def save(figure: Any, name: str) -> None:
        path = folder / name
        figure.savefig(path, dpi=110)
        plt.close(figure)
        made.append(path)

    figure, ax = plt.subplots(figsize=(9, 5), layout="constrained")
    plot_schema(adult_schema(), ["age", "education", "marital_status", "relationship"], ax)
    save(figure, "grids-taxonomies.png")
    figure, ax = plt.subplots(figsize=(9, 5), layout="constrained")
    _demo().plot(ax)
    save(figure, "grids-synopsis.png")
    for name in ("adult", "bank"):
        if figures is not None and name in figures:
            figure, ax = plt.subplots(figsize=(8.5, 4.5), layout="constrained")
            _curves(ax, name, figures[name])
            save(figure, f"grids-{name}.png")
    return made


def _demo() -> Any:
    import pandas as pd

    rng = np.random.default_rng(0)
    n = 20_000
    age, smoker = rng.uniform(20, 84, n), rng.random(n) < 0.3
    ill = rng.random(n) < 0.05 + 0.5 * (age > 60) + 0.25 * smoker
    table = pd.DataFrame(
        {
            "age": age,
            "smoker": np.where(smoker, "yes", "no"),
            "region": np.array(["north", "south", "east"])[rng.integers(3, size=n)],
            "readmitted": np.where(ill, "yes", "no"),
        }
    )
    schema = Schema(
        {
            "age": Numeric(20, 84, bins=16),
            "smoker": Categorical(["no", "yes"]),
            "region": Categorical(["north", "south", "east"]),
            "readmitted": Categorical(["no", "yes"]),
        }
    )
    return PrivPfC(epsilon=0.2, target="readmitted", rows=n).fit(table, schema=schema, source=Seeded(1)).synopsis


def _curves(ax: Any, name: str, figures: dict[str, Any]) -> None:
    methods = [k for k in ("auto", "as published", "diffgen", "pph", "privbayes", "uniform-grid") if k in figures]
    for number, method in enumerate(methods):
        points = [(float(e), v["best"], v["standard_error"]) for e, v in figures[method].items()]
        at, means, errors = zip(*points, strict=True)
        label = "PrivPfC, automatic" if method == "auto" else f"PrivPfC {method}" if method == "as published" else method
        ax.errorbar(at, means, yerr=errors, marker="o", color=PALETTE[number], label=label)
    ax.set_xscale("log")
    ax.set_xticks([float(e) for e in figures[methods[0]]], list(figures[methods[0]]))
    ax.minorticks_off()
    ax.set_xlabel("ε")
    draws = next(iter(figures[methods[0]].values()))["splits"]
    ax.set_ylabel(f"misclassification, best learner (chosen on other rows), mean ± s.e. of {draws} splits", fontsize=8)
    ax.set_title(f"{name.capitalize()}: classifiers trained on the published table")
    ax.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
