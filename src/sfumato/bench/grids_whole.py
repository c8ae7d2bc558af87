"""What a synthetic table is like beyond its grid: the share of the rarer class, single columns, pairs of columns.

Three ways: the grid alone with negative counts set to 0 (as published; the other columns from their public domain), the
default (classes at their totals, the other columns with counts of their own), and PrivBayes, a network over all
columns. Distances are total variation between the table and the drawn one: 0 if alike, 1 if they share nothing. Beside them
the misclassification of a tree on the first two, on rows that were held out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.bench.classify_data import Table, census, real_table
from sfumato.bench.classify_methods import splits
from sfumato.bench.grids_data import FILES
from sfumato.bench.metrics import summarise
from sfumato.bench.printing import cell, counted
from sfumato.grids import PrivBayes, PrivPfC
from sfumato.privacy import Seeded
from sfumato.records.coding import cells_of

EPSILONS = (0.1, 1.0)
_PAIRS = 40
Codes = dict[str, NDArray[np.int64]]
WAYS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "as published": lambda a: PrivPfC(**a, cleaning="clip", others=0.0),
    "classification": lambda a: PrivPfC(**a),
    "PrivBayes": lambda a: PrivBayes(**a),
}


def whole_tables(
    *, quick: bool, data: Path | None, progress: Callable[[str], None]
) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    """By table, ε and way: means and standard errors over some splits."""
    out: dict[str, Any] = {}
    for table in _tables(quick, data):
        for epsilon in EPSILONS:
            for way in WAYS:
                found = [_measured(table, epsilon, way, number) for number in range(1 if quick else 3)]
                told = summarise(found)
                out.setdefault(table.name, {}).setdefault(f"{epsilon:g}", {})[way] = told
                said = ", ".join(f"{k} {cell(told, k, digits=4)}" for k in found[0])
                progress(f"whole table: {table.name}, ε {epsilon:g}, {way}: {said} ({counted(told['draws'])})")
    return out


def _tables(quick: bool, data: Path | None) -> Iterator[Table]:
    if data is None:
        yield census(4_000 if quick else 30_000)
        return
    for name in ("adult", "bank"):
        if (data / FILES[name]).exists():
            yield real_table(name, data)


def _measured(table: Table, epsilon: float, way: str, number: int) -> dict[str, float]:
    train, test = list(splits(table, number + 1))[number]
    frame, held = table.frame.iloc[train], table.frame.iloc[test]
    asked = {"epsilon": epsilon, "target": table.target, "rows": len(train)}
    publisher = WAYS[way](asked).fit(frame, schema=table.schema, source=Seeded(600 + number))
    truth = _codes(frame, table)
    drawn = _codes(publisher.sample(len(train), outside="public"), table)
    names = list(table.schema.names)
    pairs = list(combinations(names, 2))
    some = [pairs[i] for i in np.random.default_rng(0).permutation(len(pairs))[:_PAIRS]]
    one = [_apart(truth, drawn, (name,), table) for name in names]
    rare = int(np.bincount(truth[table.target]).argmin())
    off = float((drawn[table.target] == rare).mean() - (truth[table.target] == rare).mean())
    found = {
        "rarer class off by": off,
        "single columns": float(np.mean(one)),
        "worst column": float(np.max(one)),
        "pairs": float(np.mean([_apart(truth, drawn, pair, table) for pair in some])),
    }
    if isinstance(publisher, PrivPfC):
        found["misclassified"] = 1 - publisher.classifier().score(held, held[table.target])
    return found


def _codes(frame: Any, table: Table) -> Codes:
    return {name: np.maximum(cells_of(table.schema[name], frame[name]), 0) for name in table.schema.names}


def _apart(one: Codes, other: Codes, columns: tuple[str, ...], table: Table) -> float:
    shape = tuple(table.schema[name].size for name in columns)
    shares = []
    for codes in (one, other):
        counts = np.bincount(np.ravel_multi_index([codes[c] for c in columns], shape), minlength=int(np.prod(shape)))
        shares.append(counts / counts.sum())
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def whole_claims(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Single columns are nearer than as published, the rarer class is, and a tree on the grid errs no more than noise."""
    claims = []
    for name, by_epsilon in found.items():
        for epsilon, ways in by_epsilon.items():
            before, after = ways["as published"], ways["classification"]
            for figure, limit in (
                ("single columns", 0.5 * before["single columns"]),
                ("rarer class off by", max(0.01, 0.5 * abs(before["rarer class off by"]))),
                ("misclassified", before["misclassified"] + 0.004),
            ):
                claims.append(
                    {
                        "name": f"{name}, ε {epsilon}: {figure}, with counts of the other columns",
                        "figure": round(abs(after[figure]), 4),
                        "limit": round(limit, 4),
                        "holds": bool(abs(after[figure]) <= limit),
                    }
                )
    return claims
