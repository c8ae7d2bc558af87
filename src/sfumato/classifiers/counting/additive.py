"""An additive model in few, large, private steps: `PrivateAdditive`.

The model is a sum of *terms*. A term looks at one to four columns at some level of their taxonomies (a grid, as in PrivPfC:
Su et al. 2018) and gives each cell one number per class; the class with the largest sum is predicted. Averaged over the
other columns of their terms, they are the shape functions that people plot. It is boosting, but with as few rounds as the
budget carries (one at ε = 0.05, seven at ε = 1, for tens of thousands of records), because under pure ε every round costs
its full share.

A round, with p the probabilities of the model so far (a public function, since the model was released):

1. A record (x, y) gets the weight ``w = min(cap, p₁ p₂ / p_y)``, p₁ >= p₂ being the two largest probabilities at x. For two
   classes this is 1 - p_y: what the model already knows weighs nothing. Weights are integers, at most `UNIT`.
2. Among public candidate grids one is chosen by the expected weight that its noisy cells classify correctly
   (`grids.quality`).
3. The chosen grid's weight per cell and class is counted with noise, W; the term is ``log(W + prior)``. Where p is constant
   in a cell and n_y records of class y lie in it, ``W_y ∝ n_y / p_y``, so model plus term are exactly ``log n_y``.

**Guarantee.** ε-differential privacy against the absence of a record.

- A record is in one class: the class counts, by which the number of rounds is chosen, lose their rate ε/50.
- Weights are a function of the record and of the published model; one record adds w <= UNIT units to one coordinate of W,
  so noise of rate r per unit loses at most UNIT r.
- A record of weight w moves the score of *every* grid by an amount in [w low, w high] (`grids.quality`), low <= 0 <= high,
  so the spread of the changes is at most UNIT (high - low): that is what `Meter.choose` is told.
- Steps in sequence add up; smoothing, damping and prediction are post-processing.
- With budgets a record is worth several units, `limits` at most, where it was UNIT above (`lattice`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.classifiers.base import CountingClassifier, Floats
from sfumato.classifiers.counting.additive_settings import AdditiveSettings, are_mixed, automatic
from sfumato.classifiers.counting.lattice import UNIT, Lattice
from sfumato.classifiers.counting.main_effects import main_effects
from sfumato.classifiers.weighing import ALIKE, Weighing
from sfumato.errors import InputError
from sfumato.grids.publishers.stacking import CLASS_PART
from sfumato.grids.search.pool import Pool, enumerate_grids
from sfumato.grids.search.quality import Quality
from sfumato.grids.search.scoring import score_pool
from sfumato.privacy import NANO, Exact, Meter, Nano
from sfumato.privacy.losses import choice_rate
from sfumato.records.coding import Coding
from sfumato.records.levels import Levels
from sfumato.records.records import Grid, Records


@dataclass(frozen=True, eq=False)
class Term:
    """One term: a grid and a score per class and cell, centred so that the scores of a cell add up to 0."""

    grid: Grid
    scores: Floats  # classes first, then one axis per column
    mass: Floats  # noisy weight per cell, in records: how much data is behind a score
    noise: float  # scale of the noise, in records

    def at(self, leaves: NDArray[np.integer], taxonomies: tuple[Levels, ...]) -> Floats:
        """Scores of rows, one column per class; a row without a cell in one of the columns gets 0."""
        where: list[Any] = []
        known = np.ones(len(leaves), dtype=bool)
        for j, level in self.grid:
            column = leaves[:, j]
            known &= column >= 0
            where.append(taxonomies[j].maps[level][np.maximum(column, 0)])
        scores = self.scores[(slice(None), *where)] if where else np.tile(self.scores[:, None], len(leaves))
        return np.asarray(np.where(known, scores, 0.0).T)


def weights_of(scores: Floats, classes: NDArray[np.int64], cap: float) -> NDArray[np.int64]:
    """Weights of records in units, from the model's scores (rows by classes); each from its own row alone.

    >>> weights_of(np.zeros((2, 2)), np.array([0, 1]), 0.5).tolist()
    [256, 256]
    >>> weights_of(np.array([[0.0, 2.0], [0.0, 2.0]]), np.array([0, 1]), 0.6).tolist()
    [256, 51]
    """
    shifted = scores - scores.max(axis=1, keepdims=True)
    share = np.exp(shifted)
    share /= share.sum(axis=1, keepdims=True)
    top = np.partition(share, -2, axis=1)[:, -2:] if share.shape[1] > 2 else share
    own = np.take_along_axis(share, classes[:, None], axis=1)[:, 0]
    exact = top[:, 0] * top[:, 1] / np.maximum(own, 1e-12)
    whole: NDArray[np.int64] = np.minimum(np.rint(exact * (UNIT / cap)), UNIT).astype(np.int64)
    return whole


def weighed(records: Records, scores: Floats, cap: float, lattice: Lattice) -> Records:
    """The records with their weights in units, from the model's scores at each and from what their people granted."""
    by_model = weights_of(scores, records.classes.astype(np.int64), cap)
    return replace(records, weights=lattice.weighed(by_model, records.weights))


def add_term(
    records: Exact[Records],
    scores: Exact[Floats],
    meter: Meter,
    *,
    coding: Coding,
    pool: Pool,
    nano: Nano,
    settings: AdditiveSettings,
    label: str,
    weighing: Weighing = ALIKE,
) -> Term:
    """One round for a budget per unit of a person's weight: weigh, choose a grid, count it. `scores` are the model's."""
    select = Nano(int(nano * settings.select))
    lattice = Lattice.of(weighing, Nano(nano - select))
    units, limits = lattice.units, lattice.limits(weighing.groups)
    select, count_unit = lattice.together(select), lattice.together(Nano(nano - select)) // units
    if min(select // units, count_unit) < 1:
        raise InputError("the budget is too small for this many rounds; raise epsilon or ask for fewer")
    quality = Quality.of(count_unit)
    weighted = records.zip(scores).map(lambda both: weighed(*both, settings.cap, lattice))
    index = meter.choose(
        weighted.map(lambda w: score_pool(w, pool, quality)),
        rate=choice_rate(select, quality.spread * units),
        spread=quality.spread * limits,
        label=f"{label}: choice among {pool.size} grids",
    )
    grid = pool.grid(index)
    shape = (coding.classes.size, *(coding.taxonomies[j].sizes[level] for j, level in grid))
    noisy = meter.laplace(
        weighted.map(lambda w: w.table(grid).reshape(-1)),
        rate=count_unit,
        weights=limits,
        label=f"{label}: weights per cell",
    ).reshape(shape)
    record = units * weighing.average / weighing.top
    return Term(
        grid,
        cell_scores(noisy, noise=NANO / count_unit, prior=settings.prior),
        np.maximum(noisy, 0).sum(axis=0) / record,
        NANO / count_unit / record,
    )


def cell_scores(noisy: NDArray[np.int64], *, noise: float, prior: float) -> Floats:
    """Log-odds per cell, drawn towards what the columns say one at a time where the noise drowns the cell.

    A cell's prior is worth `prior` units of the `noise` per class and has the class shares of `main_effects`; a grid of one
    column has the overall shares instead.
    """
    classes = len(noisy)
    held = np.maximum(noisy, 0).astype(np.float64)
    if noisy.ndim > 2:
        share = main_effects(held / noise)
    else:
        totals = held.reshape(classes, -1).sum(axis=1) + noise
        share = np.broadcast_to((totals / totals.sum()).reshape(-1, *([1] * (noisy.ndim - 1))), noisy.shape)
    logs = np.log(held + prior * noise * classes * np.maximum(share, 1e-9))
    return np.asarray(logs - logs.mean(axis=0, keepdims=True))


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateAdditive(CountingClassifier):
    """An additive model over binned columns, for publication: accurate, and every part of it can be drawn.

    Parameters
    ----------
    epsilon, schema, target, classes, source, ledger, dataset, tiers
        See `PrivateClassifier` and `CountingClassifier`.
    rounds : int or "auto"
        Number of terms; by default from ε and the number of records.
    columns_per_term : int or "auto"
        The largest number of columns in a term; 1 gives plain shape functions.
    candidates : int or "auto"
        The largest number of grids to choose among.
    rows : int, optional
        A public number of records. Without it the class counts, which get a fiftieth of ε, tell it.
    cap : float
        Largest weight of a record once there is a model: records that the model gets badly wrong do not rule the next term.

    Examples
    --------
    >>> from sfumato.privacy import Seeded
    >>> from sfumato.tables import Categorical, Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 80, bins=8), "sex": Categorical(["F", "M"]), "ill": Categorical(["no", "yes"])})
    >>> age = np.arange(4000) % 80
    >>> X = np.column_stack([age, np.where(age % 3, "F", "M")]).astype(object)
    >>> model = PrivateAdditive(epsilon=1, schema=schema, target="ill", source=Seeded(1))
    >>> model.fit(X, np.where(age < 40, "no", "yes")).score(X, np.where(age < 40, "no", "yes"))
    1.0
    >>> model.guarantee_.epsilon <= 1, model.describe()[0].split(" x ")[0].startswith("age")
    (True, True)
    """

    rounds: int | str = "auto"
    columns_per_term: int | str = "auto"
    candidates: int | str = "auto"
    rows: int | None = None
    cap: float = 0.5

    def _train(self, records: Exact[Records], meter: Meter) -> None:
        nano, rows, mixed = class_step(records, meter, nano=self._budget(meter), rows=self.rows, weighing=self._weighing)
        self._boost(records, meter, nano=nano, rows=rows, mixed=mixed)

    def _boost(self, records: Exact[Records], meter: Meter, *, nano: Nano, rows: int, mixed: bool) -> None:
        lift = self._weighing.lift
        self.settings_ = automatic(
            nano * lift / NANO,
            round(rows / lift),
            mixed=mixed,
            rounds=self.rounds,
            columns=self.columns_per_term,
            candidates=self.candidates,
            cap=self.cap,
        )
        self.terms_ = boost(
            records, meter, coding=self._coding, nano=nano, rows=rows, settings=self.settings_, weighing=self._weighing
        )

    def _scores(self, leaves: NDArray[np.int32]) -> Floats:
        return model_scores(self.terms_, leaves, self._coding.taxonomies, self.classes_.size)

    def describe(self) -> list[str]:
        """Each term in words."""
        return [_words(term, self._coding.taxonomies) for term in self.terms_]

    def shape(self, column: str) -> Floats:
        """What the model says about one `column`: scores per class and leaf, averaged over the other columns of a term."""
        names = self._coding.names
        if column not in names:
            raise InputError(f"the model has no column {column!r}; it has {', '.join(names)}")
        j = names.index(column)
        return shape_function(self.terms_, self._coding.taxonomies, j, self.classes_.size)

    def plot(self, ax: Any = None, *, column: str | None = None) -> Any:
        """Draw the shape function of one `column` on `ax`; without both, small pictures of the columns that matter most."""
        from sfumato.classifiers.counting.additive_plot import plot_column, plot_columns

        return plot_columns(self) if column is None and ax is None else plot_column(self, column, ax)


def class_step(
    records: Exact[Records], meter: Meter, *, nano: Nano, rows: int | None, weighing: Weighing = ALIKE
) -> tuple[Nano, int, bool]:
    """What is left of the budget, the weight of all records, and if the classes are mixed, for a fiftieth of ε.

    A record is in one class, so noise of rate r on the class counts loses r per unit of weight.
    """
    part = max(1, nano // CLASS_PART)
    noisy = meter.laplace(records.map(lambda r: r.table(())), rate=part, weights=weighing.groups, label="class counts")
    rows = rows if weighing.total is None else weighing.total
    size = max(1, int(noisy.sum())) if rows is None else int(rows)
    if size < 1:
        raise InputError(f"a public number of records must be positive, got {rows}")
    return Nano(nano - part), size, are_mixed(size - float(noisy.max()), size, (nano - part) / NANO)


def boost(
    records: Exact[Records],
    meter: Meter,
    *,
    coding: Coding,
    nano: Nano,
    rows: int,
    settings: AdditiveSettings,
    weighing: Weighing = ALIKE,
) -> tuple[Term, ...]:
    """All rounds, for a budget per unit of weight and records of the weight `rows`. Pools depend on public facts only."""
    terms: list[Term] = []
    # Before the first term every record has the weight one over the number of classes: with that as the cap, a full unit.
    even = replace(settings, cap=1.0 / coding.classes.size)
    scores = records.map(lambda r: np.zeros((len(r.classes), coding.classes.size)))
    for number, share in enumerate(settings.shares()):
        part = Nano(int(nano * share))
        pool = enumerate_grids(
            coding.taxonomies,
            most=settings.candidates,
            cells=settings.most_cells(round(rows / weighing.lift), part * weighing.lift / NANO),
            widest=settings.widest(number),
        )
        used, label = settings if number else even, f"term {number + 1}"
        made = partial(add_term, records, scores, meter, coding=coding, pool=pool, nano=part)
        term = made(settings=used, label=label, weighing=weighing)
        if number:
            term = replace(term, scores=term.scores * settings.damp)
        terms.append(term)
        scores = scores.zip(records).map(partial(_with_term, term))
    return tuple(terms)


def _with_term(term: Term, both: tuple[Floats, Records]) -> Floats:
    """The model's scores at the records, and those of one more term."""
    scores, records = both
    return np.asarray(scores + term.at(records.leaves, records.taxonomies))


def model_scores(terms: tuple[Term, ...], leaves: Any, taxonomies: tuple[Levels, ...], classes: int) -> Floats:
    """Sum of the terms at some rows."""
    total = np.zeros((len(leaves), classes))
    for term in terms:
        total += term.at(leaves, taxonomies)
    return total


def shape_function(terms: tuple[Term, ...], taxonomies: tuple[Levels, ...], column: int, classes: int) -> Floats:
    """Sum over the terms that use a column of its scores, averaged over the other columns by noisy mass."""
    total = np.zeros((classes, taxonomies[column].leaves))
    for term in terms:
        for axis, (j, level) in enumerate(term.grid):
            if j == column:
                others = tuple(a for a in range(len(term.grid)) if a != axis)
                mass = term.mass + term.noise
                mean = (term.scores * mass).sum(axis=tuple(a + 1 for a in others)) / mass.sum(axis=others)
                total += mean[:, taxonomies[j].maps[level]]
    return total


def _words(term: Term, taxonomies: tuple[Levels, ...]) -> str:
    return " x ".join(f"{taxonomies[j].name} ({taxonomies[j].sizes[level]})" for j, level in term.grid) or "class shares"
