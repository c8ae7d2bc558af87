"""Estimator against estimator: ours at its defaults, another library's at its best setting, on the same splits.

``python -m sfumato.bench.classify_versus --data FOLDER`` measures Adult and Bank (without a folder the synthetic census) and
prints a table in Markdown: misclassification, mean ± standard deviation over five stratified 80/20 splits. The peers run in
environments of their own (`peer_environments`); "best" is the best mean per ε among the settings of `classify_peers`, which
a private user could not choose that way.
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
) -> dict[str, Any]:
    """Figures per table, estimator and ε, and one claim for each that we are at least as good."""
    repeats, epsilons = (1, (0.1, 1.0)) if quick else (5, EPSILONS)
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
        progress(
            f"{table.name}, ε {epsilon:g}, {name}: {result['mean']:.4f} ± {result['sd']:.4f} {result.get('setting', '')}"
        )
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
    """The table of a report.

    >>> both = {"a": {"1": {"mean": 0.1234, "sd": 0.001}}, "b": {"1": {"mean": 0.2, "sd": 0.0}}}
    >>> print(markdown({"census": both}, {"a": "b"}))
    | census, ε = | 1 |
    |---|---|
    | **a** | .123 ± .001 |
    | b, best of its settings | .200 ± .000 |
    """
    lines = []
    for table, methods in figures.items():
        measured = [(ours, theirs) for ours, theirs in pairs.items() if ours in methods]
        epsilons = list(methods[measured[0][0]]) if measured else []
        lines += [f"| {table}, ε = | " + " | ".join(epsilons) + " |", "|---" * (len(epsilons) + 1) + "|"]
        for ours, theirs in measured:
            lines.append(f"| **{ours}** | " + " | ".join(_cell(methods[ours][e]) for e in epsilons) + " |")
            lines.append(
                f"| {theirs}, best of its settings | " + " | ".join(_cell(methods[theirs][e]) for e in epsilons) + " |"
            )
        lines.append("")
    return "\n".join(lines).rstrip()


def _cell(result: Mapping[str, Any]) -> str:
    return f"{result['mean']:.3f}"[1:] + " ± " + f"{result['sd']:.3f}"[1:]


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Our classifiers against other libraries', estimator by estimator.")
    parser.add_argument("--data", type=Path, help="folder with Adult and Bank")
    parser.add_argument("--quick", action="store_true", help="one split, two values of ε")
    parser.add_argument("--json", action="store_true", help="figures and claims instead of a table")
    given = parser.parse_args(arguments)
    found = run(quick=given.quick, data=given.data, progress=lambda s: print(s, file=sys.stderr, flush=True))
    print(json.dumps(found, indent=1) if given.json else markdown(found["figures"]))


if __name__ == "__main__":
    main()
