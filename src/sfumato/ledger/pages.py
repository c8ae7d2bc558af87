"""Reading the history a page at a time: what a page costs depends on the page and not on how long the history is.

A page is found by the number of a release at its end (``ledger_releases_pages`` leads there), never by counting from the
beginning; what belongs to its releases is then read by their numbers. What was committed may be large, and is left in the
database until somebody asks for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, case, func, select

from sfumato.errors import InputError
from sfumato.ledger import schema
from sfumato.ledger.caps import MAX_BIGINT
from sfumato.ledger.limits import shared, spelt_out
from sfumato.ledger.records import Page, Release
from sfumato.privacy.units import Nano, epsilon_text

if TYPE_CHECKING:
    from sfumato.ledger.database import Store

RELEASES, LINES = 500, 20_000  # the most of them on a page if nobody says how many releases
LONG = 20_000  # letters of an artefact that is not read with its page
_AT_ONCE = 900  # numbers in one statement; some builds of SQLite take no more than 999
# What people of a living roster were charged, in words
FORMS = {"grant": "the budget", "chunks": "by group"}


def page(
    store: Store,
    connection: Connection,
    dataset_id: int,
    *,
    limit: int | None = None,
    most: int | None = None,
    before: int | None = None,
    after: int | None = None,
) -> Page:
    """The newest `limit` releases, or those next `before` or `after` a number; oldest first.

    Where no `limit` is given it is `most`, or fewer if each release is charged to many caps.
    """
    for what, least, given in (("limit", 1, limit), ("before", 0, before), ("after", 0, after)):
        if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < least):
            raise InputError(f"{what} is a whole number from {least}, got {given!r}")
    if before is not None and after is not None:
        raise InputError("a page lies before a release or after one; give one of before and after")
    names = _names(connection, dataset_id)
    if limit is None:
        limit = max(1, min(most or RELEASES, LINES // sum(map(len, names.values()))))
    table = schema.releases
    query = select(*_columns()).where(table.c.dataset_id == dataset_id)
    if after is not None:
        query = query.where(table.c.id > min(after, MAX_BIGINT)).order_by(table.c.id)
    else:
        query = query.order_by(table.c.id.desc())
        if before is not None:
            query = query.where(table.c.id < min(before, MAX_BIGINT))
    rows = connection.execute(query.limit(min(limit, MAX_BIGINT - 1) + 1)).all()
    more = len(rows) > limit  # one more than asked for says that there are others
    rows = rows[:limit] if after is not None else rows[:limit][::-1]
    first = int(rows[0].id) if rows else before if after is None else after + 1
    last = int(rows[-1].id) if rows else after if before is None else max(0, before - 1)
    earlier, later = (True, more) if after is not None else (more, before is not None)
    return Page(
        _releases(connection, dataset_id, rows, names, store),
        older=first if earlier and (after is None or after > 0) else None,
        newer=last if later else None,
    )


def one(connection: Connection, dataset_id: int, release_id: int) -> Release | None:
    """The release of that number with all that was committed, if it is one of this dataset."""
    table = schema.releases
    query = select(*_columns(whole=True)).where(table.c.id == release_id, table.c.dataset_id == dataset_id)
    rows = connection.execute(query).all()
    return next(_releases(connection, dataset_id, rows, _names(connection, dataset_id), None), None)


def stored(store: Store, release_id: int) -> str | None:
    """What was committed as the release of that number."""
    with store.read() as connection:
        table = schema.releases
        found = connection.execute(select(table.c.artefact).where(table.c.id == release_id)).scalar()
        return None if found is None else str(found)


def _columns(*, whole: bool = False) -> list[Any]:
    table = schema.releases
    short = table.c.artefact if whole else case((func.length(table.c.artefact) <= LONG, table.c.artefact))
    names = ("id", "name", "state", "request", "fingerprint", "recipient", "asked_by", "total", "reserved_at", "finished_at")
    return [*(table.c[name] for name in names), short.label("short")]


def _names(connection: Connection, dataset_id: int) -> dict[str, list[str]]:
    """The names of all caps of each kind for which one line may stand: not those of analysts and days."""
    names: defaultdict[str, list[str]] = defaultdict(list)
    for limit in shared(connection, dataset_id):
        names[limit.kind].append(limit.name)
    return names


def _releases(
    connection: Connection, dataset_id: int, rows: Sequence[Any], names: Mapping[str, list[str]], store: Store | None
) -> Iterator[Release]:
    paid: defaultdict[int, list[tuple[str, str, Nano]]] = defaultdict(list)
    people: dict[int, str] = {}
    epochs: dict[int, int] = {}
    private = connection.execute(select(schema.lives.c.private).where(schema.lives.c.dataset_id == dataset_id)).scalar()
    numbers = [int(row.id) for row in rows]
    for start in range(0, len(numbers), _AT_ONCE):
        some = numbers[start : start + _AT_ONCE]
        for release, kind, name, nano in connection.execute(_lines(some)):
            paid[release].append((kind, name, nano))
        for release, step, plain in connection.execute(_fixed(some)):
            people[release] = f"{FORMS['grant' if plain else 'chunks']}, at most {epsilon_text(step)}"
        for release, form, step, epoch in connection.execute(_living(some)):
            # How a charge is stored depends on who could pay it: of a private roster that is not told.
            people[release] = f"{FORMS['chunks' if private else form]}, at most {epsilon_text(step)}"
            epochs[release] = int(epoch or 0)
    for number, name, state, request, fingerprint, recipient, by, total, reserved_at, finished_at, short in rows:
        long = short is None and state == "committed" and store is not None
        yield Release(
            id=int(number),
            name=name,
            state=state,
            request=request,
            fingerprint=fingerprint,
            recipient=recipient,
            by=by,
            total=Nano(total),
            charges=spelt_out(paid[number], names),
            people=people.get(number),
            stored=short,
            reserved_at=reserved_at,
            finished_at=finished_at,
            epoch=epochs.get(number),
            fetch=partial(stored, store, int(number)) if long and store is not None else None,
        )


def _lines(numbers: list[int]) -> Any:
    table = schema.charges
    return select(table.c.release_id, table.c.kind, table.c.name, table.c.nano).where(table.c.release_id.in_(numbers))


def _fixed(numbers: list[int]) -> Any:
    table = schema.people_charges
    return select(table.c.release_id, table.c.step, table.c.vector.is_(None)).where(table.c.release_id.in_(numbers))


def _living(numbers: list[int]) -> Any:
    lived, changes = schema.life_charges, schema.changes
    then = (changes.c.dataset_id == lived.c.dataset_id) & (changes.c.number == lived.c.change)
    shown = select(lived.c.release_id, lived.c.form, lived.c.step, changes.c.epoch).outerjoin(changes, then)
    return shown.where(lived.c.release_id.in_(numbers))
