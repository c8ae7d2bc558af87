"""The menu of a living roster: what people may choose from, as it was registered. Never changes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, insert, select

from sfumato.errors import InputError
from sfumato.ledger import cohorts, schema
from sfumato.ledger.standing import Menu
from sfumato.ledger.state import FAR, OWN
from sfumato.privacy.units import NanoArray, nano_down_array, positive_nano

_LIFE = select(schema.lives).where(schema.lives.c.dataset_id == bindparam("dataset"))


def enrol(connection: Connection, dataset_id: int, menu: Menu) -> None:
    """Write down a menu, with nobody in it."""
    names = None if menu.names is None else json.dumps(list(menu.names))
    static = {"levels": cohorts.pack(menu.levels), "counts": cohorts.pack(np.zeros_like(menu.levels)), "names": names}
    connection.execute(insert(schema.rosters).values(dataset_id=dataset_id, **static))
    come_alive(connection, dataset_id, menu, fixed=False)


def come_alive(connection: Connection, dataset_id: int, menu: Menu, *, fixed: bool) -> None:
    """Say that a dataset has persons from now on; `fixed` if it had head counts before."""
    row = {
        "period": menu.period,
        "per_period": json.dumps(menu.per_period),
        "private": int(menu.private),
        "fixed": int(fixed),
    }
    connection.execute(insert(schema.lives).values(dataset_id=dataset_id, **row))


def load(connection: Connection, dataset_id: int) -> Menu | None:
    """The menu of a dataset; ``None`` if its roster is fixed or it has none."""
    life = connection.execute(_LIFE, {"dataset": dataset_id}).one_or_none()
    if life is None:
        return None
    there = schema.rosters
    row = connection.execute(select(there.c.levels, there.c.names).where(there.c.dataset_id == dataset_id)).one()
    names = None if row.names is None else tuple(json.loads(row.names))
    return Menu(cohorts.unpack(row.levels), names, life.period, json.loads(life.per_period), bool(life.private))


def granted(menu: Menu, grants: Any, people: int) -> tuple[NanoArray, NDArray[np.int64], NanoArray]:
    """What each of so many `people` grants, their tier and their cap per period.

    `grants` is a tier, an ε, or one of them for each person.
    """
    if isinstance(grants, str) or np.ndim(grants) == 0:
        nano, tier = _one(menu, grants.item() if isinstance(grants, np.generic) else grants)
        amounts, tiers = np.full(people, nano, dtype=np.int64), np.full(people, tier, dtype=np.int64)
    else:
        amounts, tiers = _many(menu, grants)
    if len(amounts) != people:
        raise InputError(f"{people} persons but {len(amounts)} grants; give one grant for each person")
    caps = np.array([*(menu.cap(tier) for tier in range(len(menu.levels))), FAR], dtype=np.int64)
    return amounts, tiers, caps[tiers]


def _many(menu: Menu, grants: Any) -> tuple[NanoArray, NDArray[np.int64]]:
    listed = grants.to_pylist() if hasattr(grants, "to_pylist") else grants
    array = np.asarray(listed)
    if array.ndim != 1:
        raise InputError("grants are a flat list, one for each person")
    if array.dtype.kind in "iuf" and not _asks_for_level(menu):
        amounts = nano_down_array(array, "grants")
        if (amounts < 1).any():
            raise InputError(f"every grant must be greater than 0; {int((amounts < 1).sum())} are not: withdraw them")
        return amounts, np.full(len(amounts), OWN, dtype=np.int64)
    if array.dtype.kind not in "iufU":
        array = np.array(list(listed), dtype=object)
        known: dict[Any, tuple[int, int]] = {}
        pairs = []
        for grant in array:
            if grant not in known:
                known[grant] = _one(menu, grant)
            pairs.append(known[grant])
        both = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]
    distinct, which = np.unique(array, return_inverse=True)
    both = np.array([_one(menu, grant.item()) for grant in distinct], dtype=np.int64).reshape(-1, 2)
    return both[which, 0], both[which, 1]


def _asks_for_level(menu: Menu) -> bool:
    """Whether an amount has to be one of the menu's: it has no names, or who grants what is private."""
    return menu.names is None or menu.private


def _one(menu: Menu, grant: Any) -> tuple[int, int]:
    tiers = ", ".join(repr(name) for name in menu.names or ()) or "amounts only"
    if isinstance(grant, str) and menu.names is not None and grant in menu.names:
        tier = menu.names.index(grant)
        return int(menu.levels[tier]), tier
    try:
        nano = positive_nano(grant, "a grant")
    except InputError:
        if isinstance(grant, str):
            raise InputError(f"{grant!r} is no tier of the menu ({tiers}) and no ε; name a tier or give an amount") from None
        raise
    found = np.flatnonzero(menu.levels == nano)
    if menu.private and not found.size:
        raise InputError(
            f"with a private roster people choose from the menu ({tiers}); an amount of one's own would stand out"
        )
    if (menu.names is None or menu.private) and found.size == 1:
        return int(nano), int(found[0])
    if menu.private:
        raise InputError(f"several tiers of the menu ({tiers}) have that amount; name one of them")
    return int(nano), OWN
