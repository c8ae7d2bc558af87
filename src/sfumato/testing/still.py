"""Two runs that are alike leave two ledgers that are alike, while this holds.

A ledger's log has random salts, and its lines the minute: in two runs on neighbours they would differ, and all that is
hashed with them, whatever the mechanism does. Held still, what remains different depends on the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from sfumato.ledger import clock, log
from sfumato.releases import certificate

_SALT = "00" * log.SALT


@contextmanager
def still() -> Iterator[None]:
    """Hold the salts of ledgers and the minute; for runs on made-up data only.

    >>> with still():
    ...     log.fresh_salt() == log.fresh_salt()
    True
    """
    now, minute = clock.now(), certificate.minute()
    with (
        patch.object(log, "fresh_salt", lambda: _SALT),
        patch.object(clock, "now", lambda: now),
        patch.object(certificate, "minute", lambda: minute),
    ):
        yield
