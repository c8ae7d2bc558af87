"""What remains of a constant that was set on some data sets? Set it again without one of them, and measure on that one.

For every constant a few values are tried on every set, with the same seeds. The best value on all sets but one is then
compared, on the one left out, with the value in use. A difference near 0 says that the value in use owes nothing to that
set; a positive one is what it gained by having seen it. The lists at the end name module and attribute, so a constant
that moves is one line here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.bench.classify_data import Table, census, real_table, some_rows
from sfumato.bench.classify_methods import METHODS, measured, splits
from sfumato.bench.grids_data import FILES
from sfumato.bench.histograms_accuracy import estimate, queries
from sfumato.bench.histograms_data import Case, made, real
from sfumato.bench.metrics import mean_and_error
from sfumato.bench.printing import short
from sfumato.histograms.estimation.metrics import kld, range_mse
from sfumato.privacy import Seeded

MOST_ROWS = 40_000
Measure = Callable[[Any, int], float]
Sets = Callable[[Path | None, bool], Mapping[str, Any]]


@dataclass(frozen=True)
class Constant:
    """A constant that was set by looking at data sets: where it is, what else it could be, and what it is good for.

    `measure(data_set, draw)` is smaller where the constant is better, and draws the same noise whatever the constant is.
    Modules that import the constant by name are in `also`.
    """

    name: str
    module: str
    attribute: str
    values: tuple[Any, ...]
    measure: Measure
    sets: Sets
    unit: str
    also: tuple[str, ...] = ()

    @property
    def in_use(self) -> Any:
        return getattr(import_module(self.module), self.attribute)

    @contextmanager
    def set_to(self, value: Any) -> Iterator[None]:
        """Another value for a while."""
        before = self.in_use
        modules = [m for m in map(import_module, (self.module, *self.also)) if hasattr(m, self.attribute)]
        for module in modules:
            setattr(module, self.attribute, value)
        try:
            yield
        finally:
            for module in modules:
                setattr(module, self.attribute, before)


def left_out(
    constants: Sequence[Constant],
    *,
    data: Path | None,
    quick: bool,
    progress: Callable[[str], None],
    draws: int | None = None,
) -> dict[str, Any]:
    """By constant and by the set left out: the value in use, the value set without it, and the difference on it."""
    found: dict[str, Any] = {}
    for constant in constants:
        sets = constant.sets(data, quick)
        values = tuple(dict.fromkeys((constant.in_use, *constant.values)))
        figures: dict[Any, dict[str, list[float]]] = {}
        for value in values:
            with constant.set_to(value):
                figures[value] = {
                    name: [constant.measure(data_set, draw) for draw in range(draws or (1 if quick else 3))]
                    for name, data_set in sets.items()
                }
            progress(f"{constant.name} = {value}: " + ", ".join(f"{k} {np.mean(v):.4f}" for k, v in figures[value].items()))
        found[constant.name] = {name: _without(name, figures, constant) for name in sets}
    return found


def _without(left: str, figures: Mapping[Any, Mapping[str, Sequence[float]]], constant: Constant) -> dict[str, Any]:
    """The value that is best on the other sets (the one in use if none is better), and what it does on this one."""
    chosen = min(figures, key=lambda v: float(np.mean([np.mean(e) for name, e in figures[v].items() if name != left])))
    used, other = figures[constant.in_use][left], figures[chosen][left]
    difference, error = mean_and_error(np.subtract(other, used))
    return {
        "in use": constant.in_use,
        "set without it": chosen,
        "figure": float(np.mean(used)),
        "difference": difference,
        "difference_se": None if np.isnan(error) else error,
        "draws": len(used),
        "unit": constant.unit,
    }


def left_out_table(found: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """The figures as Markdown.

    >>> one = {"in use": 3, "set without it": 5, "figure": 0.2, "difference": 0.01, "difference_se": None, "draws": 1}
    >>> print(left_out_table({"rounds": {"adult": {**one, "unit": "share misclassified"}}}))
    | constant | left out | in use | set without it | share misclassified with it | difference | draws |
    |---|---|---|---|---|---|---|
    | rounds | adult | 3 | 5 | .200 | .010 | 1 |
    """
    lines: list[str] = []
    for unit in dict.fromkeys(figure["unit"] for by_set in found.values() for figure in by_set.values()):
        lines += [
            "",
            f"| constant | left out | in use | set without it | {unit} with it | difference | draws |",
            "|---" * 7 + "|",
        ]
        for name, by_set in found.items():
            for left, figure in by_set.items():
                if figure["unit"] == unit:
                    error = "" if figure["difference_se"] is None else f" ± {short(figure['difference_se'])}"
                    cells = [name, left, figure["in use"], figure["set without it"], short(figure["figure"])]
                    cells += [short(figure["difference"]) + error, figure["draws"]]
                    lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines[1:])


def tables(data: Path | None, quick: bool) -> dict[str, Table]:
    """The tables on which the classifiers' rules were set, and the one they were not; made ones without a folder."""
    if data is None:
        rows = 2_000 if quick else 20_000
        found = {f"census {seed}": census(rows, extra=4 * seed, seed=seed) for seed in range(3)}
    else:
        found = {name: real_table(name, data) for name in ("adult", "bank", "census") if (data / FILES[name]).exists()}
    return {name: some_rows(table, MOST_ROWS) for name, table in found.items()}


def misclassified_by(method: str, epsilons: Sequence[float] = (0.05, 0.2, 1.0)) -> Measure:
    """The share misclassified by a method of the bench, averaged over some ε."""

    def measure(table: Table, draw: int) -> float:
        train, test = list(splits(table, draw + 1))[draw]
        X, y = table.features, table.labels
        errors = []
        for epsilon in epsilons:
            given = {"epsilon": epsilon, "schema": table.schema, "target": table.target, "source": Seeded(8000 + draw)}
            model = METHODS[method](given).fit(X.iloc[train], y[train])
            errors.append(measured(model, X.iloc[test], y[test])["error"])
        return float(np.mean(errors))

    return measure


def histograms(data: Path | None, quick: bool) -> dict[str, Case]:
    """The ordered histograms on which the mechanisms' constants were set."""
    cases = made()[:2] if quick or data is None else [*made(), *real(data)]
    return {case.name: case for case in cases if case.ordered}


def log_error_of(mechanism: str, purpose: str, epsilons: Sequence[float] = (0.01, 0.1, 1.0)) -> Measure:
    """The logarithm of a mechanism's error, averaged over some ε: a difference of .01 is one percent."""

    def measure(case: Case, draw: int) -> float:
        low, high = queries(case.counts.size)
        found = []
        for epsilon in epsilons:
            made = estimate(mechanism, case, epsilon, 500 + draw)
            error = kld(case.counts, made) if purpose == "shape" else range_mse(case.counts, made, low, high)
            found.append(float(np.log(max(error, 1e-12))))
        return float(np.mean(found))

    return measure


SHARE, LOGARITHM = "share misclassified", "log error"
OF_CLASSIFIERS: tuple[Constant, ...] = (
    Constant(
        "N ε from which a second grid pays",
        "sfumato.grids.publishers.automatic",
        "SECOND",
        (2_000, 4_000, 8_000),
        misclassified_by("PrivPfC, tree"),
        tables,
        SHARE,
        ("sfumato.grids.publishers.stacking",),
    ),
    Constant(
        "N ε of which each doubling pays for a round",
        "sfumato.classifiers.counting.additive_settings",
        "FIRST_ROUND",
        (250, 500, 1_000),
        misclassified_by("AutoClassifier"),
        tables,
        SHARE,
    ),
    Constant(
        "levels of a tree split for correct records",
        "sfumato.classifiers.counting.tree",
        "LAST",
        (1, 2, 3),
        misclassified_by("PrivateDecisionTree"),
        tables,
        SHARE,
    ),
    Constant(
        "N ε below which linear models see lines",
        "sfumato.classifiers.linear.features",
        "FEW",
        (600, 2_500, 10_000),
        misclassified_by("PrivateLogisticRegression"),
        tables,
        SHARE,
    ),
)
OF_HISTOGRAMS: tuple[Constant, ...] = (
    Constant(
        "error that bins may have in common",
        "sfumato.histograms.mechanisms.shape",
        "UNSURE",
        (0.25, 0.5, 1.0),
        log_error_of("auto", "shape"),
        histograms,
        LOGARITHM,
    ),
    Constant(
        "mean noises that a cut must win",
        "sfumato.histograms.mechanisms.dawa",
        "PATIENCE",
        (1.0, 2.0, 4.0),
        log_error_of("dawa_shape", "shape"),
        histograms,
        LOGARITHM,
    ),
)
