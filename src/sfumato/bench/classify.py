"""Which private classifier errs least? `sfumato bench classify [--data FOLDER] [--quick] [--peers]`.

The experiments of Su et al. 2018, Figures 4 to 7 and 10 to 13: misclassification against ε on Adult and Bank (a synthetic
census without a data folder), two classes and more, against the number of columns and records, the pool of grids and the
budget split; and the time of a fit. Five stratified 80/20 splits, the same for all; `quick` has one split and two values of
ε. Beside the share of errors stand the area under the curve and balanced accuracy. `--part aside` measures our own models on
tables made for no constant, `--part auto` on the real ones (how far `AutoClassifier` is behind the best), `--part
leave-one-out` what remains of constants that were set on some tables, `--part speed` linear models beside scikit-learn's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.bench.classify_aside import aside, own, real, regrets
from sfumato.bench.classify_data import Table, census, real_table
from sfumato.bench.classify_methods import METHODS, misclassification
from sfumato.bench.classify_peers import PEERS, available
from sfumato.bench.classify_published import published_rivals
from sfumato.bench.classify_versus import PAIRS
from sfumato.bench.classify_versus import claims as versus
from sfumato.bench.grids_data import FILES
from sfumato.bench.learning_speed import speed
from sfumato.bench.leave_one_out import OF_CLASSIFIERS, left_out, left_out_table
from sfumato.bench.printing import all_measures, said

PARTS = ("adult", "bank", "census", "several", "sweeps", "time", "speed", "aside", "auto", "leave-one-out")
ALONE = ("aside", "auto", "leave-one-out")  # long, and asked for by name
EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0)
SLOW = ("PrivPfC, SVM", "PrivGene", "PrivLocal")  # two splits are enough to see where they stand
# What AutoClassifier must reach: the best peers measured before it was written, (ε, δ) ones included.
LIMITS = {"adult": (0.168, 0.166, 0.161, 0.158, 0.154), "bank": (0.104, 0.098, 0.093, 0.090, 0.089)}
# diffprivlib at its best of a few settings and of four models, on the same data.
DIFFPRIVLIB = {"adult": (0.233, 0.214, 0.212, 0.210, 0.200), "bank": (0.108, 0.109, 0.107, 0.105, 0.106)}
LARGE = 100_000  # records: one split is then enough, and the slow methods stay out
FIT_SECONDS = 30.0
GROWTH = 12.0
TIMED = ("PrivateDecisionTree", "PrivateNaiveBayes", "PrivPfC, tree", "PrivateAdditive", "FunctionalMechanism")


def run(
    *,
    quick: bool = False,
    data: Path | None = None,
    peers: bool = False,
    part: str | None = None,
    draws: int | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """All experiments, or one `part` of them; without a data folder on the synthetic census."""
    figures: dict[str, Any] = {}
    claims: list[dict[str, Any]] = []
    wanted = tuple(name for name in PARTS if name not in ALONE) if part is None else (part,)
    repeats = draws or (1 if quick else 5)
    epsilons = (0.1, 1.0) if quick else EPSILONS
    for table in _tables(data, wanted, quick):
        large = len(table.frame) > LARGE
        methods = {k: v for k, v in METHODS.items() if not (large and k in SLOW)}
        found = _compare(table, methods, epsilons, 1 if large else repeats, progress)
        found |= published_rivals(
            table,
            epsilons,
            repeats=1 if large else repeats,
            learners=("tree",) if quick or large else ("tree", "logistic", "svm"),
            without=("privbayes",) if quick or large else (),
            progress=progress,
        )
        if peers and not large:
            found |= _compare(table, {p: PEERS[p] for p in PEERS if available(p)}, epsilons, repeats, progress)
        figures.setdefault("misclassification", {})[table.name] = found
        claims += _claims(table.name, found, epsilons, quick)
        measured = {ours: theirs for ours, theirs in PAIRS.items() if theirs in found}
        claims += versus({table.name: found}, measured)
    if "several" in wanted:
        several = [census(6_000, classes=4)] if quick else [census(40_000, classes=4)]
        if data is not None and not quick:
            several += [real_table("adult", data, target="relationship"), real_table("bank", data, target="job")]
        few = {name: METHODS[name] for name in ("AutoClassifier", "PrivPfC, tree", "PrivateNaiveBayes", "Majority")}
        figures["several classes"] = {t.name: _compare(t, few, epsilons, min(repeats, 2), progress) for t in several}
    if "sweeps" in wanted:
        figures["sweeps"] = _sweeps(quick, progress)
    if "time" in wanted:
        figures["time"], timed = _time(quick, progress)
        claims += timed
    if "speed" in wanted:
        figures["speed"], fast = speed(quick=quick, progress=progress)
        claims += fast
    if "aside" in wanted:
        figures["kept aside"] = aside(quick=quick, draws=draws or (1 if quick else 3), progress=progress)
        claims += regrets(figures["kept aside"])
    if "auto" in wanted:
        chosen = [census(1_500)] if quick else [census(20_000)] if data is None else real(data)
        figures["our own"] = own(chosen, quick=quick, draws=draws or (1 if quick else 3), progress=progress)
        claims += regrets(figures["our own"], "our own")
    if "leave-one-out" in wanted:
        figures["leave one out"] = left_out(OF_CLASSIFIERS, data=data, quick=quick, draws=draws, progress=progress)
    return {"figures": figures, "claims": claims, "tables": tables(figures)}


def tables(figures: dict[str, Any]) -> str:
    """The figures as Markdown: mean ± standard error by method and ε, one table per measure."""
    found = [all_measures(name, by_method) for name, by_method in figures.get("misclassification", {}).items()]
    found += [all_measures(name, by_method) for name, by_method in figures.get("several classes", {}).items()]
    found += [all_measures(name, by_method) for name, by_method in figures.get("kept aside", {}).items()]
    found += [all_measures(name, by_method) for name, by_method in figures.get("our own", {}).items()]
    if "leave one out" in figures:
        found.append(left_out_table(figures["leave one out"]))
    return "\n\n".join(found)


def _tables(data: Path | None, wanted: tuple[str, ...], quick: bool) -> Iterator[Table]:
    """Real tables from the folder, the large one only if it is there; otherwise the synthetic census."""
    if data is None:
        if "census" in wanted:
            yield census(8_000 if quick else 40_000)
        return
    for name in ("adult", "bank", "census"):
        if name in wanted and (name != "census" or (not quick and (data / FILES[name]).exists())):
            yield real_table(name, data)


def _compare(
    table: Table, methods: dict[str, Any], epsilons: tuple[float, ...], repeats: int, progress: Callable[[str], None]
) -> dict[str, dict[str, dict[str, float]]]:
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, make in methods.items():
        found[name] = {}
        for epsilon in epsilons:
            result = misclassification(make, table, epsilon, repeats=min(repeats, 2) if name in SLOW else repeats)
            found[name][f"{epsilon:g}"] = result
            progress(f"{table.name}, ε {epsilon:g}, {name}: {said(result)}")
            if name.startswith("NoiseFree"):
                break  # it does not know ε
    return found


def _claims(name: str, found: dict[str, Any], epsilons: tuple[float, ...], quick: bool) -> list[dict[str, Any]]:
    claims = []
    for epsilon in epsilons:
        key = f"{epsilon:g}"
        auto = found["AutoClassifier"][key]["mean"]
        if name in LIMITS and not quick:
            for what, limits in (("the bar", LIMITS), ("diffprivlib's best", DIFFPRIVLIB)):
                limit = limits[name][EPSILONS.index(epsilon)]
                claims.append(_claim(f"{name}, ε {key}: AutoClassifier against {what}", auto, limit))
        floor = found["Majority"][key]["mean"]
        claims.append(_claim(f"{name}, ε {key}: AutoClassifier against the majority class", auto, floor))
    return claims


def _claim(name: str, figure: float, limit: float) -> dict[str, Any]:
    # The bars are known to three digits, so that is how they are compared.
    return {"name": name, "figure": round(figure, 4), "limit": round(limit, 4), "holds": bool(round(figure, 3) <= limit)}


def _sweeps(quick: bool, progress: Callable[[str], None]) -> dict[str, Any]:
    """Against columns without signal, records, the pool Θ, the budget split, and the number of terms."""
    rows = 6_000 if quick else 30_000
    auto, grid, additive = METHODS["AutoClassifier"], METHODS["PrivPfC, tree"], METHODS["PrivateAdditive"]
    repeats = 1 if quick else 3
    out: dict[str, Any] = {"columns": {}, "records": {}, "pool": {}, "split": {}, "terms": {}}
    for extra in (0, 5) if quick else (0, 5, 10, 20):
        table = census(rows, extra=extra)
        key = str(len(table.schema) - 1)
        out["columns"][key] = {
            name: misclassification(make, table, 0.2, repeats=repeats)
            for name, make in (("AutoClassifier", auto), ("PrivPfC, tree", grid))
        }
    for size in (2_000, 8_000) if quick else (2_000, 10_000, 50_000, 200_000):
        out["records"][str(size)] = misclassification(auto, census(size), 0.2, repeats=repeats)
    table = census(rows)
    for most in (100, 10_000) if quick else (100, 1_000, 10_000, 40_000):
        out["pool"][str(most)] = misclassification(grid, table, 0.2, repeats=repeats, most=most, grids=1)
    for split in ((0.03, 0.37, 0.6),) if quick else ((0.03, 0.1, 0.87), (0.03, 0.37, 0.6), (0.03, 0.6, 0.37)):
        key = "/".join(f"{100 * share:.0f}" for share in split)
        out["split"][key] = misclassification(grid, table, 0.2, repeats=repeats, split=split, grids=1)
    for rounds in (1, 4) if quick else (1, 2, 4, 8, 16):
        out["terms"][str(rounds)] = misclassification(additive, table, 1.0, repeats=repeats, rounds=rounds)
    progress("sweeps over columns, records, pool, split and terms done")
    return out


def _time(quick: bool, progress: Callable[[str], None]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Seconds per fit for growing tables of 15 columns."""
    import time

    from sfumato.privacy import Seeded

    sizes = (4_000, 20_000) if quick else (100_000, 1_000_000)
    figures: dict[str, Any] = {}
    claims = []
    tables = [census(size, extra=4) for size in sizes]
    for name in TIMED:
        seconds = []
        for table in tables:
            model = METHODS[name]({"epsilon": 1.0, "schema": table.schema, "target": table.target, "source": Seeded(1)})
            start = time.perf_counter()
            model.fit(table.features, table.labels)
            seconds.append(time.perf_counter() - start)
        figures[name] = {str(size): round(s, 3) for size, s in zip(sizes, seconds, strict=True)}
        progress(f"time of {name}: {figures[name]}")
        if not quick:
            claims.append(_claim(f"{name}: seconds for 1e6 rows of 15 columns", seconds[-1], FIT_SECONDS))
            claims.append(_claim(f"{name}: growth of the time from 1e5 to 1e6 rows", seconds[-1] / seconds[0], GROWTH))
    return figures, claims


def plots(folder: Path, figures: dict[str, Any]) -> None:
    """Misclassification against ε, and the shape functions of a private model of the census."""
    from sfumato.bench.classify_plots import draw_errors, draw_shapes

    for name, found in figures.get("misclassification", {}).items():
        draw_errors(name, found, folder / f"classify-{name.split(',')[0]}.png")
    draw_shapes(folder / "classify-shapes.png")


def summary(figures: dict[str, Any], table: str) -> str:
    """One line per method, for reports.

    >>> summary({"misclassification": {"census": {"Majority": {"1": {"mean": 0.25, "sd": 0.0, "seconds": 0.1}}}}}, "census")
    'Majority | .250'
    """
    lines = []
    for name, by_epsilon in figures["misclassification"][table].items():
        cells = " ".join(f"{np.round(v['mean'], 3):.3f}"[1:] for v in by_epsilon.values())
        lines.append(f"{name} | {cells}")
    return "\n".join(lines)
