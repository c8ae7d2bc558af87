"""Experiments on personal budgets: counts, partitions, learning, intervals, consent that follows values, ten million people.

sfumato bench people [--json] [--quick] [--part PART] [--data FOLDER] [--plots FOLDER]
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.bench.consent_pictures import error_by_gap, how_sure, readme_picture
from sfumato.bench.people_cells import table as cells_table
from sfumato.bench.people_consent import cells_claims, consent, consent_claims, consent_table, frontier
from sfumato.bench.people_counts import error_table, range_claims, range_counts, table_claims
from sfumato.bench.people_coverage import SIZES as COVERED
from sfumato.bench.people_coverage import coverage, coverage_claims
from sfumato.bench.people_data import PROFILES, SIZES, draw_budgets, roster
from sfumato.bench.people_leaning import FOLLOWS, leaning, leaning_claims
from sfumato.bench.people_learning import learn, learning_claims
from sfumato.bench.people_models import model_claims, models
from sfumato.bench.people_partition import big_count, partition_claims, partition_times
from sfumato.bench.people_roster import roster_claims, roster_cost
from sfumato.privacy import PersonBudgets

PARTS = (
    "counts",
    "ranges",
    "partition",
    "learning",
    "leaning",
    "models",
    "coverage",
    "consent",
    "cells",
    "roster",
    "big_count",
)


def _silent(_: str) -> None:
    """No progress."""


def run(
    *,
    quick: bool = False,
    data: Path | None = None,
    part: str | None = None,
    progress: Callable[[str], None] = _silent,
) -> dict[str, Any]:
    """All experiments, or one `part`; `quick` is a small version, `data` a folder with the real Adult."""
    figures: dict[str, Any] = {}
    claims: list[dict[str, Any]] = []
    wanted = PARTS if part is None else (part,)
    sizes = SIZES[:1] if quick else SIZES
    if "counts" in wanted:
        figures["counts"] = error_table(sizes, progress)
        claims += table_claims(figures["counts"], sizes)
    if "ranges" in wanted:
        figures["range_counts"] = {
            str(n): range_counts(
                n,
                queries=20 if quick else 60,
                attributes=(1, 3) if quick else (1, 3, 14),
                profiles=("three tiers",) if quick else tuple(p for p in PROFILES if p != "normal clipped"),
                progress=progress,
            )
            for n in sizes
        }
        claims += [] if quick else range_claims(figures["range_counts"])
    if "partition" in wanted:
        part_sizes = (25_000, 100_000) if quick else (62_500, 250_000, 1_000_000)
        figures["partition"] = partition_times(part_sizes, 50, progress)
        claims += partition_claims(figures["partition"], part_sizes)
    if "learning" in wanted:
        figures["learning"] = learn(
            repeats=3 if quick else 20,
            train=8_000 if quick else 24_000,
            losses=("logistic",) if quick else ("logistic", "svm"),
            data=data,
            progress=progress,
        )
        # the notes' figures are for the full run
        claims += [c for c in learning_claims(figures["learning"]) if not quick or "AUC on the real Adult" not in c["name"]]
    if "leaning" in wanted:
        columns = ("nothing", "the label") if quick else tuple(FOLLOWS)
        size = 4_000 if quick else 24_000
        figures["leaning"] = leaning(repeats=1 if quick else 5, train=size, data=data, progress=progress, follows=columns)
        claims += [] if quick else leaning_claims(figures["leaning"])
    if "models" in wanted:
        few = ("PrivateNaiveBayes", "PrivateDecisionTree")
        small_run: dict[str, Any] = {"names": few, "profiles": ("three tiers",)} if quick else {}
        figures["models"] = models(
            repeats=1 if quick else 3, rows=6_000 if quick else 30_000, data=data, progress=progress, **small_run
        )
        claims += [] if quick else model_claims(figures["models"])
    if "coverage" in wanted:
        runs = 100 if quick else 400
        figures["coverage"] = coverage(runs, COVERED[:3] if quick else COVERED, progress)
        claims += coverage_claims(figures["coverage"], runs)
    if "consent" in wanted:
        draws = 40 if quick else 100
        small: dict[str, Any] = {"gaps": (0.0, 0.05), "names": ("three tiers, 50k",), "patterns": ("strict",)}
        figures["consent"] = consent(draws=draws, progress=progress, **(small if quick else {}))
        figures["consent"] |= consent_table(draws=draws, data=data, progress=progress)
        claims += consent_claims(figures["consent"])
    if "cells" in wanted:
        progress("consent: histograms")
        figures["cells"] = cells_table(quick)
        claims += cells_claims(figures["cells"])
    if "roster" in wanted:
        draws, runs = (3, 20) if quick else (20, 50)
        figures["roster"] = roster_cost(draws, runs, progress)
        claims += roster_claims(figures["roster"], draws * runs)
    if "big_count" in wanted:
        figures["big_count"] = big_count(1_000_000 if quick else 10_000_000, progress)
        if not quick:
            claims.append(_big_claim(figures["big_count"]))
    return {"figures": figures, "claims": claims}


def _big_claim(found: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": f"a personalized count over {found['people']:,} people, multiple of the plain weighted SQL sum",
        "figure": round(found["ratio"], 2),
        "limit": 2.0,
        "holds": found["ratio"] <= 2.0,
    }


def plots(folder: Path) -> list[Path]:
    """Pictures for the documentation, from public facts and a small simulation."""
    import matplotlib.pyplot as plt

    from sfumato.people import Question, plan_offer, preview_count
    from sfumato.people.mechanisms.sampling import SamplingPlan
    from sfumato.people.plots import plot_budgets, plot_options, plot_threshold_sweep
    from sfumato.privacy import NANO, Nano

    folder.mkdir(parents=True, exist_ok=True)
    made = []

    def save(name: str, figure: Any, about: str = "people") -> None:
        path = folder / f"{about}-{name}.png"
        figure.savefig(path, dpi=120)
        plt.close(figure)
        made.append(path)

    save("readme", readme_picture())
    for name, figure in (("gap", error_by_gap()), ("how-sure", how_sure())):
        save(name, figure, about="consent")
    save("frontier", frontier())
    rng = np.random.default_rng(2)
    tiers, _ = roster(draw_budgets("three tiers", 190_000, rng))
    save("preview", plot_options(preview_count(tiers)).figure)
    save("gaps", _gaps_picture(tiers))
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


def _gaps_picture(tiers: PersonBudgets) -> Any:
    """The error of every mechanism against the gap between the stricter people and the rest."""
    from sfumato.people import preview_count
    from sfumato.people.plots import plot_gaps

    known = {o.mechanism: o.errors for o in preview_count(tiers) if o.errors is not None}
    return plot_gaps({name: (e.independent, *e.at, e.worst) for name, e in known.items()}, chosen="adaptive").figure
