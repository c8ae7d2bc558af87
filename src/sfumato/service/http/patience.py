"""How long the server waits for a client: a request must have arrived in time, and its answer must be taken.

uvicorn itself waits for ever for the rest of a head or of a body, and for somebody who does not read. Each such connection
costs a place, and a handful of them from one machine take all places. Here a connection is closed if a request is not there
in whole after so many seconds, from the first moment of the connection or the first byte of a later request on it, and if
the client takes nothing of its answer for as long. Time that the service itself takes to answer is not counted.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_STILL_SENDING = (h11.IDLE, h11.SEND_BODY)


def patient(seconds: float) -> type[H11Protocol]:
    """The protocol for ``uvicorn.Config(http=...)``.

    Parameters
    ----------
    seconds : float
        How long a request may take to arrive, and how long a client may take nothing of its answer.
    """
    return type("PatientProtocol", (_Patient,), {"patience": seconds})


class _Patient(H11Protocol):
    patience = 30.0

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._arriving: asyncio.TimerHandle | None = None
        self._taking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._arriving = self.loop.call_later(self.patience, self._give_up)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state not in _STILL_SENDING:
            _stop(self._arriving)
            self._arriving = None
        elif self._arriving is None:
            self._arriving = self.loop.call_later(self.patience, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        _stop(self._arriving)
        _stop(self._taking)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._taking is None:
            self._taking = self.loop.call_later(self.patience, self._give_up)

    def resume_writing(self) -> None:
        super().resume_writing()
        _stop(self._taking)
        self._taking = None

    def _give_up(self) -> None:
        # Not `close`, which would first wait for what was written to be read.
        self.transport.abort()


def _stop(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
