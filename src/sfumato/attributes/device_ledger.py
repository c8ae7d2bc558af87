"""The person's own ledger: what each recipient has learnt so far, in one small file on the device.

Three kinds of limit are kept, all in exact nano-ε:

- towards one recipient: ε_r overall and t_j for attribute j, over all releases to it;
- towards all of them: guarantees add up when recipients collude, so the sum over recipients has caps of its own.

A charge is durable *before* the history is read: it is written to a new file, flushed to the disk and renamed over the old
one, under a lock. Whatever fails afterwards, the budget stays spent. Nothing is ever refunded.
"""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sfumato.errors import BudgetError, LedgerError
from sfumato.privacy.charge import Charge
from sfumato.privacy.sealed import write_durably
from sfumato.privacy.statement import Statement
from sfumato.privacy.units import Nano, as_epsilon

VERSION = 1
_KIND = "sfumato device ledger"
_NOTHING = Nano(0)


@dataclass(frozen=True)
class Limits:
    """What one recipient, and all of them together, may learn.

    Attributes
    ----------
    overall : int
        Towards one recipient, over all releases to it, in nano-ε.
    attributes : mapping of str to int
        The same for each attribute; one that is not listed has nothing to spend.
    together : int or None
        Towards all recipients together; None for no cap.
    attributes_together : mapping of str to int
        The same for each attribute; one that is not listed has no such cap.
    """

    overall: Nano
    attributes: Mapping[str, Nano]
    together: Nano | None = None
    attributes_together: Mapping[str, Nano] = field(default_factory=dict)


class DeviceLedger:
    """Spending per recipient and attribute, in memory or in a file.

    Parameters
    ----------
    path : path, optional
        The ledger file; without one the ledger lives as long as the object.

    Examples
    --------
    >>> ledger = DeviceLedger()
    >>> limits = Limits(overall=300, attributes={"x": 250}, together=400)
    >>> ledger.charge("adnet", Charge(200, attributes={"x": 100}), limits)
    >>> ledger.left("adnet", limits)
    {'overall': 100, 'x': 150, 'together': 200}
    >>> ledger.charge("adnet", Charge(200, attributes={"x": 100}), limits)
    Traceback (most recent call last):
    ...
    sfumato.errors.BudgetError: asked ε 2E-7, 1E-7 of 3E-7 left towards 'adnet'; wait for a new period, lower ...
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else os.fspath(path)
        self._guard = threading.Lock()
        self._state: dict[str, Any] = {"kind": _KIND, "version": VERSION, "spent": {}, "latest": {}}
        if self.path is not None and os.path.exists(self.path):
            self._read()

    # --- reading -------------------------------------------------------------------------------------------------------

    def spent(self, recipient: str) -> Charge:
        """What `recipient` has learnt so far."""
        entry = self._state["spent"].get(recipient, {"overall": 0, "attributes": {}})
        return Charge(entry["overall"], attributes=dict(entry["attributes"]))

    def spent_together(self) -> Charge:
        """What all recipients have learnt if they put it together."""
        total = 0
        each: dict[str, Nano] = {}
        for recipient in self._state["spent"]:
            one = self.spent(recipient)
            total += one.total
            for name, nano in one.attributes.items():
                each[name] = Nano(each.get(name, 0) + nano)
        return Charge(Nano(total), attributes=each)

    @property
    def recipients(self) -> tuple[str, ...]:
        """Who has learnt something so far."""
        return tuple(self._state["spent"])

    def left(self, recipient: str, limits: Limits) -> dict[str, int]:
        """What is left towards `recipient` under these `limits`, for each cap that applies (nano-ε)."""
        one, everybody = self.spent(recipient), self.spent_together()
        out = {"overall": limits.overall - one.total}
        out |= {name: limit - one.attributes.get(name, 0) for name, limit in limits.attributes.items()}
        if limits.together is not None:
            out["together"] = limits.together - everybody.total
        for name, limit in limits.attributes_together.items():
            out[name] = min(out.get(name, limit), limit - everybody.attributes.get(name, 0))
        return {name: max(0, value) for name, value in out.items()}

    def latest(self, recipient: str) -> dict[str, Any] | None:
        """The last release to `recipient` as it was stored, or None: showing it again costs nothing."""
        found: dict[str, Any] | None = self._state["latest"].get(recipient)
        return found

    # --- writing -------------------------------------------------------------------------------------------------------

    def charge(self, recipient: str, price: Charge, limits: Limits) -> None:
        """Spend `price` towards `recipient`, durably; or refuse, if it passes one of the `limits`, and change nothing.

        Raises
        ------
        BudgetError
            Says which cap and how much of it is left.
        """
        with self._locked():
            refusal = self._refusal(recipient, price, limits)
            if refusal:
                raise BudgetError(refusal)
            before = self.spent(recipient)
            each = {name: nano + price.attributes.get(name, 0) for name, nano in before.attributes.items()}
            each |= {name: nano for name, nano in price.attributes.items() if name not in each}
            self._write("spent", recipient, {"overall": before.total + price.total, "attributes": each})

    def remember(self, recipient: str, release: dict[str, Any]) -> None:
        """Keep `release` (noisy values only) as the last one to `recipient`."""
        with self._locked():
            self._write("latest", recipient, release)

    # --- streams and statements ----------------------------------------------------------------------------------------

    def name(self) -> str:
        """The name that this ledger gave itself, by which its streams and statements are known."""
        with self._locked():
            return self._named()

    def _named(self) -> str:
        found: dict[str, str] = self._state.get("names", {})
        if "own" not in found:
            self._write("names", "own", uuid.uuid4().hex)
        return str(self._state["names"]["own"])

    def new_stream(self) -> str:
        """The number of a stream that is to be kept in a file."""
        with self._locked():
            number = str(len(self._state.get("streams", {})) + 1)
            self._write("streams", number, 0)
        return number

    def move_stream(self, number: str, turn: int, keep: Callable[[], None]) -> None:
        """Move stream `number` on from its `turn`: `keep` writes its file, then the ledger writes the next turn."""
        with self._locked():
            if self._turn(number) != turn:
                raise LedgerError(
                    f"another process went on with stream {number}: this copy of it stops here, and its last step is lost"
                )
            keep()
            self._write("streams", number, turn + 1)

    def resume_stream(self, number: str, turn: int) -> None:
        """Refuse a file of stream `number` at an older `turn` than the ledger's; with one a turn ahead it catches up."""
        with self._locked():
            known = self._turn(number)
            if turn not in (known, known + 1):
                which = "older" if turn < known else "newer"
                raise LedgerError(
                    f"this file of stream {number} is {which} than what the ledger knows of it: noise that was told would "
                    "be drawn again. Restore the file and the ledger that belong together; nothing is released from it"
                )
            if turn > known:
                self._write("streams", number, turn)

    def _turn(self, number: str) -> int:
        found = self._state.get("streams", {}).get(number)
        if type(found) is not int:
            raise LedgerError(f"the ledger knows no stream {number!r}; nothing is released from its file")
        return found

    def statement(self) -> Statement:
        """What every recipient has learnt so far, for another ledger; the same one again as long as nothing was spent."""
        with self._locked():
            made: dict[str, str] = self._state.get("statements", {})
            digests = [made[str(i + 1)] for i in range(len(made))]
            spent = {recipient: self.spent(recipient) for recipient in sorted(self._state["spent"])}
            if digests:
                last = Statement(self._named(), len(digests), tuple(digests[:-1]), spent)
                if last.digest == digests[-1]:
                    return last
            new = Statement(self._named(), len(digests) + 1, tuple(digests), spent)
            self._write("statements", str(new.number), new.digest)
            return new

    def _refusal(self, recipient: str, price: Charge, limits: Limits) -> str | None:
        one, everybody = self.spent(recipient), self.spent_together()
        checks = [(price.total, one.total, limits.overall, f"towards {recipient!r}")]
        if limits.together is not None:
            checks.append((price.total, everybody.total, limits.together, "towards all recipients together"))
        for name, asked in price.attributes.items():
            who = f"for attribute {name!r} towards"
            # An attribute without a budget has none to spend.
            checks.append(
                (asked, one.attributes.get(name, _NOTHING), limits.attributes.get(name, _NOTHING), f"{who} {recipient!r}")
            )
            if name in limits.attributes_together:
                cap = limits.attributes_together[name]
                checks.append((asked, everybody.attributes.get(name, _NOTHING), cap, f"{who} all recipients together"))
        for asked, spent, limit, where in checks:
            if spent + asked > limit:
                return (
                    f"asked ε {as_epsilon(asked)}, {as_epsilon(max(0, limit - spent))} of {as_epsilon(limit)} left {where}; "
                    "wait for a new period, lower epsilon, or show the last release again with exhausted='repeat'"
                )
        return None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One writer at a time, who sees what the others wrote."""
        if self.path is None:
            with self._guard:
                yield
            return
        try:
            lock = os.open(self.path + ".lock", os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise LedgerError(
                f"cannot write beside {self.path}: {error.strerror}; choose a folder you may write to"
            ) from None
        try:
            _lock(lock)
            if os.path.exists(self.path):
                self._read()
            elif self._state["spent"] or "names" in self._state:
                raise LedgerError(f"{self.path} has disappeared; restore it, nothing is released without it")
            yield
        finally:
            os.close(lock)  # closing releases the lock

    def _read(self) -> None:
        assert self.path is not None
        try:
            with open(self.path, encoding="utf-8") as file:
                state = json.load(file)
            if not isinstance(state, dict) or state["kind"] != _KIND:
                raise KeyError
            version, entries = state["version"], list(state["spent"].values())
            sound = all(type(e["overall"]) is int and all(type(v) is int for v in e["attributes"].values()) for e in entries)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise LedgerError(
                f"{self.path} is not a readable device ledger; restore it, nothing is released without it"
            ) from None
        if version != VERSION or not sound:
            raise LedgerError(f"{self.path} is a ledger of version {version!r} or damaged; this software reads {VERSION}")
        self._state = state

    def _write(self, part: str, recipient: str, entry: Any) -> None:
        state = self._state | {part: self._state.get(part, {}) | {recipient: entry}}
        if self.path is not None:
            write_durably(self.path, json.dumps(state))
        self._state = state


def _lock(descriptor: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows has no flock
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX)
