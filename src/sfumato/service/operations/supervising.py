"""The supervisor: the web in this process, the runner in a process of its own that is started again when it dies.

To stop (SIGTERM or Ctrl-C): the web takes no more requests and answers those it has, for up to `web.STOP_SECONDS`; the
runner takes no more jobs and finishes what was charged. What it cannot finish stays charged and is found by the next runner.
A second signal stops at once.
"""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sfumato.service.settings import Settings

LONGEST_PAUSE: Final = 60.0
STEADY_SECONDS: Final = 60.0
_log = logging.getLogger("sfumato.service.supervisor")


def runner_command(config: Path) -> list[str]:
    """How the runner is started."""
    return [sys.executable, "-m", "sfumato.service.runner", "--with-parent", "--config", str(config)]


class Supervised:
    """A process that is started again when it dies, after pauses that grow.

    Parameters
    ----------
    command : sequence of str
        How it is started.
    pause : float
        Seconds before the second start; they double, and begin anew once it has lived for a while.
    """

    def __init__(self, command: Sequence[str], *, pause: float = 1.0) -> None:
        self._command, self._first = list(command), pause
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="supervisor", daemon=True)
        self.starts = 0

    @property
    def pid(self) -> int | None:
        """The process that runs now."""
        child = self._child
        return None if child is None or child.poll() is not None else child.pid

    def start(self) -> None:
        """Start it, and watch over it from now on."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Start it no more, and ask it to end what it does; asked again, it stops at once."""
        self._stopping.set()
        with self._lock:
            if self._child is not None and self._child.poll() is None:
                self._child.send_signal(signal.SIGTERM)

    def wait(self, seconds: float, hurry: Callable[[], bool] = bool) -> bool:
        """Wait until it has ended, and kill it after so many `seconds` or as soon as `hurry` says so.

        Returns
        -------
        bool
            Whether it ended by itself.
        """
        if self._thread.ident is None:
            return True
        end = time.monotonic() + seconds
        while self._thread.is_alive() and time.monotonic() < end and not hurry():
            self._thread.join(0.1)
        by_itself = not self._thread.is_alive()
        with self._lock:
            if self._child is not None and self._child.poll() is None:
                by_itself = False
                self._child.kill()
        self._thread.join(5)
        return by_itself

    def _watch(self) -> None:
        pause = self._first
        while not self._stopping.is_set():
            began = time.monotonic()
            with self._lock:
                if self._stopping.is_set():
                    return
                self._child = subprocess.Popen(self._command, stdin=subprocess.PIPE, start_new_session=True)
                self.starts += 1
            code = self._child.wait()
            assert self._child.stdin is not None
            self._child.stdin.close()  # it is the runner's sign that this process lives
            if self._stopping.is_set():
                return
            if time.monotonic() - began > STEADY_SECONDS:
                pause = self._first
            _log.warning("the runner ended with code %d and is started again in %.0f s", code, pause)
            self._stopping.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


@contextmanager
def counted_signals() -> Iterator[Callable[[], int]]:
    """Count SIGTERM and SIGINT instead of being ended by them: uvicorn raises them again once it has stopped."""
    seen = 0

    def note(_number: int, _frame: Any) -> None:
        nonlocal seen
        seen += 1

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield lambda: seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def serve(
    settings: Settings,
    *,
    say: Callable[[str], None],
    started: Callable[[str], None] | None = None,
    command: Sequence[str] | None = None,
) -> bool:
    """Run the service until it is told to stop.

    Parameters
    ----------
    settings : Settings
        Of the web process.
    say : callable
        Takes a sentence for whoever started it.
    started : callable, optional
        Called with the address once the service answers.
    command : sequence of str, optional
        How the runner is started, see `runner_command`; left out, it is started elsewhere.

    Returns
    -------
    bool
        Whether everything that was begun could be finished.
    """
    from sfumato.service.context import Service
    from sfumato.service.operations import web
    from sfumato.service.planning import previewing

    web.check_place(settings)
    socket = web.listening(settings)
    host, port = socket.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    if web.is_only_here(settings):
        settings = replace(settings, base_url=f"http://{shown}:{port}")  # whatever port was asked for, or was free
    server = web.server_for(web.application(Service.opened(settings)), settings)
    runner = Supervised(command or ())

    def watch() -> None:
        while not server.started and not server.should_exit:
            time.sleep(0.02)
        if server.started:
            say(f"Sfumato listens on http://{shown}:{port}, for people at {settings.base_url}. Ctrl-C stops it.")
            if started is not None:
                started(settings.base_url)
        while not server.should_exit:
            time.sleep(0.05)
        runner.ask_to_stop()

    previewing.workers().warm()
    with counted_signals() as signals:
        if command is not None:
            runner.start()
        threading.Thread(target=watch, name="watch", daemon=True).start()
        try:
            server.run(sockets=[socket])
        finally:
            server.should_exit = True
            said = signals()
            if runner.pid is not None:
                say("The runner finishes what was charged; a second signal stops it at once, and its job begins anew later.")
            whole = runner.wait(settings.longest_of() + settings.slot + 10, lambda: signals() > said)
            previewing.close()
    say("Stopped.")
    return whole
