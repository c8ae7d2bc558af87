"""Attributes and recipients: the paper's figures, speed, the device, streams and the recommendation case study."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.attributes import allocate, catalogue_leaks
from sfumato.bench import not_measured
from sfumato.bench.attributes_data import Shop, flat_budgets, made_shop, movielens, shops
from sfumato.bench.attributes_recommendation import recommendation_claims, recommendation_figures
from sfumato.bench.attributes_scale import (
    allocation_times,
    batch_seconds,
    device_seconds,
    growth,
    random_gaps,
    stream_figures,
)
from sfumato.bench.attributes_utility import EPSILONS, utility_claims, utility_figures

PEOPLE = 1_000_000


def run(
    *, quick: bool = False, data: Path | None = None, progress: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Measure and compare with the limits; `quick` is a small version in under a minute."""
    figures: dict[str, Any] = {"utility": {}}
    claims: list[dict[str, Any]] = []
    first: Shop | None = None
    for shop in shops(data, quick=quick):
        progress(f"errors against ε on {shop.name}")
        first = first or shop
        figures["utility"][shop.name] = utility_figures(shop, draws=10)
        if shop.name == "MovieLens":
            claims += utility_claims(figures["utility"][shop.name])
            if not quick:
                progress("the same with 100 draws of the budgets, for the standard error")
                figures["utility"]["MovieLens, 100 draws"] = utility_figures(shop, draws=100, seed=1)
    assert first is not None
    figures["correlation"] = _correlation(first)
    progress("certified gaps on random catalogues")
    figures["largest_gap"] = random_gaps(cases=200)
    claims.append(_claim("largest certified optimality gap on 200 random catalogues", figures["largest_gap"], "<", 1e-6))
    figures["growth"] = growth(most=10_000 if quick else 1_000_000)
    times = figures["allocation"] = allocation_times(items=20_000 if quick else 100_000, progress=progress)
    for kind in ("0/1", "weighted"):
        label = f"{times['items']:,} items x 20 attributes, {kind}"
        claims.append(_claim(f"{label}: seconds to a verified policy", times[kind]["seconds"], "<", 1.0))
        name = f"{label}: times faster than the modelling layer and conic solver"
        if "conic_missing" in times:
            claims.append(not_measured(name, ">= 10", times["conic_missing"]))
        else:
            claims.append(_claim(name, times[kind]["times_faster"], ">=", 10))
    people = PEOPLE // 10 if quick else PEOPLE
    progress(f"releases of {people:,} people")
    figures["batch"] = {"people": people, "seconds": batch_seconds(first, people=people)}
    claims.append(_claim(f"seconds for the releases of {people:,} people", figures["batch"]["seconds"], "<", 10))
    m = len(first.catalogue.attributes)
    policy = allocate(first.catalogue, budgets=flat_budgets(np.random.default_rng(0), m), epsilon=0.1, utility="mael")
    progress("a device in a fresh process")
    figures["device"] = device_seconds(policy)
    name = "seconds for import and release in a fresh process, NumPy's own import apart"
    claims.append(_claim(name, figures["device"]["import_and_release"], "<", 0.05))
    figures["stream"] = stream_figures(policy, steps=100_000 if quick else 1_000_000)
    kept, levels = figures["stream"]["numbers_kept_per_attribute"], figures["stream"]["levels"]
    name = f"stream of {figures['stream']['steps']:,} items: numbers kept per attribute"
    claims.append(_claim(name, kept, "<=", 3 * levels + 1))
    progress("the recommendation case study")
    figures["recommendation"] = recommendation_figures(first, most_people=600 if quick else None)
    if first.name == "MovieLens":
        claims += recommendation_claims(figures["recommendation"])
    return {"figures": figures, "claims": claims}


def _correlation(shop: Shop) -> list[str]:
    """The warnings a person would read for the three attributes that others predict best."""
    leaks = catalogue_leaks(shop.catalogue, shop.catalogue.attributes)
    return [leak.sentence() for leak in sorted(leaks, key=lambda leak: -leak.explained)[:3] if leak.serious]


def _claim(name: str, figure: float, sign: str, limit: float) -> dict[str, Any]:
    holds = {"<": figure < limit, "<=": figure <= limit, ">=": figure >= limit}[sign]
    return {"name": name, "figure": float(f"{figure:.4g}"), "limit": f"{sign} {limit:g}", "holds": bool(holds)}


def plots(folder: Path, *, data: Path | None = None) -> list[Path]:
    """The pictures of the documentation page."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from sfumato.attributes.plots import plot_budgets, plot_utility

    folder.mkdir(parents=True, exist_ok=True)
    shop = made_shop(people=50) if data is None else movielens(data)
    budgets = flat_budgets(np.random.default_rng(0), len(shop.catalogue.attributes))
    paths = [folder / "attributes-budgets.png", folder / "attributes-utility.png"]
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    plot_budgets(allocate(shop.catalogue, budgets=budgets, epsilon=0.1), ax=axes)
    figure.savefig(paths[0], dpi=120)
    plt.close(figure)
    found = utility_figures(shop, draws=10)
    figure, grid = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    for axes, measure in zip(grid, ("mae", "mse", "mael"), strict=True):
        plot_utility(
            EPSILONS,
            found["errors"][measure],
            measure=measure,
            bounds=found["bounds"][measure],
            threshold=found["threshold"],
            ax=axes,
        )
    figure.suptitle(f"Expected error against the overall ε ({shop.name}, mean of 10 draws of the budgets)")
    figure.savefig(paths[1], dpi=120)
    plt.close(figure)
    return paths
