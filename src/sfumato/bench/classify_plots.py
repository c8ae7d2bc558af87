"""Pictures of the classification bench."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sfumato.bench.classify_data import census
from sfumato.classifiers.additive_plot import COLOURS

_STYLE = {"AutoClassifier": 2.6, "Majority": 1.0}


def draw_errors(name: str, found: dict[str, Any], path: Path) -> None:
    """Misclassification against ε, one line per method; what is not private is dotted."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(8.5, 4.8), layout="constrained")
    number = dotted = 0
    for method, by_epsilon in found.items():
        if method.endswith(("SVM", ", logistic")):
            continue  # they lie on top of their neighbours
        epsilons = [float(e) for e in by_epsilon]
        means = [v["mean"] for v in by_epsilon.values()]
        if "not private" in method:
            ax.axhline(means[0], color=("0.2", "0.6")[dotted % 2], linestyle=":", linewidth=1.4, label=method)
            dotted += 1
            continue
        ax.errorbar(
            epsilons,
            means,
            yerr=[v["sd"] for v in by_epsilon.values()],
            label=method,
            color=COLOURS[number % len(COLOURS)],
            linestyle=("-", "--", "-.")[number // len(COLOURS) % 3],
            linewidth=_STYLE.get(method, 1.4),
            marker="osD"[number // len(COLOURS) % 3],
            markersize=4,
            capsize=2,
        )
        number += 1
    ax.set_xscale("log")
    ax.set_xticks([float(e) for e in next(iter(found.values()))], list(next(iter(found.values()))))
    ax.minorticks_off()
    ax.set_xlabel("ε")
    ax.set_ylabel("share misclassified")
    ax.set_title(f"{name}: what a private classifier gets wrong", fontsize=10)
    ax.set_ylim(top=min(ax.get_ylim()[1], 2.2 * float(np.median([v["mean"] for v in found["Majority"].values()]))))
    ax.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=4.5)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def draw_shapes(path: Path) -> None:
    """Shape functions of an additive model of the synthetic census at ε = 1 (seeded, so the picture is reproducible)."""
    import matplotlib.pyplot as plt

    from sfumato.classifiers import PrivateAdditive
    from sfumato.privacy import Seeded

    table = census(40_000)
    model = PrivateAdditive(epsilon=1, schema=table.schema, target=table.target, source=Seeded(3))
    axes = model.fit(table.features, table.labels).plot()
    axes.flat[0].figure.savefig(path, dpi=130)
    plt.close(axes.flat[0].figure)
