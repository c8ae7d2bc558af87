"""The figures of the grids bench as tables: learner by learner, the best one chosen on other rows, and general tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.bench.grids_learners import LEARNERS
from sfumato.bench.printing import FOOTNOTE, MARK, cell, markdown, tuned

COLUMNS = ("3-way", "2-way", "1-way", "LR error", "LR auc", "LR balanced", "seconds")


def learner_tables(name: str, found: Mapping[str, Any]) -> str:
    """For one data set: misclassification and area under the curve by method and ε, one table per learner and for the best.

    >>> by_epsilon = {"1.0": {"tree": 0.2, "tree_se": 0.01, "tree_auc": 0.8, "tree_auc_se": 0.0, "splits": 2, "draws": 4,
    ...     "best": 0.2, "standard_error": 0.01, "best_auc": 0.8, "best_learner": "tree"}}
    >>> print(learner_tables("adult", {"auto": by_epsilon, "seconds": 3}))
    | adult, tree, misclassified, ε = | 1.0 | draws |
    |---|---|---|
    | auto † | .200 ± .010 | 4 |
    <BLANKLINE>
    † Some of this method's rules were set while looking at this data set: no independent test.
    <BLANKLINE>
    | adult, tree, area under the curve, ε = | 1.0 | draws |
    |---|---|---|
    | auto † | .800 ± .000 | 4 |
    <BLANKLINE>
    † Some of this method's rules were set while looking at this data set: no independent test.
    <BLANKLINE>
    | adult, best learner (chosen on other rows), misclassified, ε = | 1.0 | draws |
    |---|---|---|
    | auto † | .200 ± .010 | 4 |
    <BLANKLINE>
    † Some of this method's rules were set while looking at this data set: no independent test.
    """
    methods = {k: v for k, v in found.items() if isinstance(v, Mapping) and v and _cells(v)}
    out = []
    for learner in LEARNERS:
        figures = {k: {e: _of(f, learner) for e, f in v.items()} for k, v in methods.items() if _has(v, learner)}
        if figures:
            out += [markdown(f"{name}, {learner}", figures, measure) for measure in ("", "auc")]
    best = {
        k: {e: {"mean": f["best"], "se": f["standard_error"], "draws": f["draws"]} for e, f in v.items()}
        for k, v in methods.items()
    }
    return "\n\n".join([*out, markdown(f"{name}, best learner (chosen on other rows)", best)] if best else out)


def _cells(by_epsilon: Mapping[str, Any]) -> bool:
    return all(isinstance(figure, Mapping) and "best_learner" in figure for figure in by_epsilon.values())


def _has(by_epsilon: Mapping[str, Any], learner: str) -> bool:
    return all(learner in figure for figure in by_epsilon.values())


def _of(figure: Mapping[str, Any], learner: str) -> dict[str, Any]:
    error = figure[f"{learner}_se"] if figure["splits"] > 1 else None
    told = {"mean": figure[learner], "se": error, "draws": figure["draws"]}
    return told | {"auc": figure[f"{learner}_auc"], "auc_se": figure[f"{learner}_auc_se"]}


def general_table(found: Mapping[str, Any]) -> str:
    """Distances to the real table and what a logistic regression learns, by data set, ε and mechanism.

    >>> print(general_table({"adult": {"1": {"real rows": {"3-way": 0.05, "3-way_se": 0.001, "draws": 2}}}}))
    | adult | ε | 3-way | 2-way | 1-way | LR error | LR auc | LR balanced | seconds | draws |
    |---|---|---|---|---|---|---|---|---|---|
    | real rows | 1 | .0500 ± .0010 |  |  |  |  |  |  | 2 |
    """
    out = []
    for name, by_epsilon in found.items():
        lines = [f"| {name} | ε | " + " | ".join(COLUMNS) + " | draws |", "|---" * (len(COLUMNS) + 3) + "|"]
        marked = False
        for epsilon, by_method in by_epsilon.items():
            for method, figure in by_method.items():
                mark = f" {MARK}" if tuned(method, name) else ""
                marked = marked or bool(mark)
                cells = [_general(figure, column) for column in COLUMNS]
                lines.append(f"| {method}{mark} | {epsilon} | " + " | ".join(cells) + f" | {figure['draws']} |")
        out.append("\n".join(lines + (["", FOOTNOTE] if marked else [])))
    return "\n\n".join(out)


def _general(figure: Mapping[str, Any], column: str) -> str:
    if column not in figure:
        return ""
    if column == "seconds":
        return f"{figure[column]:.0f}"
    return cell(figure, column, digits=4 if column.endswith("-way") else 3)
