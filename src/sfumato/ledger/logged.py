"""What a Ledger says about its log: checkpoints, proofs, notes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sfumato.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from sfumato.ledger.database import Store
    from sfumato.ledger.proofs import Checkpoint, Consistency, Entry, Inclusion
    from sfumato.ledger.signing import Keys


class Logged:
    """The part of `sfumato.ledger.Ledger` that is about its log."""

    _store: Store
    keys: Keys | None = None
    """The keys that sign its checkpoints, if it has any."""
    witness: Callable[[dict[str, Any]], None] | None = None
    """Given a signed checkpoint after each charge and note, before anybody sees what came of it: to be kept elsewhere."""

    def note(self, dataset: str, kind: str, body: Mapping[str, Any]) -> int:
        """Write something down that can be proved later, such as an approval; returns its place in the log.

        Parameters
        ----------
        dataset : str
            A registered dataset.
        kind : str
            What it is; not one of the kinds that the ledger itself writes.
        body : mapping
            What JSON can hold. No person in it: whoever may read the log reads it.
        """
        from sfumato.ledger import clock, log, log_leaves
        from sfumato.ledger.reserve import lock

        leaf = log_leaves.note(kind, body, clock.now())
        with self._store.write() as connection:
            number = log.append(connection, lock(connection, dataset), leaf)
        self._witnessed(dataset)
        return number

    def close(self, dataset: str, body: Mapping[str, Any]) -> int:
        """Take no more charges for a `dataset`, ever; the `body` says why. Returns the place of the entry.

        What was charged can still be finished, read and proved.
        """
        from sfumato.ledger import clock, log, log_leaves
        from sfumato.ledger.reserve import lock

        leaf = log_leaves.closed(body, clock.now())
        with self._store.write() as connection:
            return log.append(connection, lock(connection, dataset), leaf)

    def checkpoint(self, dataset: str, size: int | None = None) -> Checkpoint:
        """The state of a `dataset`'s log: how many entries it has and the hash over all of them.

        `size` asks for an earlier state.
        """
        from sfumato.ledger import proofs

        with self._looking(dataset) as (connection, dataset_id):
            return proofs.checkpoint(connection, dataset_id, dataset, size)

    def signed_checkpoint(self, dataset: str) -> dict[str, Any]:
        """The state of a `dataset`'s log, signed, as JSON. Keep it: a log that was rewritten does not fit it any more."""
        if self.keys is None:
            raise InputError("this ledger has no keys to sign with: Ledger.open(..., keys=...) or SFUMATO_SIGNING_KEYS")
        return self.checkpoint(dataset).signed(self.keys)

    def inclusion(
        self,
        dataset: str,
        index: int | None = None,
        *,
        entry: int | None = None,
        size: int | None = None,
        upto: bool = False,
    ) -> Inclusion:
        """The proof that an entry is in a `dataset`'s log.

        Parameters
        ----------
        dataset : str
            A registered dataset.
        index : int, optional
            The place of the entry in the log; or
        entry : int, optional
            the number of a release, for the entry with which it was charged.
        size : int, optional
            For the state of the log when it had so many entries.
        upto : bool
            Whether it is for the state of the log when this entry was the last one. That is what certificates have: what
            was written while a release was made would tell how long it took.
        """
        from sfumato.ledger import proofs

        if (index is None) == (entry is None):
            raise InputError("say which entry of the log: its index, or entry=... for the charge of a release")
        with self._looking(dataset) as (connection, dataset_id):
            if index is None:
                assert entry is not None
                index = proofs.charge_index(connection, dataset_id, entry)
            return proofs.inclusion(connection, dataset_id, dataset, index, index + 1 if upto else size)

    def log_page(self, dataset: str, *, before: int | None = None, limit: int = 100) -> list[Entry]:
        """Up to `limit` entries of a `dataset`'s log, oldest first: the last ones, or those `before` a place."""
        from sfumato.ledger import proofs

        with self._looking(dataset) as (connection, dataset_id):
            return proofs.entries(connection, dataset_id, before, limit)

    def consistency(self, dataset: str, old: int, new: int | None = None) -> Consistency:
        """The proof that a `dataset`'s log of `new` entries (now, if it is not said) begins with that of `old` entries."""
        from sfumato.ledger import proofs

        with self._looking(dataset) as (connection, dataset_id):
            return proofs.consistency(connection, dataset_id, dataset, old, new)

    def proof(self, dataset: str, entry: int) -> dict[str, Any]:
        """What a certificate says about the log: the charge of release `entry` of a `dataset`, and that it is in there."""
        found = self.inclusion(dataset, entry=entry, upto=True)
        made = found.to_dict()
        if self.keys is not None:
            made["checkpoint"] = found.checkpoint.signed(self.keys, at=json.loads(found.body)["reserved"])
        return made

    def _witnessed(self, dataset: str) -> None:
        """Have the state of a log kept elsewhere, where somebody does that."""
        if self.witness is not None and self.keys is not None:
            self.witness(self.checkpoint(dataset).signed(self.keys))

    @contextmanager
    def _looking(self, dataset: str) -> Iterator[tuple[Connection, int]]:
        from sfumato.ledger.queries import find_dataset

        with self._store.read() as connection:
            yield connection, find_dataset(connection, dataset)
