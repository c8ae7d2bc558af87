"""Experiments on personal budgets: counts, partitions, learning, and the cost over ten million people.

sfumato bench people [--json] [--quick] [--data FOLDER] [--plots FOLDER]
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.bench.people_counts import error_table, range_counts, table_claims
from sfumato.bench.people_data import PROFILES, SIZES, draw_budgets, roster
from sfumato.bench.people_learning import learn, learning_claims
from sfumato.bench.people_partition import big_count, partition_claims, partition_times
from sfumato.privacy import PersonBudgets


def _silent(_: str) -> None:
    """No progress."""


def run(*, quick: bool = False, data: Path | None = None, progress: Callable[[str], None] = _silent) -> dict[str, Any]:
    """All experiments; `quick` is a small version in under a minute, `data` a folder with the real Adult."""
    sizes = SIZES[:1] if quick else SIZES
    table = error_table(sizes, progress)
    ranges = {
        str(n): range_counts(
            n,
            queries=20 if quick else 100,
            attributes=(1, 3) if quick else (1, 3, 14),
            profiles=("three tiers",) if quick else PROFILES,
            progress=progress,
        )
        for n in sizes
    }
    part_sizes = (25_000, 100_000) if quick else (62_500, 250_000, 1_000_000)
    parts = partition_times(part_sizes, 50, progress)
    learned = learn(
        repeats=3 if quick else 20,
        train=8_000 if quick else 24_000,
        losses=("logistic",) if quick else ("logistic", "svm"),
        data=data,
        progress=progress,
    )
    big = big_count(1_000_000 if quick else 10_000_000, progress)
    claims = [
        *table_claims(table, sizes),
        *partition_claims(parts, part_sizes),
        *learning_claims(learned),
        {
            "name": f"a personalized count over {big['people']:,} people, multiple of the plain weighted SQL sum",
            "figure": round(big["ratio"], 2),
            "limit": 2.0,
            "holds": big["ratio"] <= 2.0,
        },
    ]
    if quick:  # the notes' learning figures and the ten million people are for the full run
        claims = [c for c in claims if "AUC on the real Adult" not in c["name"] and "plain weighted SQL" not in c["name"]]
    figures = {"counts": table, "range_counts": ranges, "partition": parts, "learning": learned, "big_count": big}
    return {"figures": figures, "claims": claims}


def plots(folder: Path) -> list[Path]:
    """Pictures for the documentation, from public facts and a small simulation."""
    import matplotlib.pyplot as plt

    from sfumato.people import Question, plan_offer, preview_count
    from sfumato.people.mechanisms.sampling import SamplingPlan
    from sfumato.people.plots import plot_budgets, plot_options, plot_threshold_sweep
    from sfumato.privacy import NANO, Nano

    folder.mkdir(parents=True, exist_ok=True)
    made = []

    def save(name: str, figure: Any) -> None:
        path = folder / f"people-{name}.png"
        figure.savefig(path, dpi=120)
        plt.close(figure)
        made.append(path)

    save("readme", readme_picture())
    rng = np.random.default_rng(2)
    tiers, _ = roster(draw_budgets("three tiers", 190_000, rng))
    save("preview", plot_options(preview_count(tiers)).figure)
    uniform, _ = roster(draw_budgets("uniform", 190_000, rng), decimals=4)
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
    for ax, mechanism in zip(axes, ("affine", "partition"), strict=True):
        plot_budgets(uniform, ax, plan=plan_offer(Question(uniform), mechanism).plan)
        ax.set_title(mechanism, fontsize=10)
    save("budgets", figure)
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for ax, profile in zip(axes, ("uniform", "normal truncated"), strict=True):
        budgets, _ = roster(draw_budgets(profile, 370_000, rng), decimals=4)
        q = Question(budgets)
        sweep = np.geomspace(int(budgets.levels[0]), int(budgets.levels[-1]), 25)
        errors = [SamplingPlan(q, Nano(int(t))).expected_rmse / q.people for t in sweep]
        others = {
            m: (plan_offer(q, m).expected_rmse or 0) / q.people
            for m in ("affine", "partition", "privacy-aware", "threshold", "robust", "minimum")
        }
        plot_threshold_sweep((sweep / NANO).tolist(), errors, others, ax, title=f"{profile}, 370,000 people")
    save("threshold-sweep", figure)
    return made


def readme_picture() -> Any:
    """The clinic of `make demo`: expected error of one count, by mechanism. Public facts only."""
    import matplotlib.pyplot as plt

    from sfumato.demo import PATIENTS, TIERS
    from sfumato.palette import BLUE, GREY
    from sfumato.people import preview_count

    heads = {name: (epsilon, round(PATIENTS * share)) for name, (epsilon, share) in TIERS.items()}
    options = preview_count(PersonBudgets.from_tiers(heads).share(0.5))
    figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
    place = np.arange(len(options))[::-1]
    errors = [o.expected_rmse or 0.0 for o in options]
    ax.barh(place, errors, color=[BLUE if i == 0 else GREY for i in range(len(options))])
    for y, error in zip(place, errors, strict=True):
        ax.text(error, y, f" {error:,.0f}", va="center")
    ax.set_yticks(place, [o.mechanism for o in options])
    ax.set_xlabel(f"expected error of a count over {PATIENTS:,} patients (root mean square, people)")
    ax.set_title("54% grant ε 0.01, 37% 0.2, 9% 1.0; half of every budget is used", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    ax.margins(x=0.08)
    return figure
