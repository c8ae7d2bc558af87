"""Small tables and taxonomies for the tests of the grids."""

from __future__ import annotations

import numpy as np
import pandas as pd

from sfumato.grids.publishers.task import Task
from sfumato.records.levels import Levels
from sfumato.records.records import Records
from sfumato.tables.domains import Categorical, Numeric
from sfumato.tables.schema import Schema


def schema(classes=("no", "yes")) -> Schema:
    return Schema(
        {
            "age": Numeric(0, 80, bins=8),
            "job": Categorical(["a", "b", "c", "d"], taxonomy={"white": ["a", "b"], "blue": ["c", "d"]}),
            "sex": Categorical(["F", "M"]),
            "visits": Numeric(0, 15, bins=4, integer=True),
            "ill": Categorical(list(classes)),
        }
    )


def frame(n: int = 3000, seed: int = 0, classes=("no", "yes")) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, job = rng.uniform(0, 80, n), rng.integers(4, size=n)
    chance = 0.1 + 0.6 * (age > 40) + 0.2 * (job >= 2)
    ill = (rng.random(n) < chance).astype(int) + (len(classes) > 2) * (rng.random(n) < 0.2)
    return pd.DataFrame(
        {
            "age": age,
            "job": np.array(["a", "b", "c", "d"], dtype=object)[job],
            "sex": np.array(["F", "M"], dtype=object)[rng.integers(2, size=n)],
            "visits": rng.integers(0, 16, n),
            "ill": np.array(classes, dtype=object)[ill],
        }
    )


def task(classes=("no", "yes")) -> Task:
    return Task.of(schema(classes), "ill")


def random_records(rng: np.random.Generator, n: int, classes: int = 2, weighted: bool = False) -> Records:
    taxonomies = (
        Levels.numeric("x", np.arange(9.0)),
        Levels.tree("y", {"p": ["1", "2", "3"], "q": {"r": ["4", "5"], "s": ["6"]}}),
        Levels.flat("z", ["u", "v"]),
        Levels.numeric("w", np.arange(6.0)),
    )
    leaves = np.stack([rng.integers(t.leaves, size=n) for t in taxonomies], axis=1)
    y = (leaves[:, 0] * 0.3 + leaves[:, 1] + rng.normal(0, 2, n) > 4).astype(int) + (rng.random(n) < 0.3) * (classes - 2)
    weights = rng.integers(1, 50, n) if weighted else None
    return Records(taxonomies, leaves, np.minimum(y, classes - 1), tuple(map(str, range(classes))), weights)


def literal_enumeration(taxonomies, most, cells):
    """Algorithm 2, lines 25 to 41, with sets of grids as tuples of levels; a grid counts once."""
    layers = [[(0,) * len(taxonomies)]]
    count = 0
    for _ in taxonomies:
        layer = []
        for g in layers[-1]:
            for j, t in enumerate(taxonomies):
                if g[j] == 0:
                    for i in range(1, t.height):
                        new = (*g[:j], i, *g[j + 1 :])
                        size = np.prod([t.sizes[v] for t, v in zip(taxonomies, new, strict=True)])
                        if size <= cells and new not in layer:
                            layer.append(new)
                            count += 1
                            if count >= most:
                                return [g for part in [*layers, layer] for g in part]
        if not layer:
            break
        layers.append(layer)
    return [g for part in layers for g in part]
