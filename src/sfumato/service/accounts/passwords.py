"""Passwords: argon2id, and the same work for a name that nobody has.

Whether a name exists is told neither by the answer nor by its time: without a password to compare with, one is compared with
a password that nobody knows, at the same cost. At most `AT_ONCE` are worked on at a time in a process, because each takes
the memory that the settings say.
"""

from __future__ import annotations

import threading
import unicodedata
from functools import lru_cache
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError, VerifyMismatchError

from sfumato.service.context import Service
from sfumato.service.fresh import fresh_secret
from sfumato.service.http.problems import ProblemError

SHORTEST: Final = 12
LONGEST: Final = 256
AT_ONCE: Final = 4
_DIFFERENT: Final = 5
_turns = threading.BoundedSemaphore(AT_ONCE)
_PATIENCE = 20.0


@lru_cache
def _hasher(passes: int, memory: int) -> tuple[PasswordHasher, str]:
    hasher = PasswordHasher(time_cost=passes, memory_cost=memory, parallelism=1)
    return hasher, hasher.hash(fresh_secret())


def _hasher_of(service: Service) -> tuple[PasswordHasher, str]:
    return _hasher(service.settings.password_time, service.settings.password_memory)


class _Turn:
    def __enter__(self) -> None:
        if not _turns.acquire(timeout=_PATIENCE):
            raise ProblemError(503, "too many people sign in at this moment; try again", {"Retry-After": "5"})

    def __exit__(self, *_: object) -> None:
        _turns.release()


def check_new(password: str, name: str) -> None:
    """Refuse a password that is too easy.

    Parameters
    ----------
    password : str
    name : str
        Of the account.
    """
    if not SHORTEST <= len(password) <= LONGEST:
        raise ProblemError(
            422, f"a password has {SHORTEST} to {LONGEST} characters; a sentence of a few words is easy to remember"
        )
    if len(set(password)) < _DIFFERENT or password.casefold() in (name.casefold(), name.casefold() * 2):
        raise ProblemError(422, "this password is too easy to guess; take a sentence of a few words")


def hashed(service: Service, password: str) -> str:
    """What is stored of a password."""
    with _Turn():
        return _hasher_of(service)[0].hash(_same(password))


def fits(service: Service, stored: str | None, password: str) -> bool:
    """Whether a password is the stored one; without a stored one it is not, after the same work.

    Parameters
    ----------
    service : Service
    stored : str or None
        What `hashed` gave.
    password : str
    """
    hasher, nobodys = _hasher_of(service)
    with _Turn():
        try:
            hasher.verify(stored or nobodys, _same(password))
        except (VerifyMismatchError, VerificationError, InvalidHashError):
            return False
    return stored is not None


def is_outdated(service: Service, stored: str) -> bool:
    """Whether the settings ask for another cost than this password has."""
    return _hasher_of(service)[0].check_needs_rehash(stored)


def _same(password: str) -> str:
    """Keyboards write one letter in several ways; they are the same password."""
    return unicodedata.normalize("NFKC", password)
