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
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grids.published.bits import Bits, bits_for
from sfumato.grids.published.network import Link, Network, Parents, whole_columns
from sfumato.grids.publishers.base import Publisher, noise_of
from sfumato.grids.publishers.one_grid import TOO_SMALL
from sfumato.grids.publishers.settings import MOST_CELLS
from sfumato.grids.publishers.task import Task
from sfumato.grids.search.dependence import F_SPREAD, R_SPREAD, dependence, fixed_by_parents
from sfumato.grids.search.parents import (
    MOST_ASKED,
    MOST_BINARY,
    binary_candidates,
    general_degree,
    joint,
    scorer,
    useful_options,
)
from sfumato.privacy.exact import Exact
from sfumato.privacy.losses import choice_rate
from sfumato.privacy.meter import Meter
from sfumato.privacy.units import NANO, Nano
from sfumato.records.levels import Levels
from sfumato.records.records import Records
from sfumato.registry import Mechanism, Parameter

Score = Literal["auto", "F", "R"]
Encoding = Literal["taxonomy", "vanilla", "binary", "gray"]
Tables = list[NDArray[np.int64]]


@dataclass(kw_only=True, eq=False)
class PrivBayes(Publisher):
    """Publish a Bayesian network of noisy marginals.

    Parameters
    ----------
    epsilon : ε
        The budget of the whole release.
    budgets : optional
        Refused: one ε holds for all. `PrivPfC` takes what everybody granted.
    target : str
        The column to be predicted.
    score : "auto", "F" or "R"
        F needs binary columns throughout; "auto" takes it where that is so.
    encoding : "taxonomy", "vanilla", "binary" or "gray"
        How columns of more than two values enter: as they are, with parents generalised along their taxonomies or not; or
        as bits. Bits need the score F and make every column a few more steps, each with its share of the budget.
    degree : int, optional
        At most so many parents. By default usefulness alone decides, as long as there are at most 20,000 candidates in the
        binary form (8,000 in the general one); whatever is asked for, at most 500,000.
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

    score: Score = "auto"
    encoding: Encoding = "taxonomy"
    degree: int | None = None
    usefulness: float = 4.0
    select: float = 0.3
    synopsis: Network = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.degree is not None and self.degree < 1) or self.usefulness <= 0 or not 0 < self.select < 1:
            raise InputError("PrivBayes needs degree >= 1, usefulness > 0 and a share `select` between 0 and 1")
        if self.score not in get_args(Score):
            raise InputError(f"the score is one of {', '.join(get_args(Score))}, got {self.score!r}")
        if self.encoding not in get_args(Encoding):
            raise InputError(f"the encoding is one of {', '.join(get_args(Encoding))}, got {self.encoding!r}")
        if self.score == "R" and self.encoding in ("binary", "gray"):
            raise InputError("columns in bits are scored by F; leave score='auto', or take encoding='taxonomy'")

    def expected(self, task: Task, factor: int = 1) -> tuple[float | None, str]:
        columns, _, binary = self._columns(task)
        count, budget = len(columns), self._budget(factor)
        if binary_candidates(count, 1) > MOST_ASKED:
            raise InputError(
                f"a network of {count} columns has {binary_candidates(count, 1):,} candidates even with one parent each; "
                f"at most {MOST_ASKED:,} are scored: name fewer `attributes`"
            )
        budget = Nano(budget - self._size_share(budget))
        _, left = self._shares(count, budget, F_SPREAD if binary else R_SPREAD)
        if not binary:
            return noise_of(left // count), " (error of each marginal count)"
        if self.rows is None:
            return None, " (error decided by the number of records)"
        k = self.useful_degree(count, self.rows, left / NANO)
        return noise_of((left if k else budget) // (count - k)), " (error of each marginal count)"

    def release(self, records: Exact[Records], task: Task, meter: Meter) -> Network:
        columns, code, binary = self._columns(task)
        if code is not None:
            records = records.map(code.records)
        size, budget = self._size(records, meter, self._budget(meter.terms.factor))
        make = self._binary if binary else self._general
        links, tables, rate, figures = make(records, columns, meter, size, budget)
        shared = {"usefulness": self.usefulness, "select": self.select, "public_rows": self.rows}
        return Network(
            links=tuple(links),
            tables=tuple(tables),
            rate=rate,
            attributes=task.attributes,
            target=self.target,
            target_domain=task.target_domain,
            guarantee=meter.guarantee(),
            random=meter.post_processing,
            size=size,
            parameters={**shared, "encoding": self.encoding, **figures},
            mechanism=self.mechanism,
            code=code,
        )

    def _columns(self, task: Task) -> tuple[tuple[Levels, ...], Bits | None, bool]:
        """The columns of the network, their code where they are bits, and whether the binary form applies."""
        columns = whole_columns(task.taxonomies, self.target, task.target_domain)
        wide = [c.name for c in columns if c.leaves != 2]
        code = bits_for(columns, self.encoding) if wide else None
        if code is not None:
            return code.columns, code, True
        if self.score == "F" and wide:
            raise InputError(f"the score F needs binary columns; {wide[0]!r} is not; use score='R' or leave it out")
        return columns, None, not wide and self.score != "R"

    def _shares(self, count: int, budget: Nano, spread: float) -> tuple[Nano, Nano]:
        """What one of the choices may cost, and what is left for the marginals; refused where one comes to nothing."""
        each_choice = Nano(int(budget * self.select) // max(1, count - 1))
        left = Nano(budget - each_choice * (count - 1))
        choice_rate(each_choice, spread)
        if left < count:
            raise InputError(TOO_SMALL)
        return each_choice, left

    # --- binary columns, score F -----------------------------------------------------------------------------------

    def _binary(
        self, records: Exact[Records], columns: tuple[Levels, ...], meter: Meter, size: float, budget: Nano
    ) -> tuple[list[Link], Tables, int, dict[str, Any]]:
        count = len(columns)
        each_choice, left = self._shares(count, budget, F_SPREAD)
        k = self.useful_degree(count, size, left / NANO)
        if k == 0:
            left = budget
        rate = left // (count - k)
        score = scorer(records, columns, fixed_by_parents)
        links: list[Link] = [(count - 1, ())]
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
        most = MOST_BINARY if self.degree is None else MOST_ASKED
        found = [
            k
            for k in range(1, count if self.degree is None else min(count, self.degree + 1))
            if size * epsilon / ((count - k) * 2.0 ** (k + 2)) >= self.usefulness
            and (k == 1 or binary_candidates(count, k) <= most)
        ]
        return max(found, default=0)

    # --- general columns, score R ----------------------------------------------------------------------------------

    def _general(
        self, records: Exact[Records], columns: tuple[Levels, ...], meter: Meter, size: float, budget: Nano
    ) -> tuple[list[Link], Tables, int, dict[str, Any]]:
        count = len(columns)
        each_choice, left = self._shares(count, budget, R_SPREAD)
        rate = left // count
        most = min(max(4.0, size * (rate / NANO) / (2 * self.usefulness)), float(MOST_CELLS // count))
        degree = general_degree(count) if self.degree is None else min(self.degree, general_degree(count, MOST_ASKED))
        score = scorer(records, columns, dependence)
        links: list[Link] = [(count - 1, ())]
        while len(links) < count:
            options = useful_options(columns, [x for x, _ in links], most, degree, self.encoding == "taxonomy")
            links.append(options[self._choose(score, R_SPREAD, options, meter, each_choice, len(links))])
        tables = [self._count(records, columns, link, meter, rate) for link in links]
        return links, tables, rate, {"score": "R", "degree": degree}

    def _choose(
        self,
        score: Callable[[int, Parents], Exact[float]],
        spread: float,
        options: list[Link],
        meter: Meter,
        nano: Nano,
        step: int,
    ) -> int:
        first, *others = (score(x, parents) for x, parents in options)
        return meter.choose(
            first.zip(*others),
            rate=choice_rate(nano, spread),
            spread=spread,
            label=f"{self.mechanism}: column {step}",
        )

    def _count(
        self,
        records: Exact[Records],
        columns: tuple[Levels, ...],
        link: Link,
        meter: Meter,
        rate: int,
    ) -> NDArray[np.int64]:
        noisy = meter.laplace(
            records.map(lambda r: joint(r, columns, *link).reshape(-1)), rate=rate, label=f"{self.mechanism}: marginal"
        )
        return noisy.reshape(columns[link[0]].leaves, -1)


def _earlier(table: NDArray[np.int64], k: int) -> list[NDArray[np.int64]]:
    """Tables of the first k columns, each given all before it, from the noisy joint table of the first k + 1."""
    cube = np.maximum(table, 0).reshape((2,) * (k + 1))  # axis 0 is column k, axis 1 + i is column i
    out = []
    for i in range(k):
        summed = cube.sum(axis=(0, *range(i + 2, k + 1)))  # columns 0 to i
        out.append(np.moveaxis(summed, i, 0).reshape(2, -1))
    return out


MECHANISM = Mechanism(
    "privbayes",
    ("synthesize",),
    PrivBayes,
    "a Bayesian network over all columns; not made for classification",
    parameters=(
        Parameter("score", "text", "how links are scored; F needs binary columns", "auto", choices=get_args(Score)),
        Parameter("encoding", "text", "how wide columns enter: whole, or as bits", "taxonomy", choices=get_args(Encoding)),
        Parameter("degree", "whole", "parents of a column at most; by default usefulness alone decides", low=1, high=1000),
        Parameter("usefulness", "number", "θ, average count over average noise at least", 4.0, low=1e-3, high=1e6),
        Parameter("select", "number", "β, the share of ε for the structure", 0.3, low=0.001, high=0.999),
    ),
    needs=("one epsilon",),
    rank={"classification": 4, "general": 2},
    paper="Zhang, Cormode, Procopiuc, Srivastava & Xiao 2014",
)
