"""A stream in a file: it goes on after a restart with the same noise, and never twice from the same place.

The file holds the private sums of the stream and is the person's own: mode 600, replaced as a whole. Every step and every
answer that draws noise is written before it is told, in this order, under the lock of the device's ledger:

1. the ledger must stand at the turn that this stream stands at; if another process went on with it, it stops here;
2. the file is replaced by the state after the step, at the next turn;
3. the ledger writes that turn down.

*Why no node is answered for twice with other noise.* What was told was in the file before, and the ledger stands at its
turn. A crash before 2 leaves the old file: the step's input is lost, and noise that was drawn for it was told to nobody. A
crash between 2 and 3 leaves a file one turn ahead of the ledger, which goes on from there. An older copy of the file is
behind the ledger and is refused; so is a file of another ledger. Of two processes that hold one stream the first to write
moves the ledger on, and the other is refused before it tells anything new.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.attributes.device_ledger import DeviceLedger
from sfumato.attributes.policy import Policy
from sfumato.errors import LedgerError
from sfumato.privacy.items import recall

if TYPE_CHECKING:
    from sfumato.attributes.streams import AttributeStream

KIND = "sfumato attribute stream"
VERSION = 1


class StreamFile:
    """Where a stream is kept: its file, its ledger, its number there and its turn.

    Parameters
    ----------
    path : path
        The file.
    ledger : DeviceLedger
        The ledger that the stream was charged to, in a file too.
    number : str, optional
        The stream's number in the ledger; a new one if left out.
    turn : int
        How often it was written.
    """

    def __init__(self, path: str | os.PathLike[str], ledger: DeviceLedger, number: str | None = None, turn: int = 0) -> None:
        if ledger.path is None:
            raise LedgerError("a stream in a file needs a ledger in a file: Profile(..., ledger=DeviceLedger('me.json'))")
        self.path = os.fspath(path)
        self.ledger = ledger
        self.number = ledger.new_stream() if number is None else number
        self.turn = turn

    def write(self, stream: AttributeStream) -> None:
        """Bring the file and the ledger to where `stream` stands."""
        body = {"kind": KIND, "version": VERSION, "ledger": self.ledger.name(), "number": self.number, "turn": self.turn + 1}
        self.ledger.move_stream(self.number, self.turn, lambda: stream.keep(self.path, body))
        self.turn += 1

    @classmethod
    def read(cls, path: str | os.PathLike[str], ledger: DeviceLedger) -> tuple[StreamFile, dict[str, Any], Any]:
        """The file at `path`, what is public in it, and its private sums; refused if the `ledger` knows a later state."""
        public, private = recall(os.fspath(path), KIND, VERSION)
        if public["ledger"] != ledger.name():
            raise LedgerError(f"{os.fspath(path)} was charged to another ledger; nothing is released from it")
        ledger.resume_stream(public["number"], public["turn"])
        policy = Policy.from_json(public["policy"])
        if not policy.charge.within(ledger.spent(public["recipient"])):
            raise LedgerError(f"{os.fspath(path)} is a stream that the ledger was never charged for")
        return cls(path, ledger, public["number"], public["turn"]), {**public, "policy": policy}, private


def public_state(stream: AttributeStream) -> dict[str, Any]:
    """What a stream told, and what follows from the clock and the questions; as plain JSON."""
    return {
        "recipient": stream.recipient,
        "fanout": stream.fanout,
        "policy": stream.policy.to_json(),
        "levels": stream._levels,
        "clock": stream._clock,
        "before": stream._before,
        "past": [list(epoch) for epoch in stream._past],
        "finished": stream._finished.tolist(),
        "noisy": stream._noisy.tolist(),
        "fresh": list(stream._fresh),
        "draws": list(stream._draws),
        "notes": list(stream._notes),
    }


def put_back(stream: AttributeStream, public: dict[str, Any], private: Any) -> None:
    """Set a new stream to the state that a file holds."""
    stream._open_epoch(int(public["levels"]))
    stream._clock, stream._before = int(public["clock"]), int(public["before"])
    stream._past = [(int(levels), int(draws)) for levels, draws in public["past"]]
    stream._finished = np.array(public["finished"], dtype=np.int64)
    stream._noisy = np.array(public["noisy"], dtype=np.int64)
    stream._fresh = [bool(fresh) for fresh in public["fresh"]]
    stream._draws = [int(draws) for draws in public["draws"]]
    stream._note(tuple(public["notes"]))
    stream._hold(private)
