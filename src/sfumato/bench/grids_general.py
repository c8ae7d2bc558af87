"""`sfumato bench grids --part general [--peers]`: how near is a synthetic table to the real one, for any question?

Mean total variation over the same random triples of columns for everybody (0 if alike, 1 if they share nothing), with single
columns and pairs beside it, and a logistic regression that learns from the synthetic table and is tried on rows held out.
The floor is *real rows*: the held-out rows themselves against those that were published, which differ by chance alone. LR
on PrivPfC's release sees the cells of its grid, which is what they are for, not the columns that it only draws from shares.

Ours are pure ε. MST and AIM (of the library dpmm, in an environment of its own) are (ε, δ)-private with δ = 1e-6.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.bench.aside_tables import aside_table
from sfumato.bench.classify_data import Table, real_table
from sfumato.bench.classify_methods import splits
from sfumato.bench.grids_accuracy import published
from sfumato.bench.grids_data import FILES
from sfumato.bench.grids_learners import predictions
from sfumato.bench.metrics import measures, summarise
from sfumato.bench.synthesis_peers import SYNTHESIZERS, reachable
from sfumato.grids import PrivPfC, Publisher
from sfumato.privacy import Seeded
from sfumato.records.coding import Coding, cells_of

EPSILONS = (0.2, 1.0, 5.0)
OURS = ("marginals", "privbayes", "privpfc")
REAL = "real rows"
TRIPLES = 150
LEARNED = 50_000  # rows of a synthetic table that the logistic regression sees: more change nothing and take long
MOST_OF_MST, MOST_OF_AIM = 1.0, 1.1
Codes = NDArray[np.int64]
Figures = dict[str, dict[str, dict[str, dict[str, Any]]]]


@dataclass(frozen=True, eq=False)
class Coded:
    """A table as codes, the target last, with the questions that everybody is asked."""

    name: str
    table: Table

    @cached_property
    def names(self) -> list[str]:
        return [*(n for n in self.table.schema.names if n != self.table.target), self.table.target]

    @cached_property
    def sizes(self) -> list[int]:
        return [self.table.schema[name].size for name in self.names]

    @cached_property
    def codes(self) -> Codes:
        return self.code(self.table.frame)

    def code(self, frame: Any) -> Codes:
        """The rows of a frame as codes; what has no cell is put into the first one."""
        return np.column_stack([np.maximum(cells_of(self.table.schema[n], frame[n]), 0) for n in self.names]).astype(
            np.int64
        )

    def questions(self, ways: int) -> list[tuple[int, ...]]:
        """All sets of so many columns, or `TRIPLES` of them drawn once."""
        found = list(combinations(range(len(self.names)), ways))
        picked = np.random.default_rng(ways).permutation(len(found))[:TRIPLES]
        return [found[i] for i in sorted(picked.tolist())]


def distance(one: Codes, other: Codes, sizes: list[int], columns: tuple[int, ...]) -> float:
    """Total variation between two tables over some columns.

    >>> distance(np.array([[0, 0], [1, 1]]), np.array([[0, 0], [1, 0]]), [2, 2], (0, 1))
    0.5
    """
    shape = [sizes[j] for j in columns]
    shares = []
    for codes in (one, other):
        counts = np.bincount(np.ravel_multi_index([codes[:, j] for j in columns], shape), minlength=prod(shape))
        shares.append(counts / counts.sum())
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def _real(coded: Coded, train: NDArray[np.intp], test: NDArray[np.intp]) -> dict[str, float]:
    """What real rows reach: those held out (fewer, so a little further away) in place of a drawn table, LR on the others."""
    truth, held = coded.codes[train], coded.codes[test]
    far = {k: v for k, v in compared(coded, truth, held, held).items() if k.endswith("-way")}
    return far | {f"LR {name}": value for name, value in learned(truth, held, coded.sizes).items()}


def compared(coded: Coded, truth: Codes, drawn: Codes, held: Codes) -> dict[str, float]:
    """All figures of one synthetic table: distances to the rows it was made of, and what can be learned from it."""
    found = {
        f"{ways}-way": float(np.mean([distance(truth, drawn, coded.sizes, c) for c in coded.questions(ways)]))
        for ways in (3, 2, 1)
    }
    return found | {f"LR {name}": value for name, value in learned(drawn, held, coded.sizes).items()}


def learned(drawn: Codes, held: Codes, sizes: list[int]) -> dict[str, float]:
    """A logistic regression over one column per value, trained on the drawn table, on the rows held out."""
    from scipy import sparse
    from sklearn.linear_model import LogisticRegression

    offset = np.concatenate([[0], np.cumsum(sizes[:-1])])

    def one_hot(rows: Codes) -> Any:
        at = (rows[:, :-1] + offset[:-1]).reshape(-1)
        starts = np.arange(0, at.size + 1, len(sizes) - 1)
        return sparse.csr_matrix((np.ones(at.size), at, starts), shape=(len(rows), int(offset[-1])))

    seen = drawn[:LEARNED] if len(drawn) <= LEARNED else drawn[np.random.default_rng(0).permutation(len(drawn))[:LEARNED]]
    scores = np.zeros((len(held), sizes[-1]))
    if np.unique(seen[:, -1]).size > 1:
        model = LogisticRegression(C=1.0, max_iter=200).fit(one_hot(seen), seen[:, -1])
        scores[:, model.classes_] = model.predict_proba(one_hot(held))
    else:
        scores[:, seen[0, -1]] = 1.0
    return measures(held[:, -1], scores.argmax(axis=1), scores)


def publisher(name: str) -> type[Publisher] | None:
    """The publisher of that name, if this version has it."""
    return next((kind for kind in Publisher.__subclasses__() if kind.mechanism == name), None)


@dataclass(frozen=True, eq=False)
class Drawn:
    """A synthetic table, the seconds it took, and for a classification grid what is learned from its cells themselves."""

    codes: Codes
    seconds: float
    by_cells: dict[str, float] | None = None


def drawn_by(name: str, coded: Coded, part: tuple[NDArray[np.intp], NDArray[np.intp]], epsilon: float, seed: int) -> Drawn:
    """A table of as many rows as were given (the first rows of `part`; the others are held out)."""
    train, test = part
    if name in SYNTHESIZERS:
        return Drawn(*SYNTHESIZERS[name].draw(coded.codes[train], coded.sizes, epsilon, seed=seed))
    kind = publisher(name)
    assert kind is not None, f"there is no publisher {name!r}"
    start = time.perf_counter()
    made = kind(epsilon=epsilon, target=coded.table.target, rows=len(train))
    made.fit(coded.table.frame.iloc[train], schema=coded.table.schema, source=Seeded(seed))
    frame = made.sample(len(train), outside="public")
    seconds = time.perf_counter() - start
    by_cells = _from_cells(made.synopsis, coded, test) if isinstance(made, PrivPfC) else None
    return Drawn(coded.code(frame), seconds, by_cells)


def _from_cells(synopsis: Any, coded: Coded, test: NDArray[np.intp]) -> dict[str, float]:
    """Logistic regression on the weighted cells of a classification grid: what the grid is for."""
    leaves = np.maximum(Coding.of(coded.table.schema, target=coded.table.target).leaves(coded.table.frame.iloc[test]), 0)
    said, scores = predictions(published(synopsis, leaves, 0), coded.sizes[-1], learners=("logistic",))["logistic"]
    return measures(coded.codes[test][:, -1], said, scores)


def general_tables(
    *,
    quick: bool,
    data: Path | None,
    peers: bool,
    draws: int,
    progress: Callable[[str], None],
    epsilons: tuple[float, ...] = EPSILONS,
) -> Figures:
    """By table, ε and mechanism: mean and standard error over the draws, each on a split of its own."""
    names = [name for name in OURS if publisher(name) is not None]
    if peers:
        names += [name for name in SYNTHESIZERS if reachable(name)]
    out: Figures = {}
    for table in _tables(quick, data):
        coded = Coded(table.name, table)
        parts = list(splits(table, draws))
        out[table.name] = {}
        floor = summarise([_real(coded, *part) for part in parts])
        for epsilon in (1.0,) if quick else epsilons:
            by_name = out[table.name][f"{epsilon:g}"] = {}
            by_name[REAL] = floor
            for name in names:
                found = []
                for number, (train, test) in enumerate(parts):
                    drawn = drawn_by(name, coded, (train, test), epsilon, 900 + number)
                    figures = compared(coded, coded.codes[train], drawn.codes, coded.codes[test])
                    figures |= {f"LR {k}": v for k, v in (drawn.by_cells or {}).items()}
                    found.append(figures | {"seconds": drawn.seconds})
                by_name[name] = summarise(found)
                said = ", ".join(f"{k} {v:.4f}" for k, v in by_name[name].items() if not k.endswith("_se"))
                progress(f"{table.name}, ε {epsilon:g}, {name}: {said}")
    return out


def _tables(quick: bool, data: Path | None) -> Iterator[Table]:
    """The real tables of the folder; without one, two of those kept aside."""
    if data is None:
        for name in ("five classes", "smooth numbers"):
            yield aside_table(name, 3_000 if quick else 20_000)
        return
    for name in ("adult", "bank", "census"):
        if (data / FILES[name]).exists():
            yield real_table(name, data)


def general_claims(found: Figures) -> list[dict[str, Any]]:
    """The distance of `marginals` over each peer's, averaged over tables and ε; and LR within .01 of the grid.

    >>> one = {"3-way": 0.1, "LR error": 0.2}
    >>> by_name = {"marginals": one, "MST": {"3-way": 0.2, "LR error": 0.2}, "privpfc": {"3-way": 0.5, "LR error": 0.185}}
    >>> [(c["figure"], c["holds"]) for c in general_claims({"adult": {"1": by_name}})]
    [(0.5, True), (0.015, False)]
    """
    cells = [by_name for by_epsilon in found.values() for by_name in by_epsilon.values() if "marginals" in by_name]
    claims = []
    for peer, limit in (("MST", MOST_OF_MST), ("AIM", MOST_OF_AIM)):
        ratios = [by_name["marginals"]["3-way"] / by_name[peer]["3-way"] for by_name in cells if peer in by_name]
        if ratios:
            figure = round(float(np.mean(ratios)), 3)
            claims.append(_claim(f"3-way distance over that of {peer} (with δ), mean of {len(ratios)} cells", figure, limit))
    if cells:
        behind = [by_name["marginals"]["LR error"] - by_name["privpfc"]["LR error"] for by_name in cells]
        name = f"LR on the general table, errors more than on the classification grid's, mean of {len(behind)} cells"
        claims.append(_claim(name, round(float(np.mean(behind)), 4), 0.01))
    return claims


def _claim(name: str, figure: float, limit: float) -> dict[str, Any]:
    return {"name": name, "figure": figure, "limit": limit, "holds": bool(figure <= limit)}
