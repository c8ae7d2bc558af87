"""Checkpoints and proofs of a dataset's log, as the ledger makes them and as anybody checks them without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from sfumato.errors import InputError, LedgerError
from sfumato.ledger import clock, log, merkle, schema
from sfumato.ledger.signing import Keys, signed_json

CHECKPOINT = "sfumato-checkpoint-v1"


@dataclass(frozen=True)
class Checkpoint:
    """The state of a log: whoever keeps one can tell later whether it was rewritten.

    Attributes
    ----------
    dataset : str
    size : int
        How many entries there are.
    root : str
        The hash over all of them.
    """

    dataset: str
    size: int
    root: str

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"type": CHECKPOINT, "dataset": self.dataset, "size": self.size, "root": self.root}

    def signed(self, keys: Keys, at: str | None = None) -> dict[str, Any]:
        """With the minute, this one or `at`, the key's id and a signature."""
        return signed_json(keys, {**self.to_dict(), "at": at or clock.now()})

    @classmethod
    def from_dict(cls, found: Any) -> Checkpoint:
        """From JSON; a signature is not looked at."""
        if not isinstance(found, Mapping) or found.get("type") != CHECKPOINT:
            raise InputError("this is no checkpoint: it has the dataset, the size and the root of a log, and a signature")
        dataset, size, root = (found.get(key) for key in ("dataset", "size", "root"))
        if not (isinstance(dataset, str) and isinstance(size, int) and not isinstance(size, bool) and isinstance(root, str)):
            raise InputError("this checkpoint is damaged; get it again")
        if size < 0 or raw(root) is None:
            raise InputError("this checkpoint is damaged; get it again")
        return cls(dataset, size, root)


@dataclass(frozen=True)
class Entry:
    """One entry of a log.

    Attributes
    ----------
    index : int
        Its place.
    leaf : str
        The hash of its body.
    body : str
        What was hashed.
    kind : str
    release : int or None
        The release that it tells about.
    """

    index: int
    leaf: str
    body: str
    kind: str
    release: int | None


@dataclass(frozen=True)
class Inclusion(Entry):
    """That an entry is in a log.

    Attributes
    ----------
    path : tuple of str
        Hashes from the leaf to the root.
    checkpoint : Checkpoint
    """

    path: tuple[str, ...]
    checkpoint: Checkpoint

    @property
    def holds(self) -> bool:
        """Whether the path leads to the root."""
        leaf = merkle.leaf_hash(self.body.encode())
        return leaf.hex() == self.leaf and included(self.leaf, self.index, self.checkpoint, self.path)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        said = {"body": self.body, "index": self.index, "path": list(self.path)}
        return {**said, "size": self.checkpoint.size, "root": self.checkpoint.root}


@dataclass(frozen=True)
class Consistency:
    """That a longer log begins with a shorter one.

    Attributes
    ----------
    old, new : Checkpoint
    path : tuple of str
    """

    old: Checkpoint
    new: Checkpoint
    path: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether it does."""
        return consistent(self.old, self.new, self.path)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"old": self.old.to_dict(), "new": self.new.to_dict(), "path": list(self.path)}


def raw(text: Any) -> bytes | None:
    """A hash from its one spelling in hexadecimal digits; ``None`` for anything else."""
    try:
        found = bytes.fromhex(text)
    except (ValueError, TypeError):
        return None
    return found if found.hex() == text and len(found) == merkle.SIZE else None


def included(leaf: str, index: Any, checkpoint: Checkpoint, path: Any) -> bool:
    """Whether a leaf is at a place of a log; whatever the arguments are, this answers."""
    parts = [raw(part) for part in path] if isinstance(path, list | tuple) else [None]
    found, root = raw(leaf), raw(checkpoint.root)
    if found is None or root is None or None in parts or not isinstance(index, int) or isinstance(index, bool):
        return False
    return merkle.included(found, index, checkpoint.size, [part for part in parts if part], root)


def consistent(old: Checkpoint, new: Checkpoint, path: Any) -> bool:
    """Whether one log begins with the other; whatever the arguments are, this answers."""
    parts = [raw(part) for part in path] if isinstance(path, list | tuple) else [None]
    before, after = raw(old.root), raw(new.root)
    if before is None or after is None or None in parts or old.dataset != new.dataset:
        return False
    return merkle.consistent(old.size, before, new.size, after, [part for part in parts if part])


# --- made from the ledger --------------------------------------------------------------------------------------------


def checkpoint(connection: Connection, dataset_id: int, dataset: str, size: int | None = None) -> Checkpoint:
    """The state of a log now, or when it had `size` entries."""
    now = log.size_of(connection, dataset_id)
    size = now if size is None else size
    if not 0 <= size <= now:
        raise InputError(f"the log of {dataset!r} has {now} entries; there is no state of it with {size}")
    (root,) = log.subtrees(connection, dataset_id, [(0, size)])
    return Checkpoint(dataset, size, root.hex())


def inclusion(connection: Connection, dataset_id: int, dataset: str, index: int, size: int | None = None) -> Inclusion:
    """That entry `index` is in the log, of `size` entries if that is given."""
    state = checkpoint(connection, dataset_id, dataset, size)
    if not 0 <= index < state.size:
        raise InputError(f"the log of {dataset!r} has {state.size} entries, counted from 0; there is no entry {index}")
    table = schema.log
    row = connection.execute(select(table).where(table.c.dataset_id == dataset_id, table.c.number == index)).one_or_none()
    if row is None:
        raise log.gone()
    path = log.subtrees(connection, dataset_id, merkle.inclusion_spans(index, state.size))
    hexed = tuple(part.hex() for part in path)
    return Inclusion(index, row.leaf, row.body, row.kind, row.release_id, hexed, state)


def entries(connection: Connection, dataset_id: int, before: int | None, limit: int) -> list[Entry]:
    """A page of a log, oldest first."""
    table = schema.log
    query = select(table.c.number, table.c.leaf, table.c.body, table.c.kind, table.c.release_id)
    query = query.where(table.c.dataset_id == dataset_id)
    if before is not None:
        query = query.where(table.c.number < before)
    rows = connection.execute(query.order_by(table.c.number.desc()).limit(limit)).all()
    return [Entry(*row) for row in reversed(rows)]


def charge_index(connection: Connection, dataset_id: int, release_id: int) -> int:
    """The place of the entry with which a release was charged."""
    table = schema.log
    here = (table.c.release_id == release_id, table.c.dataset_id == dataset_id, table.c.kind.in_(("reserved", "bridged")))
    found = connection.execute(select(table.c.number).where(*here)).scalar()
    if found is None:
        raise LedgerError(f"the log has no charge for release {release_id}; look it up by the number that reserve returned")
    return int(found)


def consistency(connection: Connection, dataset_id: int, dataset: str, old: int, new: int | None = None) -> Consistency:
    """That the log of `new` entries begins with that of `old`."""
    later = checkpoint(connection, dataset_id, dataset, new)
    if not 0 <= old <= later.size:
        raise InputError(f"the log of {dataset!r} had {old} entries before it had {later.size}? Give the smaller one first")
    earlier = checkpoint(connection, dataset_id, dataset, old)
    path = log.subtrees(connection, dataset_id, merkle.consistency_spans(old, later.size))
    return Consistency(earlier, later, tuple(part.hex() for part in path))
