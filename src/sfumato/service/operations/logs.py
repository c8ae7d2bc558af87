"""Logs as lines of JSON that hold no value.

A request is told by its route's template, its status, the account's identifier and the minute: no body, no query string, no
address that was filled in, no name. The minute, not the second, as everywhere in Sfumato: a finer moment would tell how long
a table took to read. An error is told by its type and the lines of code that it came from, not by its text, which may quote
what somebody sent. Loggers below the service (prices, steps, queries) are heard from warnings on.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from typing import Any, Final, TextIO

from sfumato.errors import to_show

_FIELDS: Final = ("request", "method", "route", "status", "account")
LOGGER: Final = logging.getLogger("sfumato.service")


class JsonLines(logging.Formatter):
    """One JSON object for each line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a `record`."""
        line: dict[str, Any] = {
            "minute": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": to_show(record.getMessage()),
        }
        line |= {name: getattr(record, name) for name in _FIELDS if hasattr(record, name)}
        if record.exc_info and record.exc_info[1] is not None:
            line |= told(record.exc_info[1])
        return json.dumps(line, ensure_ascii=True)


def told(error: BaseException) -> dict[str, Any]:
    """What a log may say of an error.

    >>> told(ValueError("patient 7"))
    {'error': 'ValueError', 'at': []}
    """
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
    return {"error": type(error).__name__, "at": places[-8:]}


class _OursOnly(logging.Filter):
    """Servers and drivers may write warnings; what they say below that may hold an address or a statement."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.name.startswith("sfumato") or record.levelno >= logging.WARNING


class _WithoutText(JsonLines):
    """Lines of other packages: that there is one, from where, at which level."""

    def format(self, record: logging.LogRecord) -> str:
        if not record.name.startswith("sfumato"):
            record = logging.makeLogRecord(record.__dict__ | {"msg": "a message of another package", "args": ()})
        return super().format(record)


def log_json(stream: TextIO | None = None, *, level: int = logging.INFO) -> logging.Handler:
    """Let every logger of this process write lines of JSON.

    Parameters
    ----------
    stream : file, optional
        Where to; standard error if left out.
    level : int
        From which level on the service itself speaks.

    Returns
    -------
    Handler
        The one handler that is left.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_WithoutText())
    handler.addFilter(_OursOnly())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    ours = logging.getLogger("sfumato")  # whatever `sfumato --verbose` set up: its lines have names and conditions
    ours.handlers[:], ours.propagate = [], True
    ours.setLevel(logging.WARNING)
    LOGGER.setLevel(level)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):  # the access log has whole addresses
        logger = logging.getLogger(name)
        logger.handlers[:] = []
        logger.propagate = name != "uvicorn.access"
    return handler
