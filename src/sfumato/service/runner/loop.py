"""The runner's round: take jobs, start each release when its window begins, settle it when its time is over.

A place is kept until the end of the job that has it is told, even when nothing is left to do: otherwise the next job would
begin earlier after one that was quick, and whoever asks for it could tell. The same holds for the next release of a job.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Row
from sqlalchemy.exc import SQLAlchemyError

from sfumato.errors import SfumatoError
from sfumato.service.context import Service
from sfumato.service.fresh import fresh_id
from sfumato.service.jobs import queue
from sfumato.service.jobs.slots import Window, windows
from sfumato.service.operations.health import sign_of_life
from sfumato.service.runner.checking import job_row, parts_of
from sfumato.service.runner.locking import Lock
from sfumato.service.runner.settling import kept, redated, settled
from sfumato.service.runner.work import started
from sfumato.service.store.database import now

PLACES: Final = 4
"""Jobs that a runner has at the same time."""

_log = logging.getLogger("sfumato.service.runner")


@dataclass
class Held:
    """A job that this runner has.

    Attributes
    ----------
    id : str
        The job.
    dataset : row
        What it releases from.
    all : list of str
        The names of its releases.
    todo : list of str or None
        What each window is for; ``None`` counts the heads of a private roster.
    windows : list of Window
    lock : Lock
    at : int
        The window that is running or comes next; as many as there are windows once all are settled.
    child : int or None
        The process that makes the release.
    begun : bool
        Whether the release of this window was started.
    """

    id: str
    dataset: Row[Any]
    all: list[str]
    todo: list[str | None]
    windows: list[Window]
    lock: Lock
    at: int = 0
    child: int | None = None
    begun: bool = False

    @property
    def window(self) -> Window | None:
        """The window that is running or comes next; ``None`` once all are over."""
        return self.windows[self.at] if self.at < len(self.windows) else None


class Runner:
    """Takes jobs and makes what they ask for.

    Parameters
    ----------
    service : Service
        What the web has, too; the private tables are in its settings only.
    places : int
        Jobs at the same time.
    lease : int
        Seconds after which another runner that gave no sign of life has lost its jobs.
    """

    def __init__(self, service: Service, *, places: int = PLACES, lease: int = queue.LEASE) -> None:
        self.service, self.places, self.lease = service, places, lease
        self.id = fresh_id("runner")
        self.held: list[Held] = []
        self.stopping = False
        self._beat = 0
        self._locked: dict[str, int] = {}  # jobs that somebody else works on, until when they are left alone

    def run(self, pause: float = 0.25) -> None:
        """Go round until `stopping` is set and nothing is left that was begun."""
        while not (self.stopping and not self.held):
            sign_of_life(self.service.settings.state)
            try:
                busy = self.round()
            except (SQLAlchemyError, SfumatoError) as error:  # the database is gone for a moment: nothing is lost by that
                _log.warning("the round is made again: %s", type(error).__name__)
                busy = False
            if not busy:
                time.sleep(pause)

    def round(self) -> bool:
        """Do whatever is due; whether a job was taken."""
        if self.held and now() - self._beat >= max(1, self.lease // 4):
            queue.beat(self.service.store, self.id)
            self._beat = now()
        for held in [*self.held]:
            self._advance(held)
        return not self.stopping and len(self.held) < self.places and self._take()

    def kill(self) -> None:
        """Stop at once: whoever starts next finds out what was charged."""
        for held in self.held:
            _end(held)

    def _take(self) -> bool:
        store = self.service.store
        self._locked = {job: until for job, until in self._locked.items() if until > now()}
        locks: list[Lock] = []

        def claim(job_id: str) -> bool:
            lock = Lock.taken(self.service.settings.state, job_id)
            if lock is None:
                self._locked[job_id] = now() + self.lease
                return False
            locks.append(lock)
            return True

        try:
            besides = [*self._locked, *(held.id for held in self.held)]
            job = queue.take(store, self.id, claim=claim, lease=self.lease, besides=besides)
            if job is None:
                return False
            self._hold(job, locks[0])
        except BaseException:
            for lock in locks:
                lock.free()
            raise
        return True

    def _hold(self, job: Row[Any], lock: Lock) -> None:
        """Find out what is left to do for a job, and fix when."""
        store = self.service.store
        self._beat = now()
        with store.read() as connection:
            dataset, names, heads = parts_of(connection, job)
        done = settled(self.service, job, dataset)  # of a runner before this one
        todo: list[str | None] = [name for name in names if name not in done]
        if heads and todo:
            todo.insert(0, None)
        settings = self.service.settings
        fixed = windows(now(), len(todo), longest=settings.longest_of(dataset.source), slot=settings.slot)
        if not queue.schedule(store, self.id, job.id, fixed):  # cancelled meanwhile
            lock.free(for_good=True)
            return
        redated(self.service, job.id, fixed[-1].told)
        self.held.append(Held(job.id, dataset, names, todo, fixed, lock))
        _log.info("job %s is taken for the %d. time; its end is told at %d", job.id, job.attempts + 1, fixed[-1].told)

    def _advance(self, held: Held) -> None:
        """Whatever is due for one job."""
        if held.child is not None:
            with suppress(ChildProcessError):
                if os.waitpid(held.child, os.WNOHANG)[0] == held.child:
                    held.child = None
        window = held.window
        if window is None:
            if self.stopping or now() >= held.windows[-1].told:
                self._drop(held, for_good=True)
        elif not held.begun:
            if self.stopping:
                if not queue.give_back(self.service.store, self.id, held.id):
                    queue.let_go(self.service.store, self.id, held.id)
                self._drop(held)
            elif now() >= window.start:
                held.begun = True
                if held.at < len(held.todo):
                    held.child = started(self.service, self.id, held.id, held.todo[held.at], window.settled)
        elif now() >= window.settled:
            self._settle(held)
        elif held.child is None and self._is_cancelled(held):
            self._drop(held, for_good=True)

    def _settle(self, held: Held) -> None:
        _end(held)
        with self.service.store.read() as connection:
            job = job_row(connection, held.id)
        if job.taken_by != self.id or job.state != "running":
            self._drop(held, for_good=job.state != "running")
            return
        settled(self.service, job, held.dataset)
        if held.at + 1 >= len(held.windows):
            complete = set(held.all) <= kept(self.service, held.id)
            queue.end(self.service.store, self.id, held.id, complete=complete)
        held.at, held.begun = held.at + 1, False

    def _is_cancelled(self, held: Held) -> bool:
        with self.service.store.read() as connection:
            return bool(job_row(connection, held.id).state == "cancelled")

    def _drop(self, held: Held, *, for_good: bool = False) -> None:
        held.lock.free(for_good=for_good)
        self.held.remove(held)


def _end(held: Held) -> None:
    """The process of a release is gone after this."""
    if held.child is None:
        return
    with suppress(ProcessLookupError):
        os.kill(held.child, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(held.child, 0)
    held.child = None
