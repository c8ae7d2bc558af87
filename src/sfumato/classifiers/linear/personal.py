"""Training with personal budgets: five ways from a public roster to one linear model.

- *weighted*: one fit; person u's loss enters with weight w_u, where ``moves w β + ln(1 + c w/λ) = min(ε_u, r)``. Everybody
  at their own ε, one noise. The cap r solves ``Σ_{ε<r} ε (r - ε) = 4 d (d+1)/G²`` (as for counts: beyond it the
  imbalance costs more than the noise it saves), G² = 1/4. `tiers` may lower it where budgets go with the records
  (`proportion`).
- *minimum*, *threshold*, *sampling*: one fit at one ε for everybody, for people above t, for a sample with threshold t.
- *partition*: a model per part at the part's smallest budget, averaged by precision (or voting).

Guarantee: weights and samples are priced by the Meter per budget level; in a part only its own people have weight. The
roster is public, row by row; what is absent is what a person's row says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.classifiers.linear.objective import Calibration, calibrate, minimise
from sfumato.classifiers.linear.proportion import Lean, Tiers, evened, lowered, most_often
from sfumato.errors import InputError
from sfumato.people.mechanisms.affine import optimal_cap
from sfumato.people.mechanisms.sampling import keep_thresholds
from sfumato.people.partition import erm_precision, privacy_aware, round_down, utility_based
from sfumato.privacy import NANO, Exact, Meter, Nano, NanoArray, PersonBudgets
from sfumato.privacy.objective import Floats, LossKind, Objective
from sfumato.privacy.units import epsilon_text

GRADIENT = 0.25  # public guess of the mean squared gradient of a record
PERSONAL = ("weighted", "minimum", "threshold", "sampling", "partition")
_MOST_CELLS = 2_000_000


@dataclass(frozen=True, eq=False)
class Training:
    """What every mechanism gets: private rows ``y x`` with ‖x‖ <= 1, and the public level of each row in the roster."""

    kind: LossKind
    signed: Exact[Any]  # an array, or a sparse matrix of rows with ‖x‖₁ <= length
    dimension: int
    groups: NDArray[np.int64] | Exact[NDArray[np.int64]]  # private where rows come from a table that carries its roster
    budgets: PersonBudgets
    regularization: float
    split: int = 1  # one-vs-rest fits share a budget
    length: float = np.inf
    tiers: Tiers = "as granted"

    @property
    def levels(self) -> NanoArray:
        return np.asarray(self.budgets.levels // self.split)

    @property
    def people(self) -> int:
        """Public number of rows."""
        return self.budgets.people if isinstance(self.groups, Exact) else int(self.groups.size)

    @property
    def members(self) -> Exact[tuple[Any, NDArray[np.int64]]]:
        """The rows, and the level of each in the roster."""
        groups = self.groups
        return self.signed.zip(groups) if isinstance(groups, Exact) else self.signed.map(lambda z: (z, groups))

    @property
    def largest(self) -> int:
        """Public number of rows of the largest group."""
        heads = self.budgets.counts if isinstance(self.groups, Exact) else np.bincount(self.groups)
        return int(heads.max())

    def calibrated(self, nano: Nano, meter: Meter) -> Calibration:
        return calibrate(
            nano,
            kind=self.kind,
            dimension=self.dimension,
            moves=2 if meter.neighbours == "replacement" else 1,
            regularization=self.regularization,
            length=self.length,
            rows=self.people,
        )


@dataclass(frozen=True, eq=False)
class Fitted:
    """Models (one row each), their weights in the ensemble, and public parameters."""

    models: Floats
    weights: Floats
    parameters: dict[str, Any] = field(default_factory=dict)


def train(t: Training, meter: Meter, *, mechanism: str, threshold: Nano | None, parts: int | None) -> Fitted:
    """Fit by the named mechanism."""
    if mechanism != "weighted" and np.isfinite(most_often(t.tiers)):
        raise InputError(f"tiers={t.tiers!r} is about the weights of mechanism='weighted', not {mechanism!r}")
    if mechanism == "weighted":
        return _weighted(t, meter)
    if mechanism == "minimum":
        return _above(t, meter, Nano(int(t.levels[t.budgets.counts > 0].min())))
    if mechanism == "threshold":
        return _above(t, meter, _best_threshold(t) if threshold is None else threshold)
    if mechanism == "sampling":
        return _sampling(t, meter, Nano(int(t.levels[-1])) if threshold is None else threshold)
    if mechanism == "partition":
        return _partition(t, meter, parts)
    raise InputError(f"unknown mechanism {mechanism!r}; known: {', '.join(PERSONAL)}")


def _fit(
    t: Training, meter: Meter, at: Calibration, per_group: Floats, label: str, kept: NDArray[np.bool_] | None = None
) -> Floats:
    """The model of everybody, or of those whose group is `kept`."""

    def objective(members: tuple[Any, NDArray[np.int64]]) -> Objective:
        signed, groups = members
        if kept is not None:
            rows = np.flatnonzero(kept[groups])
            signed, groups = signed[rows], groups[rows]
        return Objective(t.kind, signed, per_group[groups], at.penalty)

    return meter.optimum(t.members.map(objective), minimise, by=at.by, weights=per_group, label=label)


def cap_for(budgets: PersonBudgets, dimension: int) -> Nano:
    """The cap r of the weighted fit, in nano-ε."""
    cap = optimal_cap(budgets, variance=GRADIENT / (2 * dimension * (dimension + 1)))
    return min(cap, Nano(int(budgets.levels[-1])))


def weights_of(t: Training, meter: Meter) -> tuple[Calibration, Floats, dict[str, Any]]:
    """Noise and penalty of the weighted fit, the weight of each person group, and what of it is public to say."""
    granted = Nano(max(1, cap_for(t.budgets, t.dimension) // t.split))
    cap = lowered(granted, t.levels[t.budgets.counts > 0], t.tiers)
    at = t.calibrated(cap, meter)
    weights = evened(at.weights(np.minimum(t.levels, cap)), t.tiers)
    found = Lean.of(t.budgets, Nano(cap * t.split), Nano(granted * t.split))
    about = {"cap": epsilon_text(cap), "penalty": at.penalty, "lean": found.lean, "noise": found.noise}
    return at, weights, about


def _weighted(t: Training, meter: Meter) -> Fitted:
    at, weights, about = weights_of(t, meter)
    model = _fit(t, meter, at, weights, "weighted objective")
    return Fitted(model[None, :], np.ones(1), about)


def _above(t: Training, meter: Meter, level: Nano) -> Fitted:
    kept = t.levels >= level
    if not t.budgets.counts[kept].sum():
        raise InputError(f"nobody grants ε {epsilon_text(level)}; choose a smaller threshold")
    at = t.calibrated(level, meter)
    model = _fit(t, meter, at, kept.astype(np.float64), "objective perturbation", kept)
    return Fitted(model[None, :], np.ones(1), {"threshold": epsilon_text(level), "penalty": at.penalty})


def _best_threshold(t: Training) -> Nano:
    kept = t.budgets.counts[::-1].cumsum()[::-1].astype(np.float64)
    usable = (kept > 0) & (t.levels > 0)
    error = np.full(t.levels.size, np.inf)
    error[usable] = 1 / erm_precision(t.dimension, gradient=GRADIENT)(kept[usable], t.levels[usable] / NANO)
    return Nano(int(t.levels[int(np.argmin(error))]))


def _sampling(t: Training, meter: Meter, level: Nano) -> Fitted:
    at = t.calibrated(level, meter)
    loss = int(at.loss(np.ones(1))[0])
    thresholds = keep_thresholds(t.levels, loss)
    groups, largest = t.budgets.groups, t.largest
    if largest * groups > _MOST_CELLS:
        raise InputError(
            "sampling draws record by record; round the budgets down to fewer different values, or choose another mechanism"
        )

    def cells(members: tuple[Any, NDArray[np.int64]]) -> NDArray[np.int64]:
        # One cell per record: column = level, row = place among the records of that level; a public shape.
        heads = np.bincount(members[1], minlength=groups)
        return (np.arange(largest)[:, None] < heads[None, :]).astype(np.int64)

    def of_sample(both: tuple[tuple[Any, NDArray[np.int64]], NDArray[np.int64]]) -> Objective:
        (signed, level), drawn = both
        place = _places(level)
        chosen = np.zeros(level.size, dtype=bool)
        there = place < largest
        chosen[there] = drawn[place[there], level[there]] > 0
        rows = np.flatnonzero(chosen)
        return Objective(t.kind, signed[rows], np.ones(rows.size), at.penalty)

    with meter.sampled(thresholds) as sample:
        objective = t.members.zip(sample(t.members.map(cells))).map(of_sample)
        everybody = np.ones(groups)
        label = "objective perturbation on a sample"
        model = meter.optimum(objective, minimise, by=at.by, weights=everybody, label=label)
    size = float(np.dot(t.budgets.counts, thresholds / 2.0**63))
    return Fitted(model[None, :], np.ones(1), {"threshold": epsilon_text(level), "expected_sample": round(size)})


def _places(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of the same group came before each.

    >>> _places(np.array([1, 0, 1, 1])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(groups, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(groups))])
    place = np.empty(groups.size, dtype=np.int64)
    place[order] = np.arange(groups.size) - starts[groups[order]]
    return place


def _partition(t: Training, meter: Meter, parts: int | None) -> Fitted:
    precision = erm_precision(t.dimension, gradient=GRADIENT)
    roster, coarse = round_down(t.budgets, decimals=3 if parts is None else 4)
    cut = utility_based(roster, precision) if parts is None else privacy_aware(roster, parts=min(parts, roster.groups))
    part = cut.part_of[coarse]
    models, weights = [], []
    for i in range(cut.parts):
        level = Nano(int(cut.levels[i]) // t.split)
        at = t.calibrated(level, meter)
        # Everybody outside the part has weight 0, so the Meter charges them nothing.
        models.append(_fit(t, meter, at, (part == i).astype(np.float64), f"part {i + 1}", part == i))
        weights.append(float(precision(np.array([float(cut.sizes[i])]), np.array([level / NANO]))[0]))
    share = np.array(weights) / sum(weights)
    described = {"parts": cut.parts, "part_people": cut.sizes.tolist(), "part_epsilons": cut.epsilons.tolist()}
    return Fitted(np.array(models), share, described)
