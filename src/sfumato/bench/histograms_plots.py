"""Pictures of histograms: what each mechanism makes of the same data, and which way of measuring wins where."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sfumato.bench.histograms_data import Case
from sfumato.histograms import release_histogram
from sfumato.histograms.estimation.metrics import kld
from sfumato.palette import BLUE, GREY
from sfumato.privacy import Meter, Seeded


def example() -> Case:
    """A made histogram with a smooth part, an empty part and two spikes."""
    x = np.arange(1024)
    shape = np.exp(-(((x - 300) / 90.0) ** 2)) + 0.3 * np.exp(-(((x - 480) / 40.0) ** 2))
    counts = np.random.default_rng(1).poisson(60 * shape)
    counts[[800, 860]] = (900, 500)
    return Case("EXAMPLE", counts.astype(np.int64))


def draw(folder: Path) -> list[Path]:
    """Write the pictures and say where."""
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    case = example()
    figure, axes = plt.subplots(5, 1, figsize=(8, 11), sharex=True, layout="constrained")
    for ax, name in zip(axes, ("identity", "ahp", "covariate", "dawa_shape", "auto_shape"), strict=True):
        meter = Meter(source=Seeded(3))
        made = release_histogram(case.counts, epsilon=0.1, bins=case.counts.size, meter=meter, mechanism=name)
        ax.step(np.arange(1024), case.counts, where="mid", color=GREY, lw=0.8, label="truth")
        ax.step(np.arange(1024), made.flat, where="mid", color=BLUE, lw=0.9, label=name)
        ax.set_ylim(-60, 140)
        ax.set_title(f"{name}: KLD {kld(case.counts, made.flat):.3f}", fontsize=10, loc="left")
        ax.set_ylabel("records")
    axes[-1].set_xlabel("bin (two spikes of 900 and 500 reach above the picture)")
    axes[0].legend(frameon=False)
    path = folder / "histograms-mechanisms.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)

    meter = Meter(source=Seeded(5))
    budgets = np.where(np.arange(24) < 12, 0.1, 1.0)
    counts = np.random.default_rng(2).poisson(40 + 20 * np.sin(np.arange(24) / 3))
    made = release_histogram(counts, epsilon=1, bins=24, meter=meter, mechanism="identity", bin_budgets=budgets)
    figure, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
    made.plot(ax)
    ax.set_title("Bins 0 to 11 protected at ε = 0.1, the others at ε = 1", fontsize=10)
    policy = folder / "histograms-bin-budgets.png"
    figure.savefig(policy, dpi=110)
    plt.close(figure)
    return [path, policy]
