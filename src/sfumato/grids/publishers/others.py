"""What a grid leaves out: the columns outside it, and the classes themselves, counted for a small share of the budget.

A grid for classification has two to four columns, most of them in a few groups. The others, and those that it divides
coarsely, get noisy counts of their own: a synthetic table then has their shares, and not their public domain alone. They are
counted class by class (the price is the same, but their shares over all classes then have the noise of each) if there are at
most `FEW_CLASSES` and a count is at least as large as its noise on average. A fifth of the share counts the classes, where
`stacking` has not done so already.

**Guarantee.** A record is in one class, and in one cell of each of the m tables (leaf and class, or leaf): noise of rate a
on the classes and b on each table loses a + m b, in sequence with the rest, times the weight of the record. Which columns
are left out follows from the published grid, and a + m b is at most the share.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grids.published.cuts import divided_in
from sfumato.grids.published.marginals import Marginal
from sfumato.grids.publishers.one_grid import TOO_SMALL, Weights
from sfumato.grids.publishers.settings import MOST_CELLS
from sfumato.grids.publishers.stacking import Cuts
from sfumato.grids.publishers.task import Task
from sfumato.privacy.exact import Exact
from sfumato.privacy.meter import Meter
from sfumato.privacy.units import NANO, Nano
from sfumato.records.records import Records, weighted_bincount

FEW_CLASSES = 4
_CLASSES = 5  # one part in this many of the share counts the classes


def others_rates(nano: Nano, columns: int, *, known: bool, factor: int, weights: Weights) -> tuple[Nano, Nano]:
    """What the classes and each of so many columns may cost a record of weight one; refused where that is nothing.

    Classes that are `known` already cost nothing, unless there is nothing else to count.
    """
    for_classes = nano if columns == 0 else Nano(0) if known else Nano(nano // _CLASSES)
    one, each = (weights.usable(Nano(n // factor)) if n else Nano(0) for n in (for_classes, Nano(nano - for_classes)))
    each = Nano(each // max(columns, 1))
    if (for_classes and one < 1) or (columns and each < 1):
        raise InputError(TOO_SMALL)
    return one, each


def count_others(
    records: Exact[Records],
    task: Task,
    meter: Meter,
    *,
    nano: Nano,
    cuts: Cuts,
    known: tuple[NDArray[np.int64], Nano] | None,
    size: float,
    weights: Weights,
) -> dict[str, Any]:
    """The fields of a synopsis about its classes and the columns that its grid leaves out, or divides coarsely.

    `known` are class counts that were published already, `size` is the (public or noisy) weight of all records. If no column
    is left out, the classes get all of it (and are then counted with less noise than before).
    """
    divided = divided_in(cuts)
    # By name: a release is then the same for every order of the columns, noise and all.
    outside = tuple(j for j in sorted(range(len(task.attributes)), key=task.name) if j not in divided)
    others: tuple[Marginal, ...] = ()
    if nano:
        one, each = others_rates(nano, len(outside), known=known is not None, factor=meter.terms.factor, weights=weights)
        if one:
            exact = records.map(lambda r: r.table(()))
            known = meter.laplace(exact, rate=one, weights=weights.groups, label="classes of the whole table"), one
        others = count_columns(records, task, meter, columns=outside, rate=each, size=size, weights=weights)
    if known is None:
        return {}
    return {"others": others, "class_counts": known[0], "class_rate": int(known[1])}


def count_columns(
    records: Exact[Records],
    task: Task,
    meter: Meter,
    *,
    columns: tuple[int, ...],
    rate: Nano,
    size: float,
    weights: Weights,
) -> tuple[Marginal, ...]:
    """Noisy counts of each of these columns by itself, by class where there are few of them and enough records."""
    found = []
    for j in columns:
        leaves = task.taxonomies[j].leaves
        enough = size * rate / NANO >= leaves * task.classes
        rows = task.classes if task.classes <= FEW_CLASSES and enough and leaves * task.classes <= MOST_CELLS else 1
        noisy = meter.laplace(
            records.map(partial(_counted, column=j, leaves=leaves, rows=rows)),
            rate=rate,
            weights=weights.groups,
            label=f"counts of {task.taxonomies[j].name}",
        )
        found.append(Marginal(j, noisy.reshape(rows, leaves), rate))
    return tuple(found)


def _counted(records: Records, column: int, leaves: int, rows: int) -> NDArray[np.int64]:
    code = records.leaves[:, column].astype(np.int64)
    if rows > 1:
        code = records.classes.astype(np.int64) * leaves + code
    return weighted_bincount(code, records.weights, rows * leaves)
