"""An experiment: contrast marginals, a few pairs of columns with the class, joined at maximum entropy.

Three rounds. Each chooses a grid of at most two columns by the score of PrivPfC on *reweighted* records, counts it with
noise, and refits the model of `grids_contrast_model`. A record of class c weighs ``min_k p(k | row) / p(c | row)`` under
the model so far: then every row is a coin toss to the model, and what a grid still tells is what the model misses. At
last the noisy counts of the parts' scores join the parts, so that evidence which two of them share is not counted twice.

**Guarantee.** ε-differential privacy against the absence of a person, ε the sum of the steps:

1. The pool follows from public taxonomies, the public number of records and what earlier rounds published.
2. Weights are whole 64ths, at most 64, and a public function of the record once the model is published. A unit of weight
   moves every score by an amount in [low, high] (`grids.quality`), so a record moves them within 64 times that: the
   choice at rate η loses at most ``64 η (high - low)``.
3. A record is in one cell of each grid and in one of the last table: noise of rate r loses r.
4. Everything else is post-processing.

It is no public mechanism. At Nε of about 8,000 and 20,000 `run` finds it ahead of the automatic PrivPfC for Adult's income
at ε = 0.5 alone; other targets of the same tables, with the same public facts, do worse or no better. So nothing that is
known beforehand tells where to take it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.bench.grids_accuracy import privpfc, published
from sfumato.bench.grids_contrast_model import Joined, Marginal, bucketed, fit, rejoined, tied_attributes
from sfumato.bench.grids_data import FILES, Case, load
from sfumato.bench.grids_learners import Published, predictions
from sfumato.bench.metrics import Halved, chosen_across, mean_and_error, measured_by_halves, summarise
from sfumato.grids.publishers.task import Task
from sfumato.grids.search.layers import Family
from sfumato.grids.search.pool import Pool, enumerate_grids
from sfumato.grids.search.quality import Quality
from sfumato.grids.search.scoring import score_pool
from sfumato.privacy import Exact, Meter, Seeded
from sfumato.privacy.losses import choice_rate
from sfumato.privacy.units import NANO, Nano, positive_nano
from sfumato.records.levels import Levels
from sfumato.records.records import Grid, Records, weighted_bincount

UNIT = 64  # the weight of a record that the model gets as wrong as it can
ROUNDS, JOINING, SELECT = 3, 0.2, 0.4  # shares: 20% for the joining table; of each round 40% for the choice
_MOST_GRIDS = 20_000
_MOST_CELLS = 1 << 17  # of a part
_CELLS, _JOINING_CELLS = 0.2, 0.05  # per N ε, ε that of the counts
_DRAWN = 4  # rows drawn per record, for the learners


def contrast_marginals(records: Records, task: Task, meter: Meter, *, nano: Nano, size: int) -> Joined:
    """The release for a budget of `nano` and a public number of records."""
    marginals: list[Marginal] = []
    model: Joined | None = None
    joining = int(nano * JOINING)
    each = (nano - joining) // ROUNDS
    select = Nano(int(each * SELECT))
    count = each - select
    pool = enumerate_grids(task.taxonomies, most=_MOST_GRIDS, cells=max(2, int(_CELLS * size * count / NANO)), widest=2)
    for _ in range(ROUNDS):
        fitting = small_enough(pool, task.taxonomies, [m.grid for m in marginals])
        weights = UNIT if model is None else coin_toss_weights(model, records)
        quality = Quality.of(max(1, count // UNIT))
        index = meter.choose(
            score_pool(reweighted(records, weights), fitting, quality),
            rate=choice_rate(select, quality.spread * UNIT),
            spread=quality.spread * UNIT,
            label="contrast: choice",
        )
        grid = fitting.grid(index)
        noisy = meter.laplace(records.table(grid).reshape(-1), rate=count, label="contrast: counts")
        marginals.append(Marginal(grid, noisy.reshape(task.classes, -1), float(np.sqrt(2.0) * NANO / count)))
        model = fit(task.taxonomies, size, marginals)
    assert model is not None
    coarse = bucketed(model, int(_JOINING_CELLS * size * joining / NANO))
    cells = coarse.table[0].size
    code = records.classes.astype(np.int64) * cells + coarse.scores(records.leaves)
    noisy = meter.laplace(
        weighted_bincount(code, records.weights, task.classes * cells), rate=joining, label="contrast: joining the parts"
    )
    return rejoined(coarse, size, noisy, float(np.sqrt(2.0) * NANO / joining))


def coin_toss_weights(model: Joined, records: Records) -> NDArray[np.int64]:
    """What a record weighs: whole units from 0 to `UNIT`, a public function of its row and class."""
    posterior = model.posterior(records.leaves)
    own = posterior[np.arange(len(posterior)), records.classes]
    weight = np.rint(UNIT * posterior.min(axis=1) / np.maximum(own, 1e-300)).astype(np.int64)
    return np.asarray(np.clip(weight, 0, UNIT))


def reweighted(records: Records, weights: NDArray[np.int64] | int) -> Records:
    """The records with these weights, times those they have."""
    before = np.ones(len(records.leaves), dtype=np.int64) if records.weights is None else records.weights
    return replace(records, weights=before * weights)


def small_enough(pool: Pool, taxonomies: Sequence[Levels], grids: Sequence[Grid]) -> Pool:
    """The grids of a pool that, tied to what was measured, leave every part with at most 131,072 cells. Public."""
    parts = tied_attributes(grids)
    finest: dict[int, int] = {}
    for grid in grids:
        for j, level in grid:
            finest[j] = max(level, finest.get(j, 0))
    families, size = [], 0
    for family in pool.families:
        together = set(family.attributes).union(*(p for p in parts if set(p) & set(family.attributes)))
        cells = np.ones(len(family.levels), dtype=np.float64)
        for j in together:
            at = family.levels[:, family.attributes.index(j)] if j in family.attributes else np.zeros(len(cells), np.int64)
            cells = cells * np.array(taxonomies[j].sizes)[np.maximum(at, finest.get(j, 0))]
        keep = np.flatnonzero(cells <= _MOST_CELLS)
        if keep.size:
            families.append(Family(family.attributes, family.levels[keep], np.arange(size, size + keep.size)))
            size += keep.size
    return Pool(tuple(families), size)


# --- the comparison ------------------------------------------------------------------------------------------------


def learned_from(model: Joined, leaves: NDArray[np.integer], rows: int, random: Any) -> Published:
    """A drawn table as weighted cells, and the test rows in the same codes."""
    nodes, classes = model.draw(rows * _DRAWN, random)
    level = {j: v for part in model.parts for j, v in zip(part.attributes, part.levels, strict=True)}
    used = sorted(nodes)
    drawn = np.column_stack([*(nodes[j] for j in used), classes])
    cells, counts = np.unique(drawn, axis=0, return_counts=True)
    taxonomies = model.taxonomies
    test = [taxonomies[j].maps[level[j]][leaves[:, j]] for j in used]
    return Published(
        cells[:, :-1],
        cells[:, -1],
        counts / _DRAWN,
        np.column_stack(test) if test else np.zeros((len(leaves), 0), dtype=np.int64),
        tuple(taxonomies[j].sizes[level[j]] for j in used),
        tuple(taxonomies[j].edges is not None for j in used),
    )


def compare(
    case: Case,
    epsilons: Sequence[float],
    *,
    repeats: int,
    first: int = 400,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, dict[str, float]]:
    """Misclassification of both on the same splits (their own, from random state `first` on); their difference.

    Each by the better of tree and LR, chosen on other rows than measure it; a negative difference is a win of contrast
    marginals. All with standard errors over the splits.
    """
    from sklearn.model_selection import StratifiedShuffleSplit

    task, truth = Task.of(case.schema, case.target), case.records.classes
    learners = ("tree", "logistic")
    out = {}
    for epsilon in epsilons:
        found: dict[str, dict[str, list[Halved]]] = {name: {k: [] for k in learners} for name in ("privpfc", "contrast")}
        for number in range(first, first + repeats):
            split = StratifiedShuffleSplit(1, test_size=0.2, random_state=number)
            train, test = next(split.split(np.zeros(len(truth)), truth))
            records, leaves, size = case.take(train), case.records.leaves[test], len(train)
            grids = privpfc(case)(epsilon, size).release(Exact(records), task, Meter(source=Seeded(number)))
            meter = Meter(source=Seeded(number))
            model = contrast_marginals(records, task, meter, nano=positive_nano(epsilon), size=size)
            tables = {
                "privpfc": published(grids, leaves, size),
                "contrast": learned_from(model, leaves, size, meter.post_processing()),
            }
            for name, table in tables.items():
                for learner, said in predictions(table, len(case.records.class_labels), learners=learners).items():
                    found[name][learner].append(measured_by_halves(test, truth[test], *said))
        best = {name: chosen_across(by_learner)[0] for name, by_learner in found.items()}
        told = {name: summarise(draws) for name, draws in best.items()}
        gap = [one["error"] - other["error"] for one, other in zip(best["contrast"], best["privpfc"], strict=True)]
        difference, error = mean_and_error(gap)
        out[str(epsilon)] = {name: round(t["error"], 4) for name, t in told.items()} | {
            **{f"{name}_se": round(t["error_se"] or 0.0, 4) for name, t in told.items()},
            **{f"{name}_auc": round(t["auc"], 4) for name, t in told.items()},
            "difference": round(difference, 4),
            "standard_error": 0.0 if np.isnan(error) else round(error, 4),
            "draws": repeats,
        }
        progress(f"{case.name} {case.target} ε={epsilon}: {out[str(epsilon)]}")
    return out


TARGETS = (  # table, target, budgets with N ε of about 8,000 and 20,000
    ("adult", "income", (0.2, 0.5)),
    ("adult", "sex", (0.2, 0.5)),
    ("bank", "y", (0.2, 0.5)),
    ("bank", "contact", (0.2, 0.5)),
    ("census", "sex", (0.03, 0.08)),
)


def run(
    *, quick: bool = False, data: Path | None = None, progress: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Both on five targets where N ε is alike; a negative difference is a win of contrast marginals. No claim is made."""
    figures: dict[str, Any] = {}
    if data is None:
        progress("no --data folder: contrast marginals are compared on real data only")
        return {"figures": figures, "claims": []}
    for name, target, epsilons in TARGETS[:1] if quick else TARGETS:
        if (data / FILES[name]).exists():
            case = load(name, data, target=target)
            repeats = 1 if quick else 5
            figures[f"{name}, {target}"] = compare(
                case, epsilons[-1:] if quick else epsilons, repeats=repeats, progress=progress
            )
    return {"figures": figures, "claims": []}
