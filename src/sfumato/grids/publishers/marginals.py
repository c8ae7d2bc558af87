"""PrivMarginals: counts of columns, of pairs and triples that matter, and one distribution fitted to them.

For tables where all columns count alike. The plan is that of MST and AIM (McKenna, Miklau & Sheldon 2021; McKenna, Mullins,
Sheldon & Miklau 2022), which need δ: Gaussian noise for many measurements. In pure ε a measurement more costs the others its
whole share, so here are fewer of them, and each is as coarse as its noise asks for:

1. Every column is counted by itself. Its noisy counts say which values are too rare to be told apart together with others;
   those are merged (`groups`), and in steps merged further.
2. Pairs at some step of their groups tie all columns together, chosen by what independence misses (`choosing.forest`).
3. One distribution is fitted to all that was counted (`graphical`). Where records and ε allow, pairs and triples that it
   misses are counted as well, some at a time, with a new fit after each round (`choosing.refined`).
4. What a round left because nothing was worth counting counts the chosen tables again (the columns, if there are none).

**Guarantee.** ε-differential privacy against the absence of a person. Let a record have weight w (1, or the weight of its
person's group), and price every step per unit of weight:

1. A record is in one cell of every table: noise of rate r on its counts loses ``w r``.
2. Groups, models and penalties follow from what was published before. So the score of a candidate, ``Σ (n - m)⁺`` less a
   public penalty, moves under the record by an amount in [0, w], whatever the candidate: the spread is w (`pairs`), and a
   choice at rate η loses ``w η``.
3. How many choices, their rates and the rates of the noise follow from the budget and from published counts; all rates of a
   run together are at most ``ε / (f w)`` for the largest w, f the rows that a person may own (twice that against
   replacement).
4. Steps in sequence add up; the Meter adds them for every group of people, and weights in proportion to what people granted
   keep everybody within it. Fit, drawn rows and classifiers are post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import comb, isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grids.graphical import Fitted, Marginal, fit
from sfumato.grids.published.joint import Joint, Measured, leaf_shares
from sfumato.grids.published.joint_classifier import JointClassifier
from sfumato.grids.published.network import whole_columns
from sfumato.grids.publishers.base import Publisher, noise_of
from sfumato.grids.publishers.choosing import TYPICAL, Chooser, as_marginals, forest, refined, sets_beside
from sfumato.grids.publishers.one_grid import TOO_SMALL, Weights
from sfumato.grids.publishers.privpfc import PERSONAL_WARNING
from sfumato.grids.publishers.target_pairs import affordable, with_target
from sfumato.grids.publishers.task import Task
from sfumato.grids.search.groups import MOST_GROUPS, Groups, groups_of
from sfumato.grids.search.pairs import pairs_of
from sfumato.privacy.exact import Exact
from sfumato.privacy.meter import Meter
from sfumato.privacy.units import NANO, Nano
from sfumato.records.levels import Levels
from sfumato.records.records import Records, weighted_bincount
from sfumato.registry import Mechanism, Parameter

MOST_PAIRS = 40_000
_MOST_COUNTS = 1 << 24  # of all pairs together, at their finest groups
CLEAR = 3.0  # a group has at least so many standard deviations of its column's noise
_LEAST = 1000  # nano-ε per unit and column: with less, shares round to nothing
_MOST_ROUNDS = 6
_WORTH = 50  # one part in this many of the budget is worth counting again


@dataclass(kw_only=True, eq=False)
class PrivMarginals(Publisher):
    """Publish a general table: noisy marginals and one distribution over all columns.

    Parameters
    ----------
    target : str
        The column to be predicted; its values are never merged.
    epsilon : Epsilon, optional
        The budget of the whole release; left out if `budgets` says what everybody granted.
    budgets : PersonBudgets, optional
        What everybody granted; the table must carry the roster.
    ones : float or "auto"
        Share of the budget for the columns by themselves; "auto" follows the number of records times ε.
    select : float
        Share of the rest for choosing what is counted together.
    contrast : float or "auto"
        Share of the rest for columns together with the target; "auto" follows the records of the rarer classes times ε.
    rows : int, optional
        A public number of records; without it 1% of the budget estimates it.
    attributes : tuple of str, optional
        The other columns; by default all.

    Attributes
    ----------
    synopsis : Joint
        The release, once `fit` has made it.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from sfumato.privacy import Seeded
    >>> from sfumato.tables import Categorical, Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 80, bins=8), "sex": Categorical(["F", "M"]), "ill": Categorical(["no", "yes"])})
    >>> age = np.arange(4000) % 80
    >>> table = pd.DataFrame({"age": age, "sex": np.where(age % 3, "F", "M"), "ill": np.where(age < 40, "no", "yes")})
    >>> made = PrivMarginals(epsilon=1, target="ill", rows=4000).fit(table, schema=schema, source=Seeded(1))
    >>> drawn = made.sample(4000)
    >>> bool(((drawn["age"] < 40) == (drawn["ill"] == "no")).mean() > 0.9)
    True
    """

    mechanism = "marginals"
    personal = True

    ones: float | str = "auto"
    select: float = 0.3
    contrast: float | str = "auto"
    synopsis: Joint = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        ones = 0.5 if self.ones == "auto" else self.ones
        contrast = 0.0 if self.contrast == "auto" else self.contrast
        given = isinstance(ones, float) and 0 < ones < 1 and isinstance(contrast, float | int) and 0 <= contrast < 1
        if not (given and 0 < self.select < 1):
            raise InputError("PrivMarginals needs shares `ones`, `select` and `contrast` between 0 and 1, or 'auto'")

    def expected(self, task: Task, factor: int = 1) -> tuple[float | None, str]:
        pairs = comb(len(task.attributes) + 1, 2)
        if pairs > MOST_PAIRS:
            raise InputError(
                f"a table of {len(task.attributes) + 1} columns has {pairs:,} pairs; at most {MOST_PAIRS:,} are counted: "
                "name fewer `attributes`"
            )
        weights = Weights.of(self.budgets)
        unit = self._unit(task, factor, weights)
        ties = max(len(task.attributes), 1)
        ones = self._ones_share(unit, float(self.rows or TYPICAL * NANO // unit), ties + 1)
        rate = max(1, int(unit * (1 - ones) * (1 - self.select)) // ties)
        return noise_of(rate, weights.average), f" (error of each count if {ties} pairs are counted; it chooses how many)"

    def _unit(self, task: Task, factor: int, weights: Weights) -> Nano:
        """What all steps may cost a unit of weight; refused where a step would come to nothing."""
        unit = weights.usable(self._budget(factor))
        shares = [self.select, 1 - self.select] + ([self.ones, 1 - self.ones] if isinstance(self.ones, float) else [])
        if unit * min(shares) < _LEAST * (len(task.attributes) + 1):
            raise InputError(TOO_SMALL)
        return unit

    def _ones_share(self, unit: Nano, size: float, columns: int) -> float:
        """What the columns by themselves get.

        Errors of a column are in every table that holds it, those of a pair in few: that speaks for the columns. But the
        more records stand above the noise, ``x = N ε / (columns c₀)`` of them in a typical cell, the more tables are
        counted (like √x) and the finer: the share falls slowly, from a half where x = 8 to a quarter where it is 600.
        """
        if isinstance(self.ones, float):
            return self.ones
        return float(np.clip(1 / (1 + (size * unit / NANO / (columns * TYPICAL) / 8) ** 0.25), 0.15, 0.7))

    def release(self, records: Exact[Records], task: Task, meter: Meter, *, weights: Weights | None = None) -> Joint:
        """The release of `task` from `records`, through `meter`; `weights` are those of the records."""
        weigh = weights or Weights.of(self.budgets)
        unit = self._unit(task, meter.terms.factor, weigh)
        columns = whole_columns(task.taxonomies, self.target, task.target_domain)
        known, left = self._known_size(records, meter, unit, weigh)
        share = self._ones_share(unit, known.noisy[0], len(columns))
        ones = self._count_columns(records, columns, meter, Nano(int(left * share)), weigh)
        size = float(known.noisy[0]) if left == unit else self._total([known, *ones])
        groups = self._groups(ones, columns, size)
        chooser = Chooser(records, groups, meter, weigh.groups)
        left = Nano(left - sum(one.rate for one in ones))
        model = _Model(groups, [_in_groups(o, g) for o, g in zip(ones, groups, strict=True)], size)
        tables, fitted, figures = self._tie(chooser, model, left)
        return Joint(
            ones=tuple(ones),
            tables=tuple(tables),
            groups=tuple(g.finest for g in groups),
            fitted=fitted,
            rate=min((m.rate for m in tables), default=min(o.rate for o in ones)),
            attributes=task.attributes,
            target=self.target,
            target_domain=task.target_domain,
            guarantee=meter.guarantee(),
            random=meter.post_processing,
            size=size,
            unit=weigh.average,
            parameters={
                "ones": round(share, 4),
                "select": self.select,
                "public_rows": self.rows,
                **figures,
            },
            mechanism=self.mechanism,
            warnings=() if self.budgets is None else (PERSONAL_WARNING,),
        )

    def _known_size(self, records: Exact[Records], meter: Meter, unit: Nano, weights: Weights) -> tuple[Measured, Nano]:
        """The weight of all records, public or for 1% of the budget, and what is left."""
        if self.rows is not None and self.budgets is None:
            return Measured((), (), np.array([self.rows]), NANO), unit
        rate = max(1, unit // 100)
        noisy = meter.laplace(records.map(lambda r: [r.total]), rate=rate, weights=weights.groups, label="number of records")
        return Measured((), (), np.maximum(noisy, 1), rate), Nano(unit - rate)

    def _count_columns(
        self, records: Exact[Records], columns: Sequence[Levels], meter: Meter, budget: Nano, weights: Weights
    ) -> list[Measured]:
        """Every column by itself; a column of k values gets a share in proportion to √k, which is best for the sum."""
        roots = np.sqrt([c.leaves for c in columns])
        found = []
        for j, levels in enumerate(columns):
            rate = max(1, int(budget * roots[j] / roots.sum()))
            noisy = meter.laplace(
                records.map(partial(_column_counts, column=j, leaves=levels.leaves)),
                rate=rate,
                weights=weights.groups,
                label=f"counts of {levels.name}",
            )
            found.append(Measured((j,), (np.arange(levels.leaves),), noisy, rate))
        return found

    def _total(self, ones: Sequence[Measured]) -> float:
        """The weight of all records: every column's counts add up to it."""
        precision = np.array([1.0 / (o.noisy.size * o.sigma**2) for o in ones])
        totals = np.array([float(o.noisy.sum()) for o in ones])
        return max(1.0, float(precision @ totals / precision.sum()))

    def _groups(self, ones: Sequence[Measured], columns: Sequence[Levels], size: float) -> list[Groups]:
        """Groups of clear counts; the target keeps all its values. Very many columns get fewer groups each."""
        most = max(2, min(MOST_GROUPS, isqrt(_MOST_COUNTS // max(comb(len(columns), 2), 1))))
        found = []
        for one, levels in zip(ones, columns, strict=True):
            least = 1.0 if levels is columns[-1] else CLEAR * one.sigma
            found.append(groups_of(size * leaf_shares(one, levels, size), levels, least=least, most=most))
        return found

    def _tie(self, chooser: Chooser, model: _Model, left: Nano) -> tuple[list[Measured], Fitted, dict[str, Any]]:
        """Pairs and triples: chosen, counted and fitted.

        With T pairs for a tree, ``x = N E / (T c₀)`` is how far the count of a typical cell would stand above its noise. The
        sum of what noise adds and what unmeasured pairs hide is least for a number of tables that grows like √x. So √x / 8
        times as many follow as the tree has, at most three times, with as large a share each; "nothing" may end it sooner.
        """
        pairs = pairs_of(model.groups)
        ties = max(len({j for pair in pairs for j in pair}) - 1, 1)
        strength = model.size * left / NANO / (ties * TYPICAL)
        more = min(round(ties * np.sqrt(strength) / 8), 3 * ties)
        rounds = min(max(1, round(2 * more / ties)), _MOST_ROUNDS) if more and pairs else 0
        share, many = affordable(model.rarer, left / NANO, len(model.groups))
        share = share if self.contrast == "auto" else float(self.contrast)
        contrast = Nano(int(left * share)) if len(pairs) > 1 else Nano(0)
        later = Nano((left - contrast) * more // (ties + more))
        first = Nano(left - contrast - later)
        tables, spent = forest(chooser, pairs, model.independent, first, self.select)
        later = Nano(later + first - spent)
        fitted = model.fit(tables)
        if contrast:
            target = [p for p in pairs if p[1] == len(model.groups) - 1]
            # Of few cells each, they are cheap to count; what is hard at small ε is to choose them.
            select = min(1.5 * self.select, 0.5)
            tables, fitted, unspent = with_target(
                chooser, target, tables, fitted, model.fit, budget=contrast, select=select, many=min(many, len(target))
            )
            later = Nano(later + unspent)
        for number in range(rounds):
            have = [m.columns for m in tables]
            found, spent = refined(
                chooser,
                sets_beside(pairs, have),
                fitted,
                have,
                budget=Nano(later // (rounds - number)),
                select=self.select,
                many=max(1, more // rounds),
            )
            later = Nano(later - spent)
            if found:
                tables = [*tables, *found]
                fitted = model.fit(tables, fitted)
        if later * _WORTH > left:
            tables = [*tables, *chooser.again(tables, later)]
            fitted = model.fit(tables, fitted)
        return tables, fitted, {"contrast": round(share, 4), "tree": ties, "further": more, "rounds": rounds}

    def classifier(self, estimator: Any = None) -> JointClassifier:
        """A classifier trained on drawn rows; see `Joint.classifier` for `estimator`."""
        return self.synopsis.classifier(estimator)


@dataclass(frozen=True, eq=False)
class _Model:
    """What is known of the columns by themselves, and fits that start from it."""

    groups: Sequence[Groups]
    ones: Sequence[Marginal]
    size: float

    @property
    def rarer(self) -> float:
        """Records outside the target's most frequent class, by its noisy counts."""
        return self.size - float(self.ones[-1].counts.max())

    @cached_property
    def _alone(self) -> Fitted:
        return self.fit([])

    def independent(self, pair: tuple[int, ...]) -> NDArray[np.float64]:
        """Counts of a pair of columns that have nothing to do with each other."""
        a, b = (self._alone.marginal((j,)) for j in pair)
        return np.asarray(np.outer(a, b) / self._alone.total)

    def fit(self, tables: Sequence[Measured], start: Fitted | None = None) -> Fitted:
        sizes = [g.count for g in self.groups]
        return fit(sizes, [*self.ones, *as_marginals(tables, self.groups)], total=self.size, start=start)


def _in_groups(one: Measured, groups: Groups) -> Marginal:
    """A column's counts in its finest groups. Groups of several values are noisier than others: the mean stands for all."""
    counts = np.bincount(groups.finest, one.noisy, minlength=groups.count).astype(np.float64)
    return Marginal(one.columns, counts, one.sigma * float(np.sqrt(one.noisy.size / groups.count)))


def _column_counts(records: Records, column: int, leaves: int) -> NDArray[np.int64]:
    values = records.classes if column == len(records.taxonomies) else records.leaves[:, column]
    return weighted_bincount(values, records.weights, leaves)


MECHANISM = Mechanism(
    "marginals",
    ("synthesize",),
    PrivMarginals,
    "columns, pairs and triples that matter, and one distribution fitted to them: all columns alike",
    parameters=(
        Parameter("ones", "any", "share of ε for the columns by themselves: a number or 'auto'", "auto"),
        Parameter("select", "number", "share of the rest for choosing what is counted together", 0.3, low=0.01, high=0.9),
        Parameter("contrast", "any", "share of the rest for columns together with the target: a number or 'auto'", "auto"),
    ),
    rank={"classification": 5, "general": 1},
    paper="after McKenna, Miklau & Sheldon 2021, in pure ε",
)
