"""Lists in pages: ``?limit=&before=`` gives ``{"items": [...], "older": ...}``, newest first.

`older` is what to send as `before` for the next page, and ``null`` at the end. It says where the page stopped, not how many
rows were skipped: whatever is added meanwhile, no row comes twice and none is left out.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Generic, TypeVar

from fastapi import Depends, Query
from pydantic import BaseModel
from sqlalchemy import ColumnElement, Connection, Row, Select, and_, or_

from sfumato.service.http.problems import ProblemError

MOST: Final = 200
_LARGEST = 2**63 - 1
Item = TypeVar("Item")


class Listed(BaseModel, Generic[Item]):
    """A page of a list, newest first.

    Attributes
    ----------
    items : list
    older : str or None
        What to send as ``before`` for the next page; ``null`` at the end.
    """

    items: list[Item]
    older: str | None = None


@dataclass(frozen=True)
class Asked:
    """Which page somebody asks for.

    Attributes
    ----------
    limit : int
        Rows of a page.
    before : tuple or None
        The key of the last row that they have.
    """

    limit: int = 50
    before: tuple[int | str, ...] | None = None


def asked_for(
    limit: Annotated[int, Query(ge=1, le=MOST, description="rows of a page")] = 50,
    before: Annotated[str | None, Query(max_length=600, description="the `older` of the page before")] = None,
) -> Asked:
    """The page that a request asks for."""
    return Asked(limit, None if before is None else unpacked(before))


Page = Annotated[Asked, Depends(asked_for)]
"""What a route that lists takes: ``page: Page``."""


def packed(key: Sequence[int | str]) -> str:
    """A key as one opaque text.

    >>> unpacked(packed([7, "plan_x"]))
    (7, 'plan_x')
    """
    raw = json.dumps(list(key), separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def unpacked(text: str) -> tuple[int | str, ...]:
    """The key in a text that `packed` gave; anything else is refused."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        key = json.loads(raw.decode())
    except (binascii.Error, ValueError, RecursionError):
        raise _not_a_page() from None
    if not isinstance(key, list) or not key or not all(_is_part(part) for part in key):
        raise _not_a_page()
    return tuple(key)


def page(
    connection: Connection, query: Select[Any], asked: Asked, *key: ColumnElement[Any]
) -> tuple[list[Row[Any]], str | None]:
    """A page of a query's rows, and where the next one begins.

    Parameters
    ----------
    connection : Connection
    query : Select
        Without order and limit; it selects the columns of `key` too.
    asked : Asked
    *key : columns
        By which rows are ordered, the newest first, and told apart: ``schema.plans.c.created_at, schema.plans.c.id``.

    Returns
    -------
    tuple
        The rows, and `older`.
    """
    if asked.before is not None:
        query = query.where(_below(key, _fitting(asked.before, [column.type.python_type for column in key])))
    rows = list(connection.execute(query.order_by(*(column.desc() for column in key)).limit(asked.limit + 1)))
    if len(rows) <= asked.limit:
        return rows, None
    rows.pop()
    return rows, packed([rows[-1]._mapping[column] for column in key])


def cut(items: Sequence[Item], asked: Asked, key: Callable[[Item], int | str]) -> tuple[list[Item], str | None]:
    """A page of a list that is there whole, in falling order of `key`.

    >>> cut([9, 7, 4, 2], Asked(2, (7,)), lambda item: item)
    ([4, 2], None)
    """
    kept = list(items)
    if asked.before is not None:
        kinds = [type(key(kept[0]))] if kept else [type(asked.before[0])]
        (last,) = _fitting(asked.before, kinds)
        kept = [item for item in kept if key(item) < last]  # type: ignore[operator]
    older = packed([key(kept[asked.limit - 1])]) if len(kept) > asked.limit else None
    return kept[: asked.limit], older


def _is_part(part: Any) -> bool:
    if isinstance(part, str):
        return len(part) <= 200 and part.isprintable()
    return isinstance(part, int) and not isinstance(part, bool) and abs(part) <= _LARGEST


def _fitting(before: tuple[int | str, ...], kinds: Sequence[type]) -> tuple[int | str, ...]:
    if [type(part) for part in before] != list(kinds):
        raise _not_a_page()  # a page of another list
    return before


def _below(key: Sequence[ColumnElement[Any]], last: Sequence[int | str]) -> ColumnElement[bool]:
    """Rows that come after `last` when the order falls."""
    same = [column == value for column, value in zip(key, last, strict=True)]
    return or_(*(and_(*same[:i], column < value) for i, (column, value) in enumerate(zip(key, last, strict=True))))


def _not_a_page() -> ProblemError:
    return ProblemError(422, "`before` is not a page of this list; send the `older` of the page before, or leave it out")
