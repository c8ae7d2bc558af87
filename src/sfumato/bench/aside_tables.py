"""Tables kept aside: made by formulas, of kinds on which no constant of this library was set.

Each has one property that real tables have and that a method may stumble over: columns without signal, a class that only
combinations of columns tell, a class of 2%, five classes, smooth numbers, many columns, few rows. The seeds are fixed, so
everybody measures the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.bench.classify_data import Table
from sfumato.tables.domains import Categorical, Domain, Numeric
from sfumato.tables.schema import Schema

Floats = NDArray[np.float64]
Columns = dict[str, Any]
SMALL = 2_000
"""Rows of the small table, however many the others have."""


def aside_tables(rows: int = 20_000) -> list[Table]:
    """All of them, in this order; the small one has 2,000 rows or fewer.

    >>> [table.name for table in aside_tables(500)]
    ['useless columns', 'interactions only', 'rare class', 'five classes', 'smooth numbers', 'wide', 'small']
    """
    return [make(rows, np.random.default_rng([15, number])) for number, make in enumerate(KINDS.values())]


def aside_table(name: str, rows: int = 20_000) -> Table:
    """One of them by name.

    >>> aside_table("wide", 300).frame.shape
    (300, 61)
    """
    return KINDS[name](rows, np.random.default_rng([15, list(KINDS).index(name)]))


def _table(name: str, columns: Columns, labels: NDArray[Any], classes: int) -> Table:
    """Floats are numbers with public bounds, whole numbers categories 0 to their public number."""
    import pandas as pd

    domains: dict[str, Domain] = {}
    frame: dict[str, Any] = {}
    for column, (values, domain) in columns.items():
        domains[column] = domain
        frame[column] = values if isinstance(domain, Numeric) else _words(values)
    domains["class"] = Categorical([f"v{i}" for i in range(classes)])
    frame["class"] = _words(labels)
    return Table(name, pd.DataFrame(frame), Schema(domains), "class")


def _words(codes: NDArray[Any]) -> NDArray[Any]:
    return np.char.add("v", np.asarray(codes, dtype=np.int64).astype(str)).astype(object)


def _category(codes: NDArray[Any], size: int) -> tuple[NDArray[Any], Domain]:
    return np.clip(codes, 0, size - 1).astype(np.int64), Categorical([f"v{i}" for i in range(size)])


def _number(values: Floats, low: float, high: float, bins: int = 16) -> tuple[Floats, Domain]:
    return np.clip(values, low, np.nextafter(high, low)), Numeric(low, high, bins=bins)


def _chance(score: Floats) -> Floats:
    return 1 / (1 + np.exp(-score))


def _useless(rows: int, draw: np.random.Generator) -> Table:
    """Five columns tell, forty do not: half of those correlate with each other, so that they look busy."""
    tells = draw.normal(size=(rows, 5))
    columns: Columns = {f"tells_{j}": _number(tells[:, j], -4, 4) for j in range(4)}
    columns["tells_4"] = _category(np.searchsorted([-1, 0, 1], tells[:, 4]), 4)
    hidden = draw.normal(size=(rows, 4))
    for j in range(20):
        columns[f"busy_{j}"] = _number(0.8 * hidden[:, j % 4] + 0.6 * draw.normal(size=rows), -4, 4)
        columns[f"idle_{j}"] = _category(draw.integers(0, 3 + j % 8, rows), 3 + j % 8)
    score = tells @ np.array([1.2, -1.0, 0.8, 0.6, 0.9]) - 0.6
    return _table("useless columns", columns, draw.random(rows) < _chance(1.3 * score), 2)


def _interactions(rows: int, draw: np.random.Generator) -> Table:
    """A parity of two columns and another of three; no single column tells anything."""
    bits = draw.integers(0, 2, size=(rows, 5))
    columns: Columns = {}
    for j in range(5):  # each bit hides in a column of six values, three of them for one
        columns[f"part_{j}"] = _category(2 * draw.integers(0, 3, rows) + bits[:, j], 6)
    angle = draw.random((rows, 2))
    for j in range(2):
        columns[f"place_{j}"] = _number(angle[:, j], 0, 1, 8)
    for j in range(6):
        columns[f"idle_{j}"] = _category(draw.integers(0, 4, rows), 4)
    pair, three = bits[:, 0] ^ bits[:, 1], bits[:, 2] ^ bits[:, 3] ^ bits[:, 4]
    board = (angle[:, 0] < 0.5) ^ (angle[:, 1] < 0.5)
    score = 2.0 * (2 * pair - 1) + 1.5 * (2 * three - 1) + 1.0 * (2 * board - 1)
    return _table("interactions only", columns, draw.random(rows) < _chance(score), 2)


def _rare(rows: int, draw: np.random.Generator) -> Table:
    """About 2% of the rows are of the class that matters."""
    dose = draw.exponential(1.0, rows)
    age = draw.uniform(0, 100, rows)
    ward = draw.choice(10, rows, p=np.array([30, 20, 15, 10, 8, 6, 5, 3, 2, 1]) / 100)
    before = draw.random(rows) < 0.06
    score = -6.5 + 1.1 * np.minimum(dose, 3) + 0.025 * np.maximum(age - 40, 0) + 2.6 * before + 1.5 * (ward >= 7)
    columns: Columns = {
        "dose": _number(dose, 0, 8),
        "age": _number(age, 0, 100),
        "ward": _category(ward, 10),
        "before": _category(before, 2),
    }
    for j in range(8):
        columns[f"test_{j}"] = _number(draw.normal(0.05 * score * (j < 3), 1.0), -4, 4)
    return _table("rare class", columns, draw.random(rows) < _chance(score), 2)


def _five(rows: int, draw: np.random.Generator) -> Table:
    """Five classes of shares .4 to .05: two lie beside each other, the others apart."""
    label = draw.choice(5, rows, p=[0.4, 0.25, 0.2, 0.1, 0.05])
    centre = np.array([[0, 0, 0], [1.5, 0.3, 0], [0, 2.2, 1], [-2, 0, 2], [1.5, 2.5, -1.5]], dtype=float)
    place = centre[label] + draw.normal(size=(rows, 3))
    columns: Columns = {f"place_{j}": _number(place[:, j], -6, 6) for j in range(3)}
    columns["mark"] = _category(np.where(draw.random(rows) < 0.5, label, draw.integers(0, 5, rows)), 5)
    columns["kind"] = _category((label >= 2) + 2 * (draw.random(rows) < 0.4), 4)
    for j in range(5):
        columns[f"idle_{j}"] = _category(draw.integers(0, 6, rows), 6)
    return _table("five classes", columns, label, 5)


def _smooth(rows: int, draw: np.random.Generator) -> Table:
    """Correlated numbers in 64 bins; the class follows a smooth surface (a sum, a bump, a product) and two categories."""
    mix = np.array([[1, 0.5, 0, 0, 0.3], [0, 1, 0.4, 0, 0], [0, 0, 1, 0.6, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]])
    x = draw.normal(size=(rows, 5)) @ mix
    group = draw.integers(0, 5, rows)
    sex = draw.integers(0, 2, rows)
    score = 0.9 * x[:, 0] - 0.7 * np.abs(x[:, 1]) + 1.6 * np.exp(-((x[:, 2] - 1) ** 2)) + 0.5 * x[:, 3] * x[:, 4]
    score += 0.4 * (group == 2) + 0.5 * sex - 0.8
    columns: Columns = {f"x_{j}": _number(x[:, j], -5, 5, 64) for j in range(5)}
    columns |= {"group": _category(group, 5), "sex": _category(sex, 2)}
    columns["income"] = _number(np.exp(0.6 * x[:, 0] + 0.8 * draw.normal(size=rows)), 0, 32, 64)  # a long tail, and a twin
    return _table("smooth numbers", columns, draw.random(rows) < _chance(1.5 * score), 2)


def _wide(rows: int, draw: np.random.Generator) -> Table:
    """Sixty columns that each tell a little: answers to a questionnaire with three hidden traits."""
    trait = draw.normal(size=(rows, 3))
    columns: Columns = {}
    for j in range(60):
        answer = trait[:, j % 3] * (0.3 + 0.6 * (j % 7) / 6) + draw.normal(size=rows)
        size = (2, 3, 5, 8)[j % 4]
        cuts = np.linspace(-1.5, 1.5, size + 1)[1:-1]
        columns[f"answer_{j}"] = _category(np.searchsorted(cuts, answer), size)
    score = 1.2 * trait[:, 0] - 0.8 * trait[:, 1] - 1.0
    return _table("wide", columns, draw.random(rows) < _chance(1.5 * score), 2)


def _small(rows: int, draw: np.random.Generator) -> Table:
    """Two thousand rows of a clinic: strong signals, little to learn them from."""
    rows = min(rows, SMALL)
    age, pressure = draw.uniform(18, 90, rows), draw.normal(130, 20, rows)
    smoker, sport = draw.random(rows) < 0.3, draw.integers(0, 4, rows)
    region = draw.integers(0, 12, rows)
    score = 0.06 * (age - 55) + 0.04 * (pressure - 130) + 1.4 * smoker - 0.5 * sport
    columns: Columns = {
        "age": _number(age, 18, 90),
        "pressure": _number(pressure, 60, 220),
        "smoker": _category(smoker, 2),
        "sport": _category(sport, 4),
        "region": _category(region, 12),
        "weight": _number(draw.normal(75 + 0.1 * pressure, 12, rows), 30, 160),
    }
    return _table("small", columns, draw.random(rows) < _chance(score), 2)


KINDS: dict[str, Callable[[int, np.random.Generator], Table]] = {
    "useless columns": _useless,
    "interactions only": _interactions,
    "rare class": _rare,
    "five classes": _five,
    "smooth numbers": _smooth,
    "wide": _wide,
    "small": _small,
}
