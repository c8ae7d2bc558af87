"""Estimator against estimator: ours at its defaults, another library's at its best setting, on the same splits.

``python -m sfumato.bench.classify_versus --data FOLDER`` measures Adult and Bank (without a folder the synthetic census) and
prints a table in Markdown: misclassification, mean ± standard error over five stratified 80/20 splits, then the same for the
area under the curve. The peers run in environments of their own (`peer_environments`), each at the best of the settings of
`classify_peers` per ε, chosen on other held-out rows than those that measure it; a private user could not choose that way.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sfumato.bench.classify_data import Table, census, real_table
from sfumato.bench.classify_methods import METHODS, misclassification
from sfumato.bench.classify_peers import PEERS, available
from sfumato.bench.printing import all_measures, said

EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0)
PAIRS = {
    "PrivateLogisticRegression": "diffprivlib LR",
    "PrivateNaiveBayes": "diffprivlib NB",
    "PrivateDecisionTree": "diffprivlib tree",
    "PrivateForest": "diffprivlib forest",
    "AutoClassifier": "DP-EBM",
}
Figures = dict[str, dict[str, dict[str, dict[str, Any]]]]


def run(
    *,
    quick: bool = False,
    data: Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
    pairs: Mapping[str, str] = PAIRS,
    draws: int | None = None,
) -> dict[str, Any]:
    """Figures per table, estimator and ε, and one claim for each that we are at least as good."""
    repeats, epsilons = (1, (0.1, 1.0)) if quick else (5, EPSILONS)
    repeats = draws or repeats
    if data is None:
        tables = [census(8_000 if quick else 40_000)]
    else:
        tables = [real_table(name, data) for name in ("adult", "bank")]
    figures: Figures = {table.name: {} for table in tables}
    for ours, theirs in pairs.items():
        if not available(theirs):
            continue
        for table in tables:
            for name, make in ((ours, METHODS[ours]), (theirs, PEERS[theirs])):
                found = _measure(name, make, table, epsilons, repeats, progress)
                figures[table.name][name] = found
    return {"figures": figures, "claims": claims(figures, pairs)}


def _measure(
    name: str, make: Any, table: Table, epsilons: tuple[float, ...], repeats: int, progress: Callable[[str], None]
) -> dict[str, dict[str, Any]]:
    found = {}
    for epsilon in epsilons:
        result = misclassification(make, table, epsilon, repeats=repeats)
        found[f"{epsilon:g}"] = result
        progress(f"{table.name}, ε {epsilon:g}, {name}: {said(result)} {result.get('setting', '')}")
    return found


def claims(figures: Figures, pairs: Mapping[str, str] = PAIRS) -> list[dict[str, Any]]:
    """One claim per table, pair and ε: our mean is at most theirs.

    >>> both = {"a": {"1": {"mean": 0.2, "sd": 0.0}}, "b": {"1": {"mean": 0.1, "sd": 0.0}}}
    >>> claims({"census": both}, {"a": "b"})
    [{'name': 'census, ε 1: a against b', 'figure': 0.2, 'limit': 0.1, 'holds': False}]
    """
    found = []
    for table, methods in figures.items():
        for ours, theirs in pairs.items():
            for epsilon, result in methods.get(ours, {}).items():
                mean, limit = round(result["mean"], 4), round(methods[theirs][epsilon]["mean"], 4)
                name = f"{table}, ε {epsilon}: {ours} against {theirs}"
                found.append({"name": name, "figure": mean, "limit": limit, "holds": mean <= limit})
    return found


def markdown(figures: Figures, pairs: Mapping[str, str] = PAIRS) -> str:
    """The tables of a report, ours above theirs.

    >>> both = {"a": {"1": {"mean": 0.1234, "se": 0.001, "draws": 5}}, "b": {"1": {"mean": 0.2, "se": 0.0, "draws": 5}}}
    >>> print(markdown({"census": both}, {"a": "b"}))
    | census, misclassified, ε = | 1 | draws |
    |---|---|---|
    | a | .123 ± .001 | 5 |
    | b | .200 ± .000 | 5 |
    """
    found = []
    for table, methods in figures.items():
        ordered = {name: methods[name] for pair in pairs.items() for name in pair if name in methods}
        known = [m for m in ("", "auc", "balanced") if not m or any(m in next(iter(v.values())) for v in ordered.values())]
        found.append(all_measures(table, ordered, known))
    return "\n\n".join(found)


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Our classifiers against other libraries', estimator by estimator.")
    parser.add_argument("--data", type=Path, help="folder with Adult and Bank")
    parser.add_argument("--quick", action="store_true", help="one split, two values of ε")
    parser.add_argument("--draws", type=int, help="splits behind every figure, 5 unless given")
    parser.add_argument("--only", choices=list(PAIRS), help="one of our estimators with its peer")
    parser.add_argument("--json", action="store_true", help="figures and claims instead of a table")
    given = parser.parse_args(arguments)
    pairs = PAIRS if given.only is None else {given.only: PAIRS[given.only]}
    found = run(
        quick=given.quick,
        data=given.data,
        pairs=pairs,
        draws=given.draws,
        progress=lambda s: print(s, file=sys.stderr, flush=True),
    )
    print(json.dumps(found, indent=1) if given.json else markdown(found["figures"], pairs))


if __name__ == "__main__":
    main()
