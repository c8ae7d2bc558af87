"""Quantiles: the error beside OpenDP's and diffprivlib's at the same ε, coverage of the intervals, and the time over ten
million rows.

Errors are mean absolute errors in the column's own unit against the quantile of the table (the smallest value with enough
records at or below it). Ours pays for its interval out of the same ε. Every library gets the same public bounds and, where
it takes a list of candidates, every whole number between them. Several quantiles at once: OpenDP and diffprivlib divide ε
among them. Seeded noise: nothing here is a private release.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.bench import quantile_peer
from sfumato.bench.peer_environments import imports, interpreter
from sfumato.errors import InputError
from sfumato.privacy import Exact, Meter, Nano, Seeded, Terms
from sfumato.statistics.quantile_plan import plan_choice
from sfumato.statistics.ranks import as_share

Progress = Callable[[str], None]
Column = tuple[NDArray[np.int64], int, int]  # values and public bounds
EPSILONS = (0.01, 0.1, 1.0)
SINGLE = ((0.1,), (0.25,), (0.5,), (0.75,), (0.9,))
DECILES = tuple(round(0.1 * i, 1) for i in range(1, 10))
OURS, OPENDP, DIFFPRIVLIB = "sfumato", "OpenDP", "diffprivlib"
MOST = 1 << 20
NO_WORSE = 1.1  # of the mean over five quantiles; a mean of a few dozen draws is itself off by so much
TIME = 1.3
REPEATED = 5
_OWN_NOISE = 5_000  # candidates up to which OpenDP draws its own noise


def made_columns(rows: int) -> dict[str, Column]:
    """Columns with ties, with a long tail and with a value that most people share."""
    draw = np.random.default_rng(1)
    return {
        "ages (made)": (np.clip(draw.gamma(6, 7, rows), 0, 99).astype(np.int64), 0, 99),
        "hours (made)": (draw.choice([20, 38, 40, 45, 60], rows, p=[0.12, 0.13, 0.47, 0.16, 0.12]), 1, 99),
        "incomes (made)": (np.clip(np.exp(draw.normal(10, 0.8, rows)), 0, 200_000).astype(np.int64), 0, 200_000),
        "gains (made)": (np.where(draw.random(rows) < 0.92, 0, np.exp(draw.normal(8, 1, rows))).astype(np.int64), 0, 99_999),
    }


def adult_columns(folder: Path) -> dict[str, Column]:
    """The numeric columns of Adult, with bounds that a custodian would state."""
    import pyarrow.parquet as pq

    bounds = {"age": (17, 90), "hours_per_week": (1, 99), "capital_gain": (0, 99_999), "fnlwgt": (0, 1_500_000)}
    table = pq.read_table(folder / "adult.parquet", columns=list(bounds))
    return {name: (table[name].to_numpy().astype(np.int64), *ends) for name, ends in bounds.items()}


def run(
    *, quick: bool = False, data: Path | None = None, peers: bool = False, progress: Progress = lambda _: None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """All figures and claims; those about peers need `peers`, those about Adult its table in `data`."""
    columns = made_columns(5_000 if quick else 45_000)
    if data is not None:
        columns |= adult_columns(data)
    repeats = 20 if quick else 60
    questions = [(name, e, q) for name in columns for e in EPSILONS for q in (*SINGLE, DECILES)]
    libraries: dict[str, Any] = {OURS: _ours} | (_peers() if peers else {})
    drawn = {name: _answers(name, ask, columns, questions, repeats, progress) for name, ask in libraries.items()}
    errors = {name: {str(e): _errors(drawn, name, columns[name], e) for e in EPSILONS} for name in columns}
    figures: dict[str, Any] = {"mean_absolute_error": errors}
    figures["coverage"] = coverage(made_columns(5_000), 10 if quick else 40, progress)
    claims = [
        _claim("coverage of the 95% intervals, least over made columns", min(figures["coverage"].values()), 0.94, False)
    ]
    claims += _against_peers(errors, [p for p in (OPENDP, DIFFPRIVLIB) if p in libraries])
    if not quick:
        figures["seconds"] = seconds(10_000_000, progress)
        ratio = figures["seconds"]["ratio"]
        claims.append(_claim("ten quantiles of 1e7 rows against the bare aggregate query", ratio, TIME))
    return figures, claims


def _claim(name: str, figure: float, limit: float, at_most: bool = True) -> dict[str, Any]:
    return {"name": name, "figure": figure, "limit": limit, "holds": bool(figure <= limit if at_most else figure >= limit)}


def _against_peers(errors: dict[str, Any], names: list[str]) -> list[dict[str, Any]]:
    claims = []
    for peer in names:
        for kind in ("single", "deciles"):
            cells = [(c, e, cell[kind]) for c, by in errors.items() for e, cell in by.items()]
            ratios = [max(found[OURS], 1e-9) / max(found[peer], 1e-9) for _, _, found in cells]
            what = "one quantile" if kind == "single" else "nine deciles"
            title = f"{what}: error against {peer}'s"
            claims.append(_claim(f"{title}, geometric mean of all cells", float(np.exp(np.mean(np.log(ratios)))), 1.0))
            claims.append(_claim(f"{title}, largest of any column and ε", max(ratios), NO_WORSE))
    return claims


def _answers(
    library: str, ask: Any, columns: dict[str, Column], questions: list[Any], repeats: int, progress: Progress
) -> dict[Any, Any]:
    """What a library draws for every question; diffprivlib is asked all of them at once, by a process of its own."""
    if library == DIFFPRIVLIB:
        progress(library)
        return dict(zip(questions, ask(columns, questions, repeats), strict=True))
    found = {}
    for name, e, q in questions:
        progress(f"{library}: {name} at ε {e:g}")
        found[name, e, q] = ask(columns[name], q, e, _runs(columns[name], repeats))
    return found


def _runs(column: Column, repeats: int) -> int:
    return repeats if column[2] - column[1] < 10_000 else max(10, repeats // 3)


def _errors(drawn: dict[str, Any], name: str, column: Column, epsilon: float) -> dict[str, Any]:
    """The mean absolute error over single quantiles, and over the deciles at once, by library."""

    def error(library: str, q: tuple[float, ...]) -> float:
        return _error(drawn[library][name, epsilon, q], column, q)

    return {
        "single": {library: float(np.mean([error(library, q) for q in SINGLE])) for library in drawn},
        "deciles": {library: error(library, DECILES) for library in drawn},
    }


def _error(drawn: Any, column: Column, shares: tuple[float, ...]) -> float:
    truth = np.quantile(column[0], shares, method="inverted_cdf")
    return float(np.abs(np.asarray(drawn) - truth).mean())


# --- libraries -------------------------------------------------------------------------------------------------------


def _counts(column: Column) -> tuple[NDArray[np.int64], int]:
    values, low, high = column
    step = -(-(high - low) // (MOST - 1))
    return np.bincount((np.clip(values, low, high) - low) // step, minlength=(high - low) // step + 1), step


def _ours(column: Column, shares: tuple[float, ...], epsilon: float, repeats: int) -> list[Any]:
    counts, step = _counts(column)
    interval = 0.05 if len(shares) <= 2 else 0.2
    targets = tuple(as_share(q) for q in shares)
    plan = plan_choice(Terms(), targets, counts.size, nano=Nano(int(epsilon * 1e9)), interval=interval)
    exact = Exact(counts)
    runs = (plan.run(exact, Meter(limit=plan.charge, source=Seeded(number))) for number in range(repeats))
    return [column[1] + step * found.points for found in runs]


def _peers() -> dict[str, Any]:
    from sfumato.bench.classify_peers import DIFFPRIVLIB as LIBRARY

    found: dict[str, Any] = {}
    if imports(Path(sys.executable), "opendp"):
        found[OPENDP] = _opendp
    try:
        interpreter(LIBRARY)
        found[DIFFPRIVLIB] = _diffprivlib
    except InputError as why:
        warnings.warn(str(why), stacklevel=2)
    return found


def _opendp(column: Column, shares: tuple[float, ...], epsilon: float, repeats: int) -> list[Any]:
    """Its quantile scores, which depend on nothing random, once; its noisy maximum for each draw."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    values, low, high = column
    step = -(-(high - low) // (MOST - 1))
    candidates = list(range(low, high + 1, step))
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    out = np.zeros((repeats, len(shares)))
    for i, q in enumerate(shares):
        scored = space >> dp.t.then_quantile_score_candidates(candidates, alpha=q)
        scores = scored(np.clip(values, low, high).tolist())

        def noisy(scale: float, scored: Any = scored) -> Any:
            return dp.m.make_noisy_max(scored.output_domain, scored.output_metric, dp.max_divergence(), scale, negate=True)

        scale = noisy(1.0).map(scored.map(1)) / (epsilon / len(shares))
        if len(candidates) <= _OWN_NOISE:
            chosen = noisy(scale)
            out[:, i] = [candidates[chosen(scores)] for _ in range(repeats)]
        else:  # exponential noise of this scale is what it adds; its exact arithmetic takes seconds for so many
            draw, misses = np.random.default_rng(i), -np.asarray(scores, dtype=np.float64) / scale
            out[:, i] = [candidates[int(np.argmax(misses + draw.exponential(size=misses.size)))] for _ in range(repeats)]
    return list(out)


def _diffprivlib(columns: dict[str, Column], questions: list[Any], repeats: int) -> Any:
    from sfumato.bench.classify_peers import DIFFPRIVLIB as LIBRARY

    number = {name: f"c{i}" for i, name in enumerate(columns)}
    jobs = [
        {"column": number[name], "low": columns[name][1], "high": columns[name][2], "quantiles": list(q), "epsilon": e}
        | {"repeats": _runs(columns[name], repeats)}
        for name, e, q in questions
    ]
    with tempfile.TemporaryDirectory() as temporary:
        here = Path(temporary)
        stored: dict[str, Any] = {number[name]: column[0] for name, column in columns.items()}
        np.savez(here / "data.npz", **stored)
        (here / "job.json").write_text(json.dumps(jobs), encoding="utf-8")
        files = (here / name for name in ("data.npz", "job.json", "out.json"))
        command = [interpreter(LIBRARY), Path(quantile_peer.__file__), *files]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise InputError(f"diffprivlib could not be run: {done.stderr.strip()[-300:]}")
        return json.loads((here / "out.json").read_text(encoding="utf-8"))


# --- intervals and time ----------------------------------------------------------------------------------------------


def coverage(columns: dict[str, Column], repeats: int, progress: Progress) -> dict[str, float]:
    """How often intervals hold the true quantile, by column."""
    found = {}
    for name, column in columns.items():
        progress(f"coverage of {name}")
        held = []
        counts, step = _counts(column)
        for shares in ((0.5,), (0.05, 0.25, 0.5, 0.75, 0.95)):
            truth = np.quantile(column[0], shares, method="inverted_cdf")
            targets = tuple(as_share(q) for q in shares)
            plan = plan_choice(Terms(), targets, counts.size, nano=Nano(5 * 10**8), interval=0.2)
            for number in range(repeats):
                ends = plan.run(Exact(counts), Meter(source=Seeded(number))).ends
                assert ends is not None
                low, high = column[1] + step * ends.T
                held += ((low <= truth) & (truth <= high)).tolist()
        found[name] = float(np.mean(held))
    return found


def seconds(rows: int, progress: Progress) -> dict[str, float]:
    """Ten quantiles of a Parquet file through a table, and the bare query that a hand would write."""
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq

    from sfumato.releases import open as opened
    from sfumato.tables import Numeric, Schema

    progress(f"ten quantiles of {rows:,} rows")
    draw = np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "big.parquet")
        incomes = np.clip(np.exp(draw.normal(10, 0.8, rows)), 0, 200_000).astype(np.int32)
        pq.write_table(pa.table({"income": incomes}), path)
        schema = Schema({"income": Numeric(0, 200_000, bins=20, integer=True)})
        bare, ours = [], []
        shares = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
        query = f"SELECT least(greatest(income, 0), 200000) AS v, count(*) FROM '{path}' GROUP BY v"
        table = opened(path, schema=schema, epsilon=1000, rows=rows, noise=Seeded(1), ledger=":memory:")
        for number in range(REPEATED + 1):
            start = time.perf_counter()
            duckdb.sql(query).to_arrow_table()
            middle = time.perf_counter()
            table.quantile("income", shares, epsilon=1, parameters={"interval": 0.2 + number / 1000})
            if number:  # the first one opens files and imports modules
                bare.append(middle - start)
                ours.append(time.perf_counter() - middle)
    least = min(bare), min(ours)
    return {"bare": least[0], "release": least[1], "ratio": least[1] / least[0]}


def plots(folder: Path, figures: dict[str, Any]) -> list[Path]:
    """The error of each library against ε, for every column."""
    from sfumato.palette import CYCLE, axes

    ax = axes(size=(8.0, 4.2))
    names = list(figures["mean_absolute_error"])
    for color, library in zip(CYCLE, (OURS, OPENDP, DIFFPRIVLIB), strict=False):
        by = figures["mean_absolute_error"]
        points = [
            (i + 0.25 * (j - 1), by[name][str(e)]["single"].get(library))
            for i, name in enumerate(names)
            for j, e in enumerate(EPSILONS)
        ]
        shown = [(x, max(y, 1e-2)) for x, y in points if y is not None]
        if shown:
            ax.plot(*zip(*shown, strict=True), "o", color=color, label=library, alpha=0.8)
    ax.set_yscale("log")
    ax.set_xticks(range(len(names)), names, rotation=20, ha="right")
    ax.set_ylabel("mean absolute error (in its unit)")
    ax.set_title("One quantile at ε 0.01, 0.1 and 1, from left to right; 0.01 stands for no error", fontsize=10)
    ax.legend(frameon=False)
    path = folder / "quantiles-peers.png"
    figure = ax.get_figure()
    assert figure is not None
    figure.savefig(path, dpi=120)  # type: ignore[union-attr]
    return [path]
