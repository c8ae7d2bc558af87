"""Replay fuzzing: random tables, one person taken out from anywhere, the same answers, and nothing may differ.

A mechanism is run on a random table and, with the same answers, on the table without all rows of one person. Four things
must hold, each of which a reviewer would otherwise have to believe:

- both are asked the same questions at the same rates and prices;
- what a question's exact value moves by costs no more than that question was charged;
- both publish the same, or fail alike;
- both leave the same bytes behind when what they publish is stored.
"""

from __future__ import annotations

import math
import pickle
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.privacy.source import Generator, Seeded
from sfumato.testing.comparison import Compared, compare
from sfumato.testing.replaying import alike
from sfumato.testing.still import still
from sfumato.testing.tape import LeakError, Tape

T = TypeVar("T")
_FAILING = 10  # tables on which everything fails: then the mistake is not in the data
_ROUNDING = 1 + 1e-9  # of losses that are computed in float64


@dataclass(frozen=True, eq=False)
class Rows(Generic[T]):
    """A table whose rows can be left out.

    Parameters
    ----------
    owners : integers
        Whose row it is, one number per row.
    keeping : function of a mask
        The table with the rows that the mask keeps.
    groups : integers, optional
        The person group of each row, where people have budgets of their own: what that group is charged then counts.

    Examples
    --------
    >>> ages = np.array([31, 77, 64])
    >>> Rows([0, 1, 1], lambda mask: ages[mask]).keeping(np.array([True, False, False])).tolist()
    [31]
    """

    owners: Sequence[int] | NDArray[np.int64]
    keeping: Callable[[NDArray[np.bool_]], T]
    groups: NDArray[np.int64] | None = None


def fuzz(
    run: Callable[[T, Tape], Any],
    tables: Callable[[Generator], Rows[T]],
    *,
    seconds: float = 2.0,
    least: int = 1,
    seed: int = 0,
) -> int:
    """Replay runs on random tables to neighbours that lack a person from anywhere in them.

    Parameters
    ----------
    run : function of a table and a source
        Makes its Meter (or estimator, or session) with that source and returns what it publishes.
    tables : function of a random generator
        Makes a random table, as `Rows`; the rows of one person are left out together.
    seconds : float
        How long to go on.
    least : int
        How many tables to try at least, however long it takes.
    seed : int
        Of the first table; the next one has the next seed.

    Returns
    -------
    int
        The number of tables that were tried.

    Raises
    ------
    LeakError
        What differs, with the seed of the table and the person who was left out.
    InputError
        If every run fails: then nothing was tried.

    Examples
    --------
    >>> from sfumato.privacy import Exact, Meter
    >>> def tables(random):
    ...     ages = random.integers(0, 3, size=8)
    ...     return Rows(range(8), lambda mask: ages[mask])
    >>> def histogram(ages, source):
    ...     return Meter(source=source).laplace(Exact(np.bincount(ages, minlength=3)), rate=10**8)
    >>> fuzz(histogram, tables, seconds=0)
    1
    >>> fuzz(lambda ages, source: len(ages), tables, seconds=0)
    Traceback (most recent call last):
    ...
    sfumato.testing.tape.LeakError: table 0 without person ...: something else is published after the same answers
    """
    end, tried, failures = time.monotonic() + seconds, 0, 0
    while tried < least or time.monotonic() < end:
        random = Seeded(seed + tried).generator()
        failure = _try(run, tables(random), random, seed + tried)
        tried += 1
        failures += failure is not None
        if failures == tried >= min(least, _FAILING) and (tried >= _FAILING or time.monotonic() >= end):
            raise InputError(f"nothing was tried: every run fails, the last one with {failure}")
    return tried


def _try(run: Callable[[T, Tape], Any], rows: Rows[T], random: Generator, seed: int) -> str | None:
    """Raise if the two runs differ; else how both failed, or None."""
    with still():
        return _both(run, rows, random, seed)


def _both(run: Callable[[T, Tape], Any], rows: Rows[T], random: Generator, seed: int) -> str | None:
    owners = np.asarray(rows.owners)
    person = int(random.choice(owners))
    place = f"table {seed} without person {person}"
    kept = owners != person
    first = Tape(seed)
    published = _outcome(run, rows.keeping(np.ones_like(kept)), first)
    second = first.again(lacks=np.flatnonzero(~kept).tolist())
    try:
        again = _outcome(run, rows.keeping(kept), second)
        pairs = compare(first, second)
    except LeakError as leak:
        raise LeakError(f"{place}: {leak}") from None
    group = None if rows.groups is None else int(rows.groups[np.flatnonzero(~kept)[0]])
    _charged(pairs, group, place, several=int((~kept).sum()) > 1)
    if not alike(published, again):
        raise LeakError(f"{place}: something else is published after the same answers")
    if _stored(published) != _stored(again):
        raise LeakError(f"{place}: other bytes are stored after the same answers")
    return published.text if isinstance(published, _Failure) else None


@dataclass(frozen=True)
class _Failure:
    text: str


def _outcome(run: Callable[[T, Tape], Any], table: T, tape: Tape) -> Any:
    """What is published, or how it fails: a failure that only one of two neighbours has tells them apart too."""
    try:
        return run(table, tape)
    except LeakError:
        raise
    except Exception as failure:  # whatever it is, the neighbour must fail alike
        return _Failure(f"{type(failure).__name__}: {failure}")


def _charged(pairs: Sequence[Compared], group: int | None, place: str, *, several: bool) -> None:
    """Every question moves by no more than was paid for it, then or before under the same label.

    The loss of a partition is known for one record at a time: rows of one person in several bins are not judged by it.
    """
    open_charges: dict[str, float] = {}
    for number, pair in enumerate(pairs):
        call = pair.here
        if call.kind == "charge":
            open_charges[call.label] = open_charges.get(call.label, 0) + pair.charged
        if not call.noisy or (several and math.isinf(pair.loss)):
            continue
        if call.charged is None:
            open_charges[call.label] = open_charges.get(call.label, 0) - pair.loss
            paid, moved = open_charges[call.label], 0.0
        else:
            paid, moved = float(pair.charged if group is None else call.charged[group]), pair.loss
        if moved > paid * _ROUNDING:
            raise LeakError(f"{place}: call {number + 1} ({call.label!r}) moves by more than it was charged")


def _stored(published: Any) -> bytes:
    """As a pickle; nothing for what cannot be stored."""
    try:
        return pickle.dumps(published)
    except Exception:  # an object that refuses, or a function in it: then nothing is stored
        return b""
