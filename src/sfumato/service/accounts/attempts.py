"""Guesses, counted in the database so that several web processes count together.

Every try is counted *before* it is checked, so that many at once are many; one that succeeds is taken back. From `free`
tries on each one is followed by a pause that doubles up to `longest`. A try during a pause is refused without being looked
at or counted: a stranger can make the pause begin, never make it longer than that.

Sign-ins count three times: for the name from this address, with long pauses; for the name from anywhere and for the address
with any name, with short ones. Who has signed in from an address before is held up there by the first count only, which is
their own: strangers elsewhere do not lock them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, delete, select, update

from sfumato.service.context import Service
from sfumato.service.http.problems import ProblemError
from sfumato.service.store import database, schema
from sfumato.service.store.inserting import insert_new

KNOWN: Final = 30 * 86_400
_attempts = schema.attempts


@dataclass(frozen=True)
class Rule:
    """How often something may be tried.

    Attributes
    ----------
    free : int
        Tries without a pause.
    longest : int
        Seconds of the longest pause.
    first : int
        Seconds of the first one.
    forgotten : int
        Seconds after which the count begins anew.

    Examples
    --------
    >>> [Rule(3, 60).pause(count) for count in (1, 2, 3, 4, 5, 50)]
    [0, 0, 2, 4, 8, 60]
    """

    free: int
    longest: int
    first: int = 2
    forgotten: int = 3600

    def pause(self, count: int) -> int:
        """Seconds to wait after so many tries."""
        return 0 if count < self.free else min(self.first << min(count - self.free, 30), self.longest)


@dataclass(frozen=True)
class Counted:
    """A try that was counted: its bucket, and the pause that it began."""

    bucket: str
    until: int | None


def take(service: Service, tries: Sequence[tuple[str, Rule]]) -> list[Counted]:
    """Count a try in each bucket, or refuse it if there is a pause in one.

    Parameters
    ----------
    service : Service
    tries : sequence
        Pairs of what is tried, as text, and its rule.

    Returns
    -------
    list
        For `take_back`, if the try succeeds.
    """
    moment = database.now()
    # In one order for everybody: two who wait for each other's buckets would wait for ever.
    rules = sorted((_bucket(service, what), rule) for what, rule in dict(tries).items())
    counted = []
    with service.store.write() as connection:
        # Not those that another one is deleting at this moment: two might wait for each other.
        old = select(_attempts.c.bucket).where(_attempts.c.expires_at < moment).with_for_update(skip_locked=True)
        connection.execute(delete(_attempts).where(_attempts.c.bucket.in_(old)))
        rows = []
        for bucket, rule in rules:
            insert_new(connection, _attempts, bucket=bucket, tries=0, at=moment, expires_at=moment + rule.forgotten)
            rows.append(connection.execute(select(_attempts).where(_attempts.c.bucket == bucket).with_for_update()).one())
        wait = max(((row.until or 0) - moment for row in rows), default=0)
        if wait > 0:
            raise too_many(wait)
        for (bucket, rule), row in zip(rules, rows, strict=True):
            count = 1 if row.at + rule.forgotten < moment else row.tries + 1
            pause = rule.pause(count)
            until = moment + pause if pause else None
            connection.execute(
                update(_attempts)
                .where(_attempts.c.bucket == bucket)
                .values(tries=count, at=moment, until=until, expires_at=moment + max(rule.forgotten, pause))
            )
            counted.append(Counted(bucket, until))
    return counted


def take_back(service: Service, counted: Sequence[Counted]) -> None:
    """A try that succeeded was no guess."""
    with service.store.write() as connection:
        _taken_back(connection, counted)


def signed_in(service: Service, counted: Sequence[Counted], name: str, address: str) -> None:
    """Somebody of this name has signed in from this address: their own count there begins anew, and they are known there."""
    name, moment = name.casefold(), database.now()
    known = _bucket(service, f"known {address} {name}")
    with service.store.write() as connection:
        _taken_back(connection, counted)
        connection.execute(delete(_attempts).where(_attempts.c.bucket == _bucket(service, _own(name, address))))
        if not insert_new(connection, _attempts, bucket=known, tries=0, at=moment, expires_at=moment + KNOWN):
            connection.execute(update(_attempts).where(_attempts.c.bucket == known).values(expires_at=moment + KNOWN))


def sign_in_tries(service: Service, name: str, address: str) -> list[tuple[str, Rule]]:
    """What a try to sign in counts for, the name at this address first."""
    limits, name = service.settings.limits, name.casefold()
    own = (_own(name, address), Rule(limits.failures, limits.lock))
    if _is_known(service, name, address):
        return [own]
    short = min(60, limits.lock)
    return [
        own,
        (f"sign in {name}", Rule(4 * limits.failures, short)),
        (f"sign in from {address}", Rule(limits.sign_ins, short)),
    ]


def too_many(wait: int) -> ProblemError:
    """The refusal, with the time to wait."""
    return ProblemError(429, f"that was tried too often; wait {wait} s and try again", {"Retry-After": str(wait)})


def _is_known(service: Service, name: str, address: str) -> bool:
    mine = _attempts.c.bucket == _bucket(service, f"known {address} {name}")
    with service.store.read() as connection:
        found = connection.execute(select(_attempts.c.expires_at).where(mine)).scalar()
    return found is not None and found >= database.now()


def _taken_back(connection: Connection, counted: Sequence[Counted]) -> None:
    for one in counted:
        mine = _attempts.c.bucket == one.bucket
        connection.execute(update(_attempts).where(mine, _attempts.c.tries > 0).values(tries=_attempts.c.tries - 1))
        if one.until is not None:
            connection.execute(update(_attempts).where(mine, _attempts.c.until == one.until).values(until=None))


def _own(name: str, address: str) -> str:
    return f"sign in {address} {name}"


def _bucket(service: Service, what: str) -> str:
    """Under the service's key: the table tells neither names nor addresses."""
    return service.sealer.digest(what, "attempts")
