"""An accountant for notebooks: estimators that charge a ledger for every fit.

With ``ledger=`` and ``dataset=`` an estimator reserves what its Meter may spend before `fit` looks at a row. A cap that
would be passed refuses the fit, and whatever fails afterwards stays spent: what was seen cannot be unseen.

**No free repeats.** A release of an opened table that was made before comes back at no cost, because its request says which
table it is about. A fit is given rows: nobody can tell whether they are the rows of an earlier fit, and comparing them would
be a look at the data before it was paid for. So every fit is charged, also the same one again.

Each fit is charged to everybody in the dataset, whether they are among the rows or not (a fold of a cross-validation, a
filtered frame). That is more than is lost, and never less. Where rows have an ε of their own, the largest is charged: it is
what the sum of all fits can cost anybody at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

from sfumato.classifiers.fits import is_accounted
from sfumato.classifiers.pipelines import warn_of_pipeline
from sfumato.errors import InputError
from sfumato.ledger import Ledger
from sfumato.privacy import Charge, Meter, Nano, as_epsilon


@dataclass(frozen=True)
class Entry:
    """A fit in a ledger.

    Attributes
    ----------
    ledger : Ledger
    dataset : str
    id : int
        Its number in the ledger.
    """

    ledger: Ledger
    dataset: str
    id: int

    def spent(self) -> Decimal:
        """What all releases and fits of the dataset have cost together."""
        return as_epsilon(Nano(int(self.ledger.balance(self.dataset, releases=0).total.spent)))


@contextmanager
def charged(estimator: Any, meter: Meter) -> Iterator[Entry | None]:
    """Reserve what the Meter of a fit may spend; commit at the end, or keep it as failed."""
    if meter.private and not is_accounted():
        warn_of_pipeline()
    if estimator.ledger is None:
        if estimator.dataset is not None:
            raise InputError(f"dataset={estimator.dataset!r} names a dataset of a ledger: give ledger=... as well")
        yield None
        return
    ledger, name = _ledger(estimator.ledger), _dataset(estimator)
    limit, budgets = meter.terms.limit, meter.terms.budgets
    total = limit.total if limit is not None else Nano(int(budgets.levels[-1]) if budgets is not None else 0)
    made = type(estimator).__name__
    request = {
        "kind": "fit",
        "mechanism": made,
        "dataset": name,
        "fit": uuid4().hex,
        "target": getattr(estimator, "target", None),
    }
    reservation = ledger.reserve(name, Charge(total), request=request, name=f"fit of {made}")
    try:
        yield Entry(ledger, name, reservation.id)
    except BaseException:
        ledger.fail(reservation.id)
        raise
    ledger.commit(reservation.id, {"fit": made})


def _ledger(given: Any) -> Ledger:
    if isinstance(given, Ledger):
        return given
    if not isinstance(given, str | Path):
        raise InputError(f"ledger is a Ledger, a file or an address, got a {type(given).__name__}")
    return Ledger.open(given, create=False)


def _dataset(estimator: Any) -> str:
    name = estimator.dataset
    if not isinstance(name, str) or not name:
        raise InputError("a ledger keeps many datasets: say which one is fitted, dataset='clinic'")
    return name
