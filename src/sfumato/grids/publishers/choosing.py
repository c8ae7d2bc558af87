"""Which marginals a general table measures: chosen by what the model so far misses, and how the budget is shared.

`PrivMarginals` says what it is for. The steps here, each priced per unit of weight:

- `forest`: pairs that tie together columns not yet tied, one private choice each. Between parts that are not tied the model
  is the product of its columns, so all these choices are by one set of scores, counted once.
- `refined`: pairs and triples that the fitted model misses most, some at a time, then a new fit.

A candidate is a set of columns at some groups of their values. Measured with budget e, a table of c cells is off by about
``c / 2e`` records (half its L1 distance), and e is missing elsewhere; if T tables share a budget E as is best for the sum,
e in proportion to √c, the two come to ``T/E √(c c₀)`` where c₀ is the size of a typical one. That is what a candidate has to
gain at least, times `DAMPING`, because the fit leaves about half of the noise. "Nothing" is a candidate that gains 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.grids.graphical import Fitted, Marginal, cost, growth
from sfumato.grids.published.joint import Measured
from sfumato.grids.search.groups import Groups
from sfumato.grids.search.pairs import Candidate, Columns, Tables, candidates, counted, first_steps, missed, rolled
from sfumato.privacy.exact import Exact
from sfumato.privacy.meter import Meter
from sfumato.privacy.units import NANO, Nano
from sfumato.records.records import Records, weighted_bincount

TYPICAL = 30  # c₀: cells of a typical table
DAMPING = 0.5
MOST_TREE = 200_000  # cells of the junction tree: a fit then takes seconds
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Chooser:
    """What all choices have in common.

    Attributes
    ----------
    records : Exact of Records
        The private table.
    groups : sequence of Groups
        Of all columns.
    meter : Meter
        Pays, chooses and draws noise.
    weights : int64 array
        What a record weighs, per person group.
    """

    records: Exact[Records]
    groups: Sequence[Groups]
    meter: Meter
    weights: Ints

    def counts(self, sets: Sequence[Columns]) -> Exact[Tables]:
        """The exact counts of these sets of columns."""
        return self.records.map(partial(counted, sets=tuple(sets), groups=self.groups))

    def scores(
        self, counts: Exact[Tables], sets: Sequence[Columns], model: Callable[[Columns], NDArray[np.float64]], toll: float
    ) -> tuple[list[Candidate], Exact[Ints]]:
        """All candidates of these sets, and what each gains; the last score is that of nothing. `toll` is T/E."""
        found = candidates(sets, self.groups)
        cells = np.array([c.cells(self.groups) for c in found], dtype=np.float64)
        penalty = np.rint(DAMPING * toll * np.sqrt(TYPICAL * cells)).astype(np.int64)
        expected = {s: np.rint(self._at_first(model(s), s)).astype(np.int64) for s in sets}
        score = partial(_gains, model=expected, sets=tuple(sets), groups=self.groups, penalty=penalty)
        return found, counts.map(score)

    def _at_first(self, table: NDArray[np.float64], columns: Columns) -> NDArray[np.float64]:
        first = first_steps(columns, self.groups)
        return rolled(table, Candidate(columns, first), self.groups, (0,) * len(columns))

    def choose(self, scores: Exact[Ints], allowed: Sequence[int], rate: Nano, label: str) -> int | None:
        """One of the `allowed` candidates, or nothing. It costs `rate` per unit of weight."""
        index = self.meter.choose(
            scores.map(partial(_taken, index=(*allowed, -1))), rate=rate, spread=self.weights, label=label
        )
        return None if index == len(allowed) else allowed[index]

    def measure(self, counts: Exact[Tables], chosen: Sequence[Candidate], budget: Nano) -> list[Measured]:
        """Noisy counts of the chosen ones; the budget is shared in proportion to √cells."""
        roots = np.sqrt([c.cells(self.groups) for c in chosen])
        out = []
        for c, root in zip(chosen, roots, strict=True):
            rate = max(1, int(budget * root / roots.sum()))
            noisy = self.meter.laplace(
                counts.map(partial(_rolled, candidate=c, groups=self.groups)),
                rate=rate,
                weights=self.weights,
                label="counts of a pair" if len(c.columns) == 2 else "counts of a triple",
            )
            maps = tuple(self.groups[j].at(s) for j, s in zip(c.columns, c.steps, strict=True))
            out.append(Measured(c.columns, maps, noisy.reshape(c.shape(self.groups)), rate))
        return out

    def again(self, measured: Sequence[Measured], budget: Nano) -> list[Measured]:
        """The same tables counted once more; the fit takes both by their noise."""
        roots = np.sqrt([m.noisy.size for m in measured])
        out = []
        for m, root in zip(measured, roots, strict=True):
            rate = max(1, int(budget * root / roots.sum()))
            noisy = self.meter.laplace(
                self.records.map(partial(_counted_as, measured=m)), rate=rate, weights=self.weights, label="counts once more"
            )
            out.append(replace(m, noisy=noisy.reshape(m.noisy.shape), rate=rate))
        return out


def forest(
    chooser: Chooser, pairs: Sequence[Columns], model: Callable[[Columns], NDArray[np.float64]], budget: Nano, select: float
) -> list[Measured]:
    """Pairs that tie columns together, one after the other, until nothing is worth it; then their counts."""
    if not pairs:
        return []
    most = len({j for pair in pairs for j in pair}) - 1
    each = Nano(max(1, int(budget * select) // most))
    toll = most / ((budget - most * each) / NANO)
    counts = chooser.counts(pairs)
    found, scores = chooser.scores(counts, pairs, model, toll)
    ends = np.array([c.columns for c in found])
    part = np.arange(ends.max() + 1)
    chosen: list[Candidate] = []
    spent = 0
    while len(chosen) < most:
        apart = np.flatnonzero(part[ends[:, 0]] != part[ends[:, 1]]).tolist()
        index = chooser.choose(scores, apart, each, "a pair that ties two parts together")
        spent += each
        if index is None:
            break
        chosen.append(found[index])
        part[part == part[ends[index, 0]]] = part[ends[index, 1]]
    return chooser.measure(counts, chosen, Nano(budget - spent)) if chosen else []


def refined(
    chooser: Chooser,
    pairs: Sequence[Columns],
    fitted: Fitted,
    have: Sequence[Columns],
    *,
    budget: Nano,
    select: float,
    many: int,
) -> tuple[list[Measured], int]:
    """Up to `many` pairs and triples that the fitted model misses most, and what all of it cost."""
    tied: set[Columns] = {pair for columns in have for pair in combinations(columns, 2)}
    sets = [s for s in (*pairs, *_triples(tied)) if s not in have]
    grown = growth(fitted.tree, sets)
    sets = [s for s, more in zip(sets, grown, strict=True) if fitted.tree.cells + more <= MOST_TREE]
    if not sets:
        return [], 0
    each = Nano(max(1, int(budget * select) // many))
    toll = many / ((budget - many * each) / NANO)
    counts = chooser.counts(sets)
    found, scores = chooser.scores(counts, sets, fitted.marginal, toll)
    chosen: list[Candidate] = []
    spent = 0
    while len(chosen) < many:
        fresh = [i for i, c in enumerate(found) if all(len({*c.columns} & {*o.columns}) < 2 for o in chosen)]
        if not fresh:
            break
        index = chooser.choose(scores, fresh, each, "a pair or triple that the model misses")
        spent += each
        if index is None:
            break
        chosen.append(found[index])
    kept: list[Candidate] = []
    for c in chosen:  # each fits by itself, but perhaps not all of them
        if cost(fitted.sizes, [*have, *(k.columns for k in kept), c.columns]) <= MOST_TREE:
            kept.append(c)
    if not kept:
        return [], spent
    return chooser.measure(counts, kept, Nano(budget - spent)), budget


def _triples(tied: set[Columns]) -> list[Columns]:
    """Three columns of which at least two pairs are tied."""
    around: dict[int, set[int]] = {}
    for a, b in tied:
        around.setdefault(a, set()).add(b)
        around.setdefault(b, set()).add(a)
    return sorted({tuple(sorted((j, *two))) for j, near in around.items() for two in combinations(near, 2)})


def as_marginals(measured: Sequence[Measured], groups: Sequence[Groups]) -> list[Marginal]:
    """Measured tables over the finest groups of their columns, for the fit."""
    found = []
    for m in measured:
        maps = []
        for j, leaf_groups in zip(m.columns, m.groups, strict=True):
            own = np.zeros(groups[j].count, dtype=np.int64)
            own[groups[j].finest] = leaf_groups
            maps.append(own)
        found.append(Marginal(m.columns, m.noisy.astype(np.float64), m.sigma, tuple(maps)))
    return found


def _gains(counts: Tables, model: Tables, sets: Sequence[Columns], groups: Sequence[Groups], penalty: Ints) -> Ints:
    return np.append(missed(counts, model, sets, groups) - penalty, 0)


def _counted_as(records: Records, measured: Measured) -> Ints:
    code = np.zeros(len(records.leaves), dtype=np.int64)
    for j, group, size in zip(measured.columns, measured.groups, measured.noisy.shape, strict=True):
        code = code * size + group[records.classes if j == len(records.taxonomies) else records.leaves[:, j]]
    return weighted_bincount(code, records.weights, measured.noisy.size)


def _taken(scores: Ints, index: Sequence[int]) -> NDArray[Any]:
    return scores[list(index)]


def _rolled(counts: Tables, candidate: Candidate, groups: Sequence[Groups]) -> Ints:
    table = rolled(counts[candidate.columns].astype(np.float64), candidate, groups, first_steps(candidate.columns, groups))
    return table.astype(np.int64).reshape(-1)
