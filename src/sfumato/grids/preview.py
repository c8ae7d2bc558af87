"""What a synthesize release would cost and what it would do, from public facts alone. Nothing is read, nothing is spent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.grids.publishers.diffgen import DiffGen
from sfumato.grids.publishers.one_grid import Weights
from sfumato.grids.publishers.pph import PPH
from sfumato.grids.publishers.privbayes import PrivBayes
from sfumato.grids.publishers.privpfc import PrivPfC
from sfumato.grids.publishers.stacking import CLASS_PART
from sfumato.grids.publishers.task import Task
from sfumato.grids.publishers.uniform import UniformGrid
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge
from sfumato.privacy.meter import Meter
from sfumato.privacy.noise import laplace_variance
from sfumato.privacy.units import Epsilon, positive_nano
from sfumato.tables.dataset import Dataset
from sfumato.tables.predicates import Where
from sfumato.tables.schema import Schema


@dataclass(frozen=True, eq=False)
class Option:
    """One way to publish the table: what the ledger must reserve, the noise per count, and how to run it."""

    mechanism: str
    charge: Charge
    expected_rmse: float | None
    note: str
    run: Callable[[Dataset, Meter], Any] = field(repr=False)
    budgets: PersonBudgets | None = None


def preview_synthesize(
    *,
    schema: Schema,
    target: str,
    epsilon: Epsilon | None = None,
    rows: int | None = None,
    budgets: PersonBudgets | None = None,
    where: Where = None,
    attributes: tuple[str, ...] | None = None,
    **options: Any,
) -> list[Option]:
    """The ways to publish a table for classification, best first (by the bench; see docs/grids.md).

    Examples
    --------
    >>> from sfumato.tables import Categorical, Numeric
    >>> schema = Schema({"age": Numeric(0, 80, bins=8), "ill": Categorical(["no", "yes"])})
    >>> [o.mechanism for o in preview_synthesize(schema=schema, target="ill", epsilon=0.5)]
    ['privpfc', 'diffgen', 'pph', 'privbayes', 'uniform-grid']
    """
    main = PrivPfC(target=target, epsilon=epsilon, rows=rows, budgets=budgets, attributes=attributes, **options)
    task = Task.of(schema, target, attributes)
    factor = schema.unit.rows_per_person
    settings = main.settings(task, factor)
    weights = Weights.of(budgets)
    # Of the last grid, whose counts are published; the number of records is known by then if another step told it.
    left = main.nano - main.nano // CLASS_PART if settings.grids == "auto" else main.nano
    nano = left if settings.grids == 1 else left // 2
    shares = settings.shares(nano // factor, public_size=rows is not None or budgets is not None or settings.grids != 1)
    rate = weights.usable(shares[2])
    if rate < 1:
        raise InputError("the budget is too small for this release; raise epsilon")
    unit = 1.0 if weights.counts is None else float((weights.counts * weights.groups).sum() / max(weights.counts.sum(), 1))
    noise = float(np.sqrt(laplace_variance(rate))) / unit
    people = None if budgets is None else np.array(budgets.levels)
    note = f"one grid chosen among up to {settings.most} for classifying {target}, noisy class counts per cell"
    if settings.grids != 1:
        note += "; a second grid for what the first misses"
    if settings.grids == "auto":
        note += ", if class counts (2% of the budget) say that there is enough to find"
    found = [Option("privpfc", Charge(main.nano, people), noise, note, _runner(main, where), budgets)]
    if budgets is None:
        assert epsilon is not None
        charge = Charge(positive_nano(epsilon))
        for kind, text in (
            (DiffGen, "taxonomy nodes divided one at a time"),
            (PPH, "a few columns chosen one at a time, with all their values"),
            (PrivBayes, "a Bayesian network over all columns; not made for classification"),
            (UniformGrid, "every column cut alike, without looking at the data"),
        ):
            rival = kind(epsilon=epsilon, target=target, rows=rows, attributes=attributes)
            found.append(Option(rival.mechanism, charge, None, text, _runner(rival, where)))
    return found


def _runner(publisher: Any, where: Where) -> Callable[[Dataset, Meter], Any]:
    def run(dataset: Dataset, meter: Meter) -> Any:
        return publisher.fit(dataset, meter=meter, where=where).synopsis

    return run
