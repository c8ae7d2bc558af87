"""`sfumato bench grids`: PrivPfC and its publishing rivals on real Adult and Bank, speed, and the paper's other figures.

Needs ``--data FOLDER`` with ``adult.parquet`` and ``bank_additional_full.parquet`` (``census_income_kdd.parquet``, kept
aside from all tuning, joins if it is there); without it only the synthetic parts run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sfumato.bench import grids_contrast
from sfumato.bench.grids_accuracy import EPSILONS, PAPER_OPTIONS, RIVALS, evaluate, privpfc, rival
from sfumato.bench.grids_data import FILES, Case, load
from sfumato.bench.grids_figures import (
    agreement,
    budget_splits,
    chosen_quality,
    columns,
    pool_sizes,
    run_times,
    table_sizes,
)
from sfumato.bench.grids_general import general_claims, general_tables
from sfumato.bench.grids_noise_free import noise_free
from sfumato.bench.grids_orders import order_claims, order_table, orders, sweep
from sfumato.bench.grids_plots import plots
from sfumato.bench.grids_speed import rows_against_grids, speed
from sfumato.bench.grids_tables import general_table, learner_tables
from sfumato.bench.grids_whole import whole_claims, whole_tables

__all__ = ["plots", "run"]

LIMITS = {
    "adult": {0.05: 0.168, 0.1: 0.166, 0.2: 0.163, 0.5: 0.159, 1.0: 0.157},
    "bank": {0.05: 0.104, 0.1: 0.097, 0.2: 0.093, 0.5: 0.090, 1.0: 0.089},
}
PARTS = ("synthetic", "whole", "general", "adult", "bank", "census", "orders", "contrast")
Claims = list[dict[str, Any]]


def run(
    *,
    quick: bool = False,
    data: Path | None = None,
    peers: bool = False,
    part: str | None = None,
    draws: int | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Run the bench, or one `part` of it; `quick` takes one split, one draw, two budgets and no support vectors.

    The part `general` with `peers` takes hours (AIM), so it runs by name only where there is a data folder.
    """
    figures: dict[str, Any] = {}
    claims: Claims = []
    wanted = PARTS if part is None else (part,)
    if "synthetic" in wanted:
        figures["error by table size"] = table_sizes((5_000, 20_000) if quick else (5_000, 20_000, 50_000, 200_000))
        progress(f"error by table size: {figures['error by table size']}")
        _rows(figures, claims, quick)
        progress(f"rows against grids: {figures['rows against grids']}")
    if "whole" in wanted:
        figures["whole tables"] = whole_tables(quick=quick, data=data, progress=progress)
        claims += [] if quick else whole_claims(figures["whole tables"])
    if part == "general" or ("general" in wanted and data is None):
        figures["general tables"] = general_tables(
            quick=quick, data=data, peers=peers, draws=draws or (1 if quick else 2), progress=progress
        )
        claims += [] if quick else general_claims(figures["general tables"])
    if data is None:
        progress("no --data folder: real data sets are left out")
        return {"figures": figures, "claims": claims, "tables": tables(figures)}
    for name in ("adult",) if quick else ("adult", "bank"):
        if name in wanted:
            figures[name] = _data_set(load(name, data), claims, quick, draws, progress)
    if "census" in wanted and not quick and (data / FILES["census"]).exists():
        figures["census"] = _kept_aside(load("census", data), claims, draws, progress)
    if "orders" in wanted:
        figures["orders of the columns"] = _orders(data, claims, quick, progress)
    if "contrast" in wanted and not quick:
        figures["contrast marginals"] = grids_contrast.run(data=data, progress=progress)["figures"]
    return {"figures": figures, "claims": claims, "tables": tables(figures)}


def tables(figures: dict[str, Any]) -> str:
    """The figures as Markdown."""
    found = [learner_tables(name, figures[name]) for name in ("adult", "bank", "census") if name in figures]
    found += [
        order_table(name, by_way) for name, by_way in figures.get("orders of the columns", {}).items() if "sweep" not in name
    ]
    if "general tables" in figures:
        found.append(general_table(figures["general tables"]))
    return "\n\n".join(found)


def _rows(figures: dict[str, Any], claims: Claims, quick: bool) -> None:
    found = rows_against_grids(
        rows=(100_000, 400_000) if quick else (100_000, 10_000_000),
        most=5_000 if quick else 1_000_000,
        attributes=6 if quick else 20,
    )
    figures["rows against grids"] = found
    few, many = found["rows"]
    name = f"rolling up {found['grids']} grids counted from {many} rows against {few}: time ratio"
    claims.append(_claim(name, found["ratio"], 2.0, found["ratio"] <= 2.0))


def _kept_aside(case: Case, claims: Claims, splits: int | None, progress: Callable[[str], None]) -> dict[str, Any]:
    """A data set on which no constant was tuned: do the automatic settings still beat the published ones?"""
    how: dict[str, Any] = {"epsilons": (0.1, 0.2, 0.5, 1.0), "repeats": splits or 3, "draws": 3}
    how["learners"] = ("tree", "logistic")
    found = {
        "auto": evaluate(case, privpfc(case), name="auto", progress=progress, **how),
        "as published": evaluate(
            case, privpfc(case, **PAPER_OPTIONS), name="as published", progress=progress, shuffled=True, **how
        ),
        "one grid": evaluate(case, privpfc(case, grids=1), name="one grid", progress=progress, **how),
        "two grids": evaluate(case, privpfc(case, grids=2), name="two grids", progress=progress, **how),
    }
    for epsilon in how["epsilons"]:
        mine, theirs = (found[k][str(epsilon)] for k in ("auto", "as published"))
        name = (
            f"{case.name} (kept aside) ε={epsilon}: at least as good as the published settings (within one standard error)"
        )
        claims.append(_claim(name, mine["best"], theirs["best"], mine["best"] <= theirs["best"] + mine["standard_error"]))
    return found


def _orders(data: Path, claims: Claims, quick: bool, progress: Callable[[str], None]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("adult",) if quick else ("adult", "bank"):
        case = load(name, data)
        found[name] = orders(case, quick=quick, progress=progress)
        claims += order_claims(name, found[name])
        if not quick:
            fine = [round(0.2 * 1.02**i, 4) for i in range(5)]
            found[f"{name}, sweep"] = sweep(case, epsilons=fine, repeats=3, draws=3, progress=progress)
    return found


def _data_set(
    case: Case, claims: Claims, quick: bool, splits: int | None, progress: Callable[[str], None]
) -> dict[str, Any]:
    epsilons = (0.05, 0.2) if quick else EPSILONS
    how: dict[str, Any] = {"epsilons": epsilons, "progress": progress}
    how |= {"repeats": 1, "draws": 1, "learners": ("tree", "logistic")} if quick else {"repeats": splits or 5, "draws": 5}
    found: dict[str, Any] = {"auto": evaluate(case, privpfc(case), name="auto", **how)}
    fewer = {**how, "draws": 1 if quick else 2}
    # Its outcome depends on the order of the columns: every draw has another one.
    found["as published"] = evaluate(case, privpfc(case, **PAPER_OPTIONS), name="as published", **{**how, "shuffled": True})
    for name in RIVALS:
        if not (quick and name == "privbayes"):
            found[name] = evaluate(case, rival(case, name), name=name, **fewer)
    for epsilon in epsilons:
        mine = found["auto"][str(epsilon)]
        limit = LIMITS[case.name][epsilon]
        slack = 0.0 if quick else mine["standard_error"]
        claims.append(_claim(f"{case.name} ε={epsilon}: misclassification (within one standard error)", mine["best"], limit,
                             mine["best"] <= limit + slack))  # fmt: skip
        others = {name: found[name][str(epsilon)]["best"] for name in (*RIVALS, "as published") if name in found}
        best = min(others, key=lambda name: others[name])
        claims.append(_claim(f"{case.name} ε={epsilon}: better than the best rival ({best})", mine["best"], others[best],
                             mine["best"] < others[best]))  # fmt: skip
    ratio = chosen_quality(case, 0.05, repeats=1 if quick else 5, draws=5 if quick else 20)
    found["quality of the chosen grid at ε=0.05"] = round(ratio, 4)
    claims.append(_claim(f"{case.name} ε=0.05: quality of the chosen grid over the best one's", round(ratio, 4), 0.995,
                         ratio >= 0.995))  # fmt: skip
    found["speed"] = times = speed(case, quick=quick)
    claims.append(_claim(f"{case.name}: 10,000 grids, times faster than one pass per grid", times["times_faster"], 10,
                         times["times_faster"] >= 10))  # fmt: skip
    if not quick:
        claims.append(_claim(f"{case.name}: 200,000 grids, seconds", times["seconds_200k_grids"], 30,
                             times["seconds_200k_grids"] <= 30))  # fmt: skip
        few: dict[str, Any] = {"repeats": 3, "draws": 1, "learners": ("tree",), "progress": progress}
        found["pool sizes"] = pool_sizes(case, (100, 10_000, 100_000), epsilons=(0.1, 1.0), **few)
        found["splits"] = budget_splits(case, epsilons=(0.05, 1.0), **few)
        found["noise-free structure (not private)"] = noise_free(case, epsilons=(0.05, 0.5), **few)
        found["columns"] = columns(case, (6, 10, len(case.attributes)), **few)
        found["seconds per release"] = run_times(case)
        found["agreement of equations 1 and 5"] = round(_three_classes(case), 3)
    return found


def _three_classes(case: Case) -> float:
    """Figure 3 on the same columns with a target of more than two classes."""
    from dataclasses import replace

    name = "marital_status" if case.name == "adult" else "poutcome"
    at = [a.name for a in case.attributes].index(name)
    keep = [j for j in range(len(case.attributes)) if j != at]
    records = case.records
    other = replace(
        records,
        taxonomies=tuple(records.taxonomies[j] for j in keep),
        leaves=records.leaves[:, keep],
        classes=records.leaves[:, at].astype("int64"),
        class_labels=records.taxonomies[at].labels[-1],
    )
    part = Case(case.name, case.schema, name, tuple(case.attributes[j] for j in keep), other)
    return agreement(part, grids=200, rates=(30_000_000, 120_000_000, 600_000_000))


def _claim(name: str, figure: Any, limit: Any, holds: bool) -> dict[str, Any]:
    return {"name": name, "figure": figure, "limit": limit, "holds": bool(holds)}
