"""Looking at a ledger without writing anything, not even the ledger where there is none yet.

Above all: what it would say to a whole plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.errors import BudgetError, InputError
from sfumato.ledger.caps import Caps
from sfumato.ledger.requests import canonical
from sfumato.privacy.charge import Charge


@dataclass(frozen=True, eq=False)
class Ask:
    """A request with its price, as it would be given to `Ledger.reserve`.

    Attributes
    ----------
    charge : Charge
        What the release will cost at most.
    request : str or mapping
        What is asked, as canonical JSON or as a mapping that is written as such.
    recipient : str or None
        Who will see the result; ``None`` is everybody.
    analyst, purpose : str or None
        Whose allowance pays for it, where one does.
    """

    charge: Charge
    request: str | Mapping[str, Any]
    recipient: str | None = None
    analyst: str | None = None
    purpose: str | None = None


@dataclass(frozen=True)
class Foreseen:
    """What `Ledger.reserve` would do with a request.

    Attributes
    ----------
    refusal : str or None
        The sentence it would be refused with; nothing is then charged.
    paid : bool
        It costs nothing, because the same request is in the ledger as committed or stands earlier in the plan.
    entry : int or None
        The ledger's number for the release that paid for it.
    """

    refusal: str | None = None
    paid: bool = False
    entry: int | None = None


def datasets_at(location: str | Path) -> list[str]:
    """Names of the datasets in a ledger that is only looked at: it is neither made nor brought up to date.

    Parameters
    ----------
    location : str or Path
        A file name, or ``postgresql://user@host/database``.

    Returns
    -------
    list of str
        The names, sorted; none where there is no ledger.
    """
    if nothing_at(location):
        return []
    from sfumato.ledger.database import Store
    from sfumato.ledger.queries import datasets

    store = Store.existing(location)
    return [] if store is None else datasets(store)


def nothing_at(location: str | Path) -> bool:
    """Whether a ledger in a file has not been made yet: a preview then need not load what reads one."""
    place = Path(location).expanduser()
    named = "://" not in str(location) and str(location) not in ("", ":memory:")
    return named and place.parent.is_dir() and not place.exists()


def recall(location: str | Path, dataset: str, request: str) -> dict[str, Any] | None:
    """What was committed for a request, made for everybody; the ledger is only looked at.

    Parameters
    ----------
    location : str or Path
        A file name, or ``postgresql://user@host/database``.
    dataset : str
        The dataset's name in the ledger.
    request : str
        What was asked, as canonical JSON.

    Returns
    -------
    dict or None
        What the release left in the ledger; ``None`` where there is no ledger, no such dataset in it, or no such release.
    """
    from sfumato.ledger.database import Store
    from sfumato.ledger.queries import datasets, find

    store = Store.existing(location)
    if store is None or dataset not in datasets(store):
        return None
    found = find(store, dataset, request, None)
    return None if found is None else found.artefact


def foresee(location: str | Path | None, caps: Caps, asks: Iterable[Ask]) -> list[Foreseen]:
    """What would happen if these requests were made one after the other and each of them succeeded.

    A request that is refused charges nothing, so later ones are judged as if it had not been made.

    Parameters
    ----------
    location : path or URL, optional
        The ledger. Where there is none, or the dataset is not registered in it, the caps are as good as new.
    caps : Caps
        What the dataset would be registered with; see `Caps.of`.
    asks : iterable of Ask
        The requests, in the order in which they would be made.

    Returns
    -------
    list of Foreseen
        What would become of each request, in the same order.

    Raises
    ------
    LedgerError
        The dataset is registered with other numbers, or the ledger cannot be read.

    Examples
    --------
    >>> half = [Ask(Charge.of("0.5"), {"count": where}) for where in ("age >= 65", "age < 18", "age >= 65", "true")]
    >>> [(said.paid, said.refusal) for said in foresee(None, Caps.of("clinic", epsilon=1), half)]
    [(False, None), (False, None), (True, None), (False, "asked ε 0.5, 0 of 1 left for 'clinic'; ...")]
    """
    asked = [(ask, canonical(ask.request)) for ask in asks]
    stored: list[int | None] = [None] * len(asked)
    if location is not None and not nothing_at(location):
        from sfumato.ledger import queries

        own = {(a.analyst, a.purpose) for a, _ in asked if a.analyst is not None and a.purpose is not None}
        known = queries.standing(location, caps, [(request, ask.recipient) for ask, request in asked], own)
        if known is not None:
            caps, stored = known
    seen: set[tuple[str, str | None]] = set()
    said = []
    for (ask, request), entry in zip(asked, stored, strict=True):
        if entry is not None or (request, None) in seen or (request, ask.recipient) in seen:
            said.append(Foreseen(paid=True, entry=entry))
            continue
        try:
            caps = caps.after(ask.charge, ask.recipient, analyst=ask.analyst, purpose=ask.purpose)
        except (BudgetError, InputError) as refused:
            said.append(Foreseen(refusal=str(refused)))
            continue
        seen.add((request, ask.recipient))
        said.append(Foreseen())
    return said
