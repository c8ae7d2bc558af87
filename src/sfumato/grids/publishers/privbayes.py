"""PrivBayes: a noisy Bayesian network over all columns, from which a table is sampled.

Zhang, Cormode, Procopiuc, Srivastava & Xiao, *PrivBayes: private data release via Bayesian networks*, SIGMOD 2014. The
network is grown greedily from the target: each step adds one column with its parents among those already in, chosen by
the score F if every column is binary and by R otherwise (see `dependence`). Then marginals get noise. With D columns, N
records and ε₂ for the marginals, θ-usefulness (average count over average noise at least θ, the paper's formulas)
decides how fine they may be:

- binary: every column has k parents, for the largest k with ``N ε₂ / ((D - k) 2^(k+2)) >= θ``. The first k + 1 columns
  share one marginal, so only D - k are measured. With k = 0 there is nothing to choose and the marginals get everything.
- general: a marginal has at most ``N ε₂ / (2 D θ)`` cells. Every set of parents that fits is a candidate, at the finest
  levels of their taxonomies at which it fits, unless a larger set has the same parents as fine (the paper's maximal sets).

Wide columns are taken as they are (`encoding="taxonomy"`, or "vanilla" without generalised parents), or written in bits
("binary", "gray": see `bits`), to which the binary form with its score F then applies.

**Guarantee.** A choice at rate η loses η times the spread of its score, proven in `dependence`; D - 1 choices share
`select` of the budget. A record is in one cell of each of the m measured marginals, each with noise of rate ε₂ / m. Steps
in sequence add up; k and the limit on cells follow from public figures or from the noisy number of records.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import combinations
from math import comb
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grids.published.network import Network, Parents
from sfumato.grids.publishers.base import MOST_CELLS, Publisher
from sfumato.grids.publishers.bits import bits_for
from sfumato.grids.publishers.task import Task
from sfumato.grids.search.dependence import F_SPREAD, R_SPREAD, dependence, fixed_by_parents
from sfumato.privacy.losses import choice_rate
from sfumato.privacy.meter import Meter
from sfumato.privacy.units import NANO, Epsilon, Nano
from sfumato.records.levels import Levels
from sfumato.records.records import Records, weighted_bincount

Score = Literal["auto", "F", "R"]
Options = list[tuple[int, Parents]]
Encoding = Literal["taxonomy", "vanilla", "binary", "gray"]
MOST_CANDIDATES = 20_000
MOST_GENERAL = 8_000  # general tables are larger, and so is the time that each candidate takes


class PrivBayes(Publisher):
    """Publish a Bayesian network of noisy marginals.

    Parameters
    ----------
    epsilon : ε
        The budget of the whole release.
    target : str
        The column to be predicted.
    score : "auto", "F" or "R"
        F needs binary columns throughout; "auto" takes it where that is so.
    encoding : "taxonomy", "vanilla", "binary" or "gray"
        How columns of more than two values enter: as they are, with parents generalised along their taxonomies or not; or
        as bits. Bits need the score F and make every column a few more steps, each with its share of the budget.
    degree : int, optional
        At most so many parents. By default usefulness alone decides, as long as there are at most 20,000 candidates in the
        binary form (8,000 in the general one).
    usefulness : float
        θ of the paper.
    select : float
        Share of the budget for the structure, β of the paper.
    rows : int, optional
        A public number of records; without it 3% of the budget estimates it.
    attributes : tuple of str, optional
        Predictors to consider; by default every column but the target.
    """

    mechanism = "privbayes"

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        target: str,
        score: Score = "auto",
        encoding: Encoding = "taxonomy",
        degree: int | None = None,
        usefulness: float = 4.0,
        select: float = 0.3,
        rows: int | None = None,
        attributes: tuple[str, ...] | None = None,
    ) -> None:
        super().__init__(epsilon=epsilon, target=target, rows=rows, attributes=attributes)
        if (degree is not None and degree < 1) or usefulness <= 0 or not 0 < select < 1:
            raise InputError("PrivBayes needs degree >= 1, usefulness > 0 and a share `select` between 0 and 1")
        if score not in get_args(Score):
            raise InputError(f"the score is one of {', '.join(get_args(Score))}, got {score!r}")
        if encoding not in get_args(Encoding):
            raise InputError(f"the encoding is one of {', '.join(get_args(Encoding))}, got {encoding!r}")
        if score == "R" and encoding in ("binary", "gray"):
            raise InputError("columns in bits are scored by F; leave score='auto', or take encoding='taxonomy'")
        self.score, self.degree, self.usefulness, self.select = score, degree, usefulness, select
        self.encoding: Encoding = encoding

    def release(self, records: Callable[[], Records], task: Task, meter: Meter) -> Network:
        columns = (*task.taxonomies, Levels.flat(self.target, [str(v) for v in task.target_domain.labels()]))
        wide = [c.name for c in columns if c.leaves != 2]
        code = bits_for(columns, self.encoding) if wide else None
        if code is not None:
            columns, wide, plain = code.columns, [], records
            records = cache(lambda: code.records(plain()))
        if self.score == "F" and wide:
            raise InputError(f"the score F needs binary columns; {wide[0]!r} is not; use score='R' or leave it out")
        size, budget = self._size(records, meter, self._budget(meter))
        make = self._general if wide or self.score == "R" else self._binary
        links, tables, rate, figures = make(records, columns, meter, size, budget)
        shared = {"usefulness": self.usefulness, "select": self.select, "public_rows": self.rows}
        parameters = {**shared, "encoding": self.encoding, **figures}
        return Network(
            tuple(links), tuple(tables), columns, rate, task.attributes, self.target, task.target_domain,
            meter.guarantee(), meter.post_processing, size, parameters, code=code,
        )  # fmt: skip

    # --- binary columns, score F -----------------------------------------------------------------------------------

    def _binary(
        self, records: Callable[[], Records], columns: tuple[Levels, ...], meter: Meter, size: float, budget: Nano
    ) -> tuple[Options, list[NDArray[np.int64]], int, dict[str, Any]]:
        count = len(columns)
        each_choice = Nano(int(budget * self.select) // max(1, count - 1))
        left = Nano(budget - each_choice * (count - 1))
        k = self.useful_degree(count, size, left / NANO)
        if k == 0:
            left = budget
        rate = left // (count - k)
        score = _scorer(records, columns, fixed_by_parents)
        links: Options = [(count - 1, ())]
        while len(links) < count:
            inside = [x for x, _ in links]
            free = [x for x in range(count) if x not in inside]
            sets = [tuple((j, 1) for j in s) for s in combinations(inside, min(k, len(inside)))]
            options = [(x, s) for x in free for s in sets]
            if k == 0:
                links.append(options[0])
                continue
            links.append(options[self._choose(score, F_SPREAD, options, meter, each_choice, len(links))])
        measured = [self._count(records, columns, link, meter, rate) for link in links[k:]]
        first = _earlier(measured[0], k)
        return links, [*first, *measured], rate, {"score": "F", "degree": k}

    def useful_degree(self, count: int, size: float, epsilon: float) -> int:
        """The largest k that is θ-useful for `count` binary columns, `size` records and `epsilon` (0 if none is).

        >>> PrivBayes(epsilon=1, target="y").useful_degree(16, 20_000, 0.7)
        5
        """
        found = [
            k
            for k in range(1, count if self.degree is None else min(count, self.degree + 1))
            if size * epsilon / ((count - k) * 2.0 ** (k + 2)) >= self.usefulness
            and (self.degree is not None or k == 1 or comb(count + 1, k + 2) <= MOST_CANDIDATES)
        ]
        return max(found, default=0)

    # --- general columns, score R ----------------------------------------------------------------------------------

    def _general(
        self, records: Callable[[], Records], columns: tuple[Levels, ...], meter: Meter, size: float, budget: Nano
    ) -> tuple[Options, list[NDArray[np.int64]], int, dict[str, Any]]:
        count = len(columns)
        each_choice = Nano(int(budget * self.select) // (count - 1))
        rate = (budget - each_choice * (count - 1)) // count
        most = min(max(4.0, size * (rate / NANO) / (2 * self.usefulness)), float(MOST_CELLS))
        degree = general_degree(count) if self.degree is None else self.degree
        score = _scorer(records, columns, dependence)
        links: Options = [(count - 1, ())]
        while len(links) < count:
            options = _useful_options(columns, [x for x, _ in links], most, degree, self.encoding == "taxonomy")
            links.append(options[self._choose(score, R_SPREAD, options, meter, each_choice, len(links))])
        tables = [self._count(records, columns, link, meter, rate) for link in links]
        return links, tables, rate, {"score": "R", "degree": degree}

    def _choose(
        self, score: Callable[[int, Parents], float], spread: float, options: Options, meter: Meter, nano: Nano, step: int
    ) -> int:
        return meter.choose(
            lambda: [score(x, parents) for x, parents in options],
            rate=choice_rate(nano, spread),
            spread=spread,
            label=f"{self.mechanism}: column {step}",
        )

    def _count(
        self,
        records: Callable[[], Records],
        columns: tuple[Levels, ...],
        link: tuple[int, Parents],
        meter: Meter,
        rate: int,
    ) -> NDArray[np.int64]:
        exact = partial(_flat_joint, records, columns, *link)
        noisy = meter.laplace(exact, rate=rate, label=f"{self.mechanism}: marginal")
        return noisy.reshape(columns[link[0]].leaves, -1)


def _earlier(table: NDArray[np.int64], k: int) -> list[NDArray[np.int64]]:
    """Tables of the first k columns, each given all before it, from the noisy joint table of the first k + 1."""
    cube = np.maximum(table, 0).reshape((2,) * (k + 1))  # axis 0 is column k, axis 1 + i is column i
    out = []
    for i in range(k):
        summed = cube.sum(axis=(0, *range(i + 2, k + 1)))  # columns 0 to i
        out.append(np.moveaxis(summed, i, 0).reshape(2, -1))
    return out


def general_degree(count: int) -> int:
    """The most parents for which `count` columns have no more than 8,000 sets of parents in all (at least one).

    >>> [general_degree(count) for count in (5, 10, 15, 20)]
    [4, 9, 3, 2]
    """
    within = [k for k in range(1, count) if sum(comb(count + 1, c + 2) for c in range(1, k + 1)) <= MOST_GENERAL]
    return max(within, default=1)


def _useful_options(
    columns: tuple[Levels, ...], inside: list[int], most: float, degree: int, generalise: bool = True
) -> Options:
    """Every column not yet in, with its maximal useful sets of at most `degree` parents."""
    found: Options = []
    for x in (j for j in range(len(columns)) if j not in inside):
        larger: list[dict[int, int]] = []  # of one parent more
        kept: list[dict[int, int]] = []
        for count in range(min(degree, len(inside)), -1, -1):
            fitted = (_fitted(columns, x, s, most, generalise) for s in combinations(inside, count))
            fitting = [dict(s) for s in fitted if s is not None]
            covered = {
                tuple(part.items()) for big in larger for left in big for part in [{j: big[j] for j in big if j != left}]
            }
            # A set that is part of a larger one, at the same levels, tells less than it.
            kept += [s for s in fitting if tuple(s.items()) not in covered]
            larger = fitting
        found.extend((x, tuple(s.items())) for s in kept)
    return found


def _fitted(
    columns: tuple[Levels, ...], x: int, parents: tuple[int, ...], most: float, generalise: bool = True
) -> Parents | None:
    """The parents generalised, largest first, until the marginal has at most `most` cells; None if it cannot be."""
    level = {j: columns[j].height - 1 for j in parents}
    while columns[x].leaves * np.prod([columns[j].sizes[v] for j, v in level.items()], dtype=np.float64) > most:
        coarser = [j for j, v in level.items() if v > 1] if generalise else []
        if not coarser:
            return None if parents else ()
        widest = max(coarser, key=lambda j: columns[j].sizes[level[j]])
        level[widest] -= 1
    return tuple(level.items())


def _scorer(
    records: Callable[[], Records], columns: tuple[Levels, ...], score: Callable[[NDArray[np.int64]], float]
) -> Callable[[int, Parents], float]:
    """Scores of candidates, each counted once: most are candidates again in the next step."""

    @cache
    def of(x: int, parents: Parents) -> float:
        return score(_joint(records(), columns, x, parents))

    return of


def _joint(records: Records, columns: tuple[Levels, ...], x: int, parents: Parents) -> NDArray[np.int64]:
    def column(j: int, level: int) -> NDArray[Any]:
        values = records.classes if j == len(records.taxonomies) else records.leaves[:, j]
        return np.asarray(columns[j].maps[level][values])

    code, cells = column(x, columns[x].height - 1).astype(np.int64), columns[x].leaves
    for j, level in parents:
        code = code * columns[j].sizes[level] + column(j, level)
        cells *= columns[j].sizes[level]
    return weighted_bincount(code, records.weights, cells).reshape(columns[x].leaves, -1)


def _flat_joint(records: Callable[[], Records], columns: tuple[Levels, ...], x: int, parents: Parents) -> Any:
    return _joint(records(), columns, x, parents).reshape(-1)
