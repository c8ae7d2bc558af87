"""Workers for previews: a few warm processes, each answer within the settings' 5 seconds and a gigabyte, or refused.

A plan is written by whoever uses the service, and its price may take any time and memory to compute. So it is computed
elsewhere: in a process that is ended when it takes too long, and that the operating system stops when it takes too much. The
next question finds another process. Nobody waits behind more than a few others: who comes then is asked to come again.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from sfumato import errors
from sfumato.errors import SfumatoError
from sfumato.service.http.problems import ProblemError
from sfumato.service.planning.trying import plain_settings
from sfumato.service.planning.worker import LENGTH, packed

if TYPE_CHECKING:
    from sfumato.service.settings import Settings

WORKERS: Final = 2
MOST_WAITING: Final = 16
"""Fewer than the threads that answer requests: whoever previews much leaves some to the others."""
START_SECONDS: Final = 120.0
_LARGEST: Final = 64_000_000
COMMAND: Final = (sys.executable, "-m", "sfumato.service.planning.worker")

TOO_LONG = "refused: this would take longer than {seconds} s to preview; ask for fewer releases, columns or cells"
TOO_MUCH = "refused: this would take more than {gigabytes:g} GB to preview; ask for fewer releases, columns or cells"
BROKE = "refused: the preview ended by itself; ask for fewer releases, columns or cells"
BUSY = "previews are busy; ask again in a second"


class _EndedError(Exception):
    """The process is gone, or is stopped because its time is over."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Worker:
    """One process, which answers one question at a time."""

    def __init__(self, command: Sequence[str]) -> None:
        quiet = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **quiet},
            start_new_session=True,  # a Ctrl-C in the terminal is for the service, which ends its workers itself
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._into, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._into, False)
        os.set_blocking(self._from, False)
        self._ready = False

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process is there."""
        return self._process.poll() is None

    def ask(self, message: Any, seconds: float) -> Any:
        """The answer to a message; `_EndedError` if there is none in time. Starting is not counted."""
        if not self._ready:
            self._receive(time.monotonic() + START_SECONDS)
            self._ready = True
        deadline = time.monotonic() + seconds
        self._send(packed(message), deadline)
        return self._receive(deadline)

    def end(self) -> None:
        """Stop the process, whatever it does."""
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                assert stream is not None
                stream.close()
        self._process.wait()

    def _send(self, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        while view:
            self._wait([], [self._into], deadline)
            try:
                view = view[os.write(self._into, view) :]
            except BlockingIOError:
                continue
            except OSError:
                raise _EndedError(BROKE) from None

    def _receive(self, deadline: float) -> Any:
        size = LENGTH.unpack(self._exactly(LENGTH.size, deadline))[0]
        if size > _LARGEST:
            raise _EndedError(TOO_MUCH)
        return json.loads(self._exactly(size, deadline))

    def _exactly(self, size: int, deadline: float) -> bytes:
        found = bytearray()
        while len(found) < size:
            self._wait([self._from], [], deadline)
            try:
                part = os.read(self._from, size - len(found))
            except BlockingIOError:
                continue
            except OSError:
                part = b""
            if not part:
                raise _EndedError(BROKE)
            found += part
        return bytes(found)

    def _wait(self, readable: list[int], writable: list[int], deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0 or not any(select.select(readable, writable, [], left)[:2]):
            raise _EndedError(TOO_LONG)


class Workers:
    """A few workers and those who wait for one.

    Parameters
    ----------
    most : int
        Processes at a time; one is started when the others are busy.
    waiting : int
        Callers that may wait; the next one is told to come again.
    command : sequence of str
        What starts a process.
    """

    def __init__(self, *, most: int = WORKERS, waiting: int = MOST_WAITING, command: Sequence[str] = COMMAND) -> None:
        self._most, self._most_waiting, self._command = most, waiting, command
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self._waiting = 0
        self._closed = False
        self._turn = threading.Condition()

    def warm(self) -> None:
        """Start the processes before anybody asks; returns at once."""
        with self._turn:
            while len(self._idle) + len(self._busy) < self._most:
                self._idle.append(Worker(self._command))

    def do(self, settings: Settings, what: str, **given: Any) -> Any:
        """What a worker answers to a question of `trying`; its errors are raised here.

        Raises
        ------
        ProblemError
            422 if it takes too long or too much, 429 if too many wait.
        """
        limits = settings.limits
        said = {"seconds": limits.preview_seconds, "gigabytes": round(limits.preview_bytes / 2**30, 3)}
        message: dict[str, Any] = {"do": what, "settings": plain_settings(settings), "with": given}
        message |= {"bytes": limits.preview_bytes, "seconds": limits.preview_seconds}
        worker = self._take(2 * limits.preview_seconds)
        try:
            reply = worker.ask(message, limits.preview_seconds)
        except _EndedError as ended:
            self._replace(worker)
            raise ProblemError(422, ended.why.format_map(said)) from None
        except BaseException:
            self._replace(worker)
            raise
        if reply.get("error") in ("memory", "failed"):  # what it holds now nobody knows
            self._replace(worker)
            raise ProblemError(422, TOO_MUCH.format_map(said) if reply["error"] == "memory" else BROKE)
        self._give_back(worker)
        if "error" in reply:
            kind = getattr(errors, reply["error"], SfumatoError)
            raise kind(reply["why"])
        return reply["ok"]

    def close(self) -> None:
        """End every process; one that is asked for later is started anew."""
        with self._turn:
            ending = [*self._idle, *self._busy]
            self._idle.clear()
            self._closed = True  # whoever waits for an answer of one that ends does not start another
            self._turn.notify_all()
        for worker in ending:
            worker.end()

    def _take(self, patience: float) -> Worker:
        with self._turn:
            if not self._idle and len(self._busy) >= self._most:
                if self._waiting >= self._most_waiting:
                    raise ProblemError(429, BUSY, {"Retry-After": "1"})
                self._waiting += 1
                try:
                    free = self._turn.wait_for(lambda: self._idle or len(self._busy) < self._most, patience)
                finally:
                    self._waiting -= 1
                if not free:
                    raise ProblemError(429, BUSY, {"Retry-After": "2"})
            try:
                worker = self._living() or Worker(self._command)
            except OSError:  # no room for another process
                raise ProblemError(429, BUSY, {"Retry-After": "5"}) from None
            self._closed = False
            self._busy.add(worker)
            return worker

    def _living(self) -> Worker | None:
        """An idle worker; one that died while nobody asked it is nobody's fault, and is forgotten."""
        while self._idle:
            worker = self._idle.pop()
            if worker.alive:
                return worker
            worker.end()
        return None

    def _give_back(self, worker: Worker) -> None:
        with self._turn:
            self._busy.discard(worker)
            self._idle.append(worker)
            self._turn.notify()

    def _replace(self, worker: Worker) -> None:
        """End a worker and start another one, which is warm by the time it is asked."""
        worker.end()
        with self._turn:
            self._busy.discard(worker)
            with contextlib.suppress(OSError):  # then the next one to ask starts it
                self._idle += [] if self._closed else [Worker(self._command)]
            self._turn.notify()


_shared: list[Workers] = []
_lock = threading.Lock()


def workers() -> Workers:
    """The workers of this process, whichever services it has: what they need comes with each question."""
    with _lock:
        if not _shared:
            _shared.append(Workers())
            atexit.register(close)
        return _shared[0]


def close() -> None:
    """End the workers of this process, for a graceful stop."""
    for each in list(_shared):
        each.close()
