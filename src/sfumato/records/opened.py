"""Tables that keep a ledger: their rows are reached by asking them for a release, never directly."""

from __future__ import annotations

from typing import Any

from sfumato.errors import InputError


def keeps_ledger(table: Any) -> bool:
    """Whether this is a table that `sfumato.open` gave: it charges its ledger for every release."""
    # Asked of the type: asking the object would open its ledger, and a Spark Connect frame has an attribute of any name.
    return callable(getattr(type(table), "synthesize", None))


def need_rows(table: Any, what: str) -> None:
    """Refuse a table that keeps a ledger where rows are needed; `what` says who needs them."""
    if keeps_ledger(table):
        raise InputError(
            f"{what} needs rows, a data frame or an array; a table opened with sfumato.open does not hand them out: "
            "table.synthesize(target=..., epsilon=...) charges its ledger and gives what a classifier is made of: "
            ".classifier() and .sample()"
        )
