"""Choices come into force: all that wait at an epoch, and what takes something away before every release.

An epoch is one transaction under the dataset's lock, the one that `reserve` takes: it happens or it does not, and no release
is priced on one side of it and charged on the other.

*What is lowered binds at once, what is raised waits.* Before a release (`bind`) a person's grant becomes the smaller of what
they grant and what they chose, likewise their cap per period; what is left of their choice waits for the epoch.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, insert

from sfumato.ledger import choices, log, log_leaves, log_quiet, persons, schema, states
from sfumato.ledger.choices import Choices
from sfumato.ledger.life_records import Epoch
from sfumato.ledger.packing import CHUNK, chunks_of, squeeze
from sfumato.ledger.persons import MEMBER
from sfumato.ledger.state import GONE, PARTS, State


def close(connection: Connection, dataset_id: int, at: str, *, kind: str = "epoch") -> Epoch:
    """Take in everything that waits."""
    before = states.load(connection, dataset_id)
    waiting, last = choices.read(connection, dataset_id)
    return take_in(connection, dataset_id, before, waiting.last_of_each(), at=at, kind=kind, last=last)


def bind(connection: Connection, dataset_id: int, at: str) -> Epoch | None:
    """Take in what takes something away; ``None`` if nothing does, and then nothing is written.

    Of a private roster the log does not tell whether anything did: an entry is written all the same.
    """
    if not choices.lowering(connection, dataset_id):
        return _nothing(connection, dataset_id, at) if log_quiet.is_private(connection, dataset_id) else None
    before = states.load(connection, dataset_id)
    waiting, last = choices.read(connection, dataset_id)
    waiting = waiting.last_of_each()
    places = np.where(waiting.known, waiting.places, 0)
    now = [column[places] if len(column) else np.zeros_like(places) for column in (before.grants, before.tiers, before.caps)]
    less = choices.lowers(waiting, *now)
    lowered = replace(
        waiting[less],
        grants=np.minimum(waiting.grants, now[0])[less],
        caps=np.minimum(waiting.caps, now[2])[less],
    )
    rest = ~less | ((waiting.grants > now[0]) | (waiting.caps > now[2])) & (waiting.tiers != GONE)
    done = take_in(connection, dataset_id, before, lowered, at=at, kind="bind", last=last)
    choices.write(connection, dataset_id, waiting[rest], np.zeros(int(rest.sum()), dtype=bool))
    return done


def _nothing(connection: Connection, dataset_id: int, at: str) -> Epoch:
    change = states.last_turns(connection, dataset_id)[0]
    epoch = 0 if change is None else int(change.epoch)
    standing = log_leaves.standing_of(connection, dataset_id) or None  # there from the first epoch or charge on
    log.append(connection, dataset_id, log_leaves.quietly(epoch, at, (), standing))
    return Epoch(epoch, at, 0, 0, 0, 0, 0, 0, 0)


def take_in(
    connection: Connection,
    dataset_id: int,
    before: State,
    chosen: Choices,
    *,
    at: str,
    kind: str,
    last: int,
    spent: NDArray[np.int64] | None = None,
) -> Epoch:
    """Bring `chosen` (one per person) into force; `spent` is what newcomers bring with them from a fixed roster."""
    new = np.flatnonzero(~chosen.known & (chosen.tiers != GONE))  # who withdraws before they joined never was there
    new = new[np.lexsort((chosen.people["low"][new].astype(np.uint64), chosen.people["high"][new].astype(np.uint64)))]
    size = len(before.grants)
    newcomers = chosen.people[new].copy()
    newcomers["place"] = np.arange(size, size + len(new))
    old = np.flatnonzero(chosen.known)
    old = old[np.argsort(chosen.places[old])]
    old = old[_differs(before, chosen, old)]
    places = np.concatenate([chosen.places[old], newcomers["place"].astype(np.int64)])
    order = np.concatenate([old, new])
    after, counts = _applied(before, chosen[order], places, np.zeros(len(new), np.int64) if spent is None else spent[new])
    after = replace(
        after, turn=before.turn + 1, change=before.change + 1, epoch=before.epoch + (kind == "epoch")
    ).regrouped()
    if len(new):
        persons.settle(connection, dataset_id, newcomers)
    changed = {part for part in PARTS if not np.array_equal(getattr(before, part), getattr(after, part))}
    signature = states.save(connection, dataset_id, after, changed)
    taking_part = int(after.part.sum())
    row = {
        "number": after.change,
        "turn": after.turn,
        "kind": kind,
        "epoch": after.epoch,
        "at": at,
        "people": taking_part,
        **counts,
        "applied": last,
        "after": signature,
    }
    connection.execute(insert(schema.changes).values(dataset_id=dataset_id, **row))
    rows = [
        {
            "dataset_id": dataset_id,
            "chunk": chunk,
            "number": after.change,
            "entries": squeeze(
                [
                    np.diff(places[part] - chunk * CHUNK, prepend=-1),  # steps are small, and pack well
                    after.grants[places[part]],
                    after.tiers[places[part]],
                    after.caps[places[part]],
                ]
            ),
        }
        for chunk, part in chunks_of(places)
    ]
    if rows:
        connection.execute(insert(schema.change_chunks), rows)
    choices.taken_in(connection, dataset_id, last)
    standing = log_leaves.standing_of(connection, dataset_id)
    change = {"dataset_id": dataset_id, **row}
    written = log_leaves.change_rows(connection, dataset_id, change, rows, newcomers.astype(MEMBER).tobytes())
    quiet = log_quiet.is_private(connection, dataset_id)
    leaf = log_leaves.quietly(after.epoch, at, written, standing) if quiet else log_leaves.changed(change, written, standing)
    log.append(connection, dataset_id, leaf)
    return Epoch(after.epoch, at, taking_part, int(after.cohorts.max(initial=-1)) + 1, **counts)


def _differs(before: State, chosen: Choices, which: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whose choice is not what they have already."""
    places = chosen.places[which]
    pairs = ((before.grants, chosen.grants), (before.tiers, chosen.tiers), (before.caps, chosen.caps))
    found: NDArray[np.bool_] = np.logical_or.reduce([now[places] != then[which] for now, then in pairs])
    return found


def _applied(
    before: State, chosen: Choices, places: NDArray[np.int64], spent: NDArray[np.int64]
) -> tuple[State, dict[str, int]]:
    more = len(spent)
    nothing = np.zeros(more, dtype=np.int64)
    grown = State(
        grants=np.concatenate([before.grants, nothing]),
        tiers=np.concatenate([before.tiers, np.full(more, GONE)]),
        caps=np.concatenate([before.caps, nothing]),
        cohorts=np.concatenate([before.cohorts, nothing]),
        base=np.concatenate([before.base, nothing]),
        spent=np.concatenate([before.spent, spent]),
        period=before.period,
    )
    was_out, out = grown.tiers[places] == GONE, chosen.tiers == GONE
    then, stays = grown.grants[places], ~was_out & ~out
    counts = {
        "joined": was_out & ~out,
        "raised": stays & (chosen.grants > then),
        "lowered": stays & (chosen.grants < then),
        "moved": stays & (chosen.grants == then),
        "withdrawn": out & ~was_out,
    }
    grown.grants[places], grown.tiers[places], grown.caps[places] = chosen.grants, chosen.tiers, chosen.caps
    return grown, {name: int(found.sum()) for name, found in counts.items()}
