"""Pictures of the classification bench."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sfumato.bench.classify_data import census
from sfumato.classifiers.counting.additive_plot import COLOURS

_OTHERS = ("DiffGen", "PPH", "PrivBayes", "UniformGrid", "diffprivlib", "DP-EBM")
_HIDDEN = (", SVM", ", logistic", "PrivateAdditive")  # on top of their neighbours, the last below AutoClassifier


def draw_errors(name: str, found: dict[str, Any], path: Path) -> None:
    """Misclassification against ε: models of this library on the left, rivals and other libraries on the right."""
    import matplotlib.pyplot as plt

    shown = {k: v for k, v in found.items() if not k.endswith(_HIDDEN)}
    others = {k: v for k, v in shown.items() if k.startswith(_OTHERS)}
    panels = [{k: v for k, v in shown.items() if k not in others}]
    if others:
        panels.append({"AutoClassifier": shown["AutoClassifier"], **others})
    figure, axes = plt.subplots(1, len(panels), figsize=(5.4 * len(panels), 5.4), sharey=True, squeeze=False)
    for ax, panel in zip(axes[0], panels, strict=True):
        _lines(ax, panel)
        ax.set_xscale("log")
        ax.set_xticks([float(e) for e in found["AutoClassifier"]], list(found["AutoClassifier"]))
        ax.minorticks_off()
        ax.set_xlabel("ε")
        ax.legend(fontsize=7, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.13), handlelength=3.5)
    draws = sorted({v["draws"] for by_epsilon in found.values() for v in by_epsilon.values()})
    axes[0, 0].set_ylabel(f"share misclassified, mean ± standard error of {' to '.join(map(str, draws))} splits")
    axes[0, 0].set_title(f"{name}: models of this library", fontsize=10)
    if others:
        axes[0, 1].set_title(f"{name}: rivals and other libraries", fontsize=10)
    worst = float(np.median([v["mean"] for v in found["Majority"].values()]))
    axes[0, 0].set_ylim(top=min(axes[0, 0].get_ylim()[1], 1.15 * worst))
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _lines(ax: Any, panel: dict[str, Any]) -> None:
    number = dotted = 0
    for method, by_epsilon in panel.items():
        means = [v["mean"] for v in by_epsilon.values()]
        if "not private" in method:
            ax.axhline(means[0], color=("0.2", "0.6")[dotted % 2], linestyle=":", linewidth=1.4, label=method)
            dotted += 1
            continue
        ax.errorbar(
            [float(e) for e in by_epsilon],
            means,
            yerr=[v["se"] or 0.0 for v in by_epsilon.values()],
            label=method,
            color=COLOURS[number % len(COLOURS)],
            linestyle=("-", "--", "-.")[number // len(COLOURS) % 3],
            linewidth=2.6 if method == "AutoClassifier" else 1.4,
            marker="osD"[number // len(COLOURS) % 3],
            markersize=4,
            capsize=2,
        )
        number += 1


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
