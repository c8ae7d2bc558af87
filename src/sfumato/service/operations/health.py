"""Whether the parts of the service answer."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from sfumato.errors import SfumatoError
from sfumato.service.store import schema
from sfumato.service.store.database import now

if TYPE_CHECKING:
    from sfumato.service.context import Service

SIGN: Final = "runner.alive"
"""A file in the state folder whose time the runner sets every few seconds, whether it works or waits."""

LATE: Final = 30
"""Seconds after which a runner that gave no sign of life counts as dead."""

STATES: Final = ("waiting", "running", "finished", "failed", "cancelled")
_log = logging.getLogger(__name__)


def sign_of_life(state: Path) -> None:
    """Say that the runner lives. It is said at fixed intervals from a thread of its own, so it tells nothing of any job.

    Parameters
    ----------
    state : Path
        The state folder.
    """
    path = state / SIGN
    path.touch(mode=0o640)
    os.utime(path)


def runner_lives(state: Path) -> bool:
    """Whether the runner gave a sign of life lately."""
    try:
        return time.time() - (state / SIGN).stat().st_mtime < LATE
    except OSError:
        return False


def ready(service: Service) -> dict[str, bool]:
    """Whether the database, the ledger and the runner answer."""
    return {
        "database": _answers(lambda: _look(service)),
        "ledger": _answers(lambda: service.ledger.datasets()),
        "runner": runner_lives(service.settings.state),
    }


def jobs_told(service: Service) -> dict[str, int]:
    """How many jobs there are of each state, as their owners are told: one that ended runs until its slot."""
    jobs, moment = schema.jobs, now()
    held = jobs.c.state.in_(("finished", "failed")) & (jobs.c.deliver_at > moment)
    query = select(jobs.c.state, held.label("held"), func.count()).group_by(jobs.c.state, held)
    found = dict.fromkeys(STATES, 0)
    with service.store.read() as connection:
        for state, hidden, number in connection.execute(query):
            found["running" if hidden else state] += number
    return found


def _look(service: Service) -> None:
    with service.store.read() as connection:
        connection.execute(select(schema.accounts.c.id).limit(1)).all()


def _answers(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except (SQLAlchemyError, SfumatoError, OSError):
        _log.warning("a part of the service does not answer", exc_info=True)
        return False
    return True
