"""An additive model in few, large, private steps: `PrivateAdditive`.

The model is a sum of *terms*. A term looks at one to four columns at some level of their taxonomies (a grid, as in PrivPfC:
Su et al. 2018) and gives each cell one number per class; the class with the largest sum is predicted. Averaged over the
other columns of their terms, they are the shape functions that people plot. It is boosting, but with as few rounds as the
budget carries (three at ε = 0.05, seven at ε = 1, for tens of thousands of records: `additive_settings`), because under
pure ε every round costs its full share.

A round, with p the probabilities of the model so far (a public function, since the model was released):

1. A record (x, y) gets the weight ``w = min(cap, p₁ p₂ / p_y)``, p₁ >= p₂ being the two largest probabilities at x. For two
   classes this is 1 - p_y: what the model already knows weighs nothing. Weights are integers, at most `UNIT`.
2. Among public candidate grids one is chosen by the expected weight that its noisy cells classify correctly
   (`grids.quality`). For the first term, where the model knows nothing yet, records of a class that has nearly everything
   weigh less in this choice, though not in the counts: `additive_settings.heed_for`.
3. The chosen grid's weight per cell and class is counted with noise, W; the term is ``log(W + prior)``. Where p is constant
   in a cell and n_y records of class y lie in it, ``W_y ∝ n_y / p_y``, so model plus term are exactly ``log n_y``.

**Guarantee.** ε-differential privacy against the absence of a record.

- A record is in one class: the class counts, by which the shares of the rounds are chosen, lose their rate ε/50.
- Weights are a function of the record and of the published model; one record adds w <= UNIT units to one coordinate of W,
  so noise of rate r per unit loses at most UNIT r.
- A record of weight w moves the score of *every* grid by an amount in [w low, w high] (`grids.quality`), low <= 0 <= high,
  so the spread of the changes is at most UNIT (high - low): that is what `Meter.choose` is told. The first choice may lower
  w by a factor that hangs on the record's class and the published class counts alone: w stays at most UNIT.
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
from sfumato.classifiers.counting.additive_settings import AdditiveSettings, automatic
from sfumato.classifiers.counting.lattice import Lattice
from sfumato.classifiers.counting.terms import Term, cell_scores, heeded, model_scores, shape_function, weighed, words
from sfumato.classifiers.weighing import ALIKE, Weighing
from sfumato.errors import InputError
from sfumato.grids.publishers.stacking import CLASS_PART
from sfumato.grids.search.pool import Pool, enumerate_grids
from sfumato.grids.search.quality import Quality
from sfumato.grids.search.scoring import score_pool
from sfumato.privacy import NANO, Exact, Meter, Nano
from sfumato.privacy.losses import choice_rate
from sfumato.records.coding import Coding
from sfumato.records.records import Records


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
        weighted.map(lambda w: score_pool(heeded(w, settings.common, settings.heed), pool, quality)),
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
        nano, rows, shares = class_step(records, meter, nano=self._budget(meter), rows=self.rows, weighing=self._weighing)
        self._plan(nano, rows, shares)
        self._boost(records, meter, nano=nano, rows=rows)

    def _plan(self, nano: Nano, rows: int, shares: Floats) -> None:
        """The settings, from public facts and the noisy shares of the classes."""
        lift = self._weighing.lift
        found = automatic(
            nano * lift / NANO,
            round(rows / lift),
            rarer=float(np.clip(1.0 - shares.max(), 0.0, 1.0)),
            rounds=self.rounds,
            columns=self.columns_per_term,
            candidates=self.candidates,
            cap=self.cap,
        )
        self.settings_ = replace(found, common=int(shares.argmax()))

    def _boost(self, records: Exact[Records], meter: Meter, *, nano: Nano, rows: int) -> None:
        self.terms_ = boost(
            records, meter, coding=self._coding, nano=nano, rows=rows, settings=self.settings_, weighing=self._weighing
        )

    def _scores(self, leaves: NDArray[np.int32]) -> Floats:
        return model_scores(self.terms_, leaves, self._coding.taxonomies, self.classes_.size)

    def describe(self) -> list[str]:
        """Each term in words."""
        return [words(term, self._coding.taxonomies) for term in self.terms_]

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
) -> tuple[Nano, int, Floats]:
    """What is left of the budget, the weight of all records, and the noisy share of each class in it.

    For a fiftieth of ε.

    A record is in one class, so noise of rate r on the class counts loses r per unit of weight.
    """
    part = max(1, nano // CLASS_PART)
    noisy = meter.laplace(records.map(lambda r: r.table(())), rate=part, weights=weighing.groups, label="class counts")
    rows = rows if weighing.total is None else weighing.total
    size = max(1, int(noisy.sum())) if rows is None else int(rows)
    if size < 1:
        raise InputError(f"a public number of records must be positive, got {rows}")
    return Nano(nano - part), size, np.asarray(noisy / size)


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
    even, later = replace(settings, cap=1.0 / coding.classes.size), replace(settings, heed=1.0)
    scores = records.map(lambda r: np.zeros((len(r.classes), coding.classes.size)))
    for number, share in enumerate(settings.shares()):
        part = Nano(int(nano * share))
        pool = enumerate_grids(
            coding.taxonomies,
            most=settings.candidates,
            cells=settings.most_cells(round(rows / weighing.lift), part * weighing.lift / NANO),
            widest=settings.widest(number),
        )
        used, label = later if number else even, f"term {number + 1}"
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
