"""Tables that keep a ledger: their rows are reached by asking them for a release, never directly."""

from __future__ import annotations

from typing import Any

from sfumato.errors import InputError
from sfumato.tables.dataset import Dataset


def keeps_ledger(table: Any) -> bool:
    """Whether this is a table that `sfumato.open` gave: it charges its ledger for every release."""
    # Asked of the type: asking the object would open its ledger, and a Spark Connect frame has an attribute of any name.
    return callable(getattr(type(table), "synthesize", None))


def need_rows(table: Any, what: str) -> None:
    """Refuse a `table` that does not hand out its rows where rows are needed; `what` says who needs them."""
    if keeps_ledger(table):
        publish = (
            "table.model(target=..., estimator=..., epsilon=...) trains one and charges its ledger; or "
            "table.synthesize(target=..., epsilon=...)"
        )
    elif isinstance(table, Dataset):
        publish = "sfumato.grids.PrivPfC(target=..., epsilon=...).fit(table).synopsis"
    else:
        return
    raise InputError(
        f"{what} needs rows, a data frame or an array; an opened table does not hand them out: {publish} gives what a "
        "classifier is made of, .classifier() and .sample()"
    )
