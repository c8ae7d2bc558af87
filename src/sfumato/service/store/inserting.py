"""Inserting a row unless it is there, in one statement, on both databases."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


def insert_new(connection: Connection, table: Table, **values: Any) -> bool:
    """Whether the row was new: two who insert the same one at the same time cannot both be told so.

    Parameters
    ----------
    connection : Connection
        In a transaction that writes.
    table : Table
    **values : Any
        The row. Any constraint of uniqueness that it breaks means that it is there.
    """
    on = sqlite if connection.dialect.name == "sqlite" else postgresql
    inserting = on.insert(table).values(**values).on_conflict_do_nothing().returning(*table.primary_key.columns)
    return connection.execute(inserting).first() is not None  # a count of rows is not told by every driver
