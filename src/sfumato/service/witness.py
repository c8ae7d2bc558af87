"""A witness beside the database: the newest signed checkpoint of every log, in files of the state folder.

A database that was set back to yesterday looks as good as new: it adds up, its log holds together, and budgets that were
spent since are there again. Only something outside of it can tell. After every charge and every decision, before anything
that comes of it is seen, the state of the log is written here, durably. When the service starts, each log must be the one of
its witness, or go on from it; else nothing starts.

*Never ahead.* A checkpoint is made of what was committed to disk, so a crash leaves the witness behind the database and
never before it. *What it does not find*: state folder and database set back together. For that there are the checkpoints
that officers and recipients keep.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sfumato.errors import InputError, LedgerError
from sfumato.ledger import Ledger
from sfumato.ledger.proofs import Checkpoint
from sfumato.ledger.signing import Keys, verify_signed, write_durably

FOLDER: Final = "witness"
_SMALLEST = "0.000000001"


class Witness:
    """The checkpoints that a service keeps. Open it with `opened`.

    Parameters
    ----------
    folder : Path
        Where the files are, one for each dataset.
    keys : Keys
        Those that signed them.
    """

    def __init__(self, folder: Path, keys: Keys) -> None:
        self.folder, self.keys = folder, keys

    @classmethod
    def opened(cls, state: Path, keys: Keys) -> Witness:
        """The witness in a state folder."""
        folder = state / FOLDER
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return cls(folder, keys)

    def keep(self, checkpoint: Mapping[str, Any]) -> None:
        """Keep a signed checkpoint, if it is newer than the one that is there; on disk when this returns."""
        new = Checkpoint.from_dict(checkpoint)
        with self._alone():
            path = self._path(new.dataset)
            if path.exists() and self._read(path).size >= new.size:
                return
            write_durably(path, json.dumps(dict(checkpoint), indent=1) + "\n")

    def kept(self) -> list[Checkpoint]:
        """What is kept, once the signatures were checked."""
        return [self._read(path) for path in sorted(self.folder.glob("*.json"))]

    def check(self, ledger: Ledger) -> None:
        """Refuse a ledger that is not the one of which checkpoints were kept, or was set back.

        Raises
        ------
        LedgerError
            It names the dataset, what was kept and what is there.
        """
        there = set(ledger.datasets())
        for kept in self.kept():
            fault = self._fault(ledger, kept, there)
            if fault is not None:
                raise LedgerError(
                    f"the ledger was set back or exchanged: {fault}. Nothing starts, since budgets that were spent would be "
                    "there again. Restore the newest copy of the ledger's database; if there is none, `sfumato service "
                    f"close {kept.dataset!r}` writes down that entries were lost and closes that dataset to further releases"
                )
        for dataset in there:
            self.keep(ledger.checkpoint(dataset).signed(self.keys))

    def _fault(self, ledger: Ledger, kept: Checkpoint, there: set[str]) -> str | None:
        before = f"the log of {kept.dataset!r} had {kept.size} entries with the root {kept.root[:16]}..."
        if kept.dataset not in there:
            return f"{before}, and the ledger has no such dataset"
        now = ledger.checkpoint(kept.dataset)
        if now.size < kept.size:
            return f"{before}, and has {now.size} with the root {now.root[:16]}... now"
        then = ledger.checkpoint(kept.dataset, kept.size)
        return None if then == kept else f"{before}, and the first {kept.size} have the root {then.root[:16]}... now"

    def close(self, ledger: Ledger, dataset: str, reason: str) -> None:
        """Write down that entries of a dataset's log were lost, and close it: nothing more is charged to it, ever.

        Parameters
        ----------
        ledger : Ledger
        dataset : str
            One that `check` refuses.
        reason : str
            What happened, for the record.
        """
        there = set(ledger.datasets())
        kept = next((one for one in self.kept() if one.dataset == dataset), None)
        if kept is None or self._fault(ledger, kept, there) is None:
            raise InputError(f"nothing of {dataset!r} was lost: its log is the one that was kept. It stays open")
        found = ledger.checkpoint(dataset) if dataset in there else Checkpoint(dataset, 0, hashlib.sha256(b"").hexdigest())
        if dataset not in there:  # so that nobody registers the name again, with fresh budgets
            ledger.register(dataset, epsilon=_SMALLEST)
        ledger.close(dataset, {"kept": kept.to_dict(), "found": found.to_dict(), "reason": reason})
        with self._alone():
            path = self._path(dataset)
            os.replace(path, path.with_suffix(f".lost-{kept.size}"))
            write_durably(path, json.dumps(ledger.checkpoint(dataset).signed(self.keys), indent=1) + "\n")

    def _path(self, dataset: str) -> Path:
        return self.folder / f"{hashlib.sha256(dataset.encode()).hexdigest()[:32]}.json"

    def _read(self, path: Path) -> Checkpoint:
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            verify_signed(found, self.keys.public())
            return Checkpoint.from_dict(found)
        except (OSError, ValueError, InputError, AttributeError):
            raise LedgerError(
                f"the checkpoint {path} is damaged, or the keys are not those that signed it; restore the state folder "
                "and its keys from a backup"
            ) from None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One process at a time: the newer checkpoint must not be replaced by an older one."""
        handle = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)
