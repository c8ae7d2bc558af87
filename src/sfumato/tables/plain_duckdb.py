"""DuckDB in this process, as a connection first: Ibis is loaded when an expression is made, and not to count a roster.

Ibis and what it brings take longer to load than a preview takes to compute, and a preview reads nothing but public tables of
which it wants a few numbers. So a table is opened by plain SQL, under a name, and becomes an Ibis table when one is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sfumato.errors import InputError


class PlainDuckDB:
    """A connection that becomes an Ibis backend, over the same tables, when something of Ibis is asked of it.

    Parameters
    ----------
    database : str
        The file, or ":memory:".
    read_only : bool
        Whether nothing may be written to it.
    settings : str
        DuckDB's own, by name.
    """

    name = "duckdb"

    def __init__(self, database: str = ":memory:", *, read_only: bool = False, **settings: Any) -> None:
        import duckdb

        self.con = duckdb.connect(database, read_only=read_only, config=settings)
        # It would write over the caller's output; times are read alike everywhere; variables of the caller are no tables.
        for setting in ("enable_progress_bar = false", "timezone = 'UTC'", "python_enable_replacements = false"):
            self.con.execute(f"SET {setting}")

    @cached_property
    def ibis(self) -> Any:
        """The Ibis backend over this connection."""
        import ibis

        return ibis.duckdb.from_connection(self.con)

    def to_pyarrow(self, expr: Any) -> Any:
        """The rows of an expression as an Arrow table, of the types that Ibis says; pandas is not loaded for it."""
        from ibis.expr.operations import InMemoryTable
        from ibis.formats.pyarrow import PyArrowData

        table = expr.as_table()
        if table.op().find(InMemoryTable):  # which Ibis brings into DuckDB by itself
            return self.ibis.to_pyarrow(table)
        return PyArrowData.convert_table(self.con.sql(self.ibis.compile(table)).to_arrow_table(), table.schema())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.ibis, name)


@dataclass(frozen=True)
class Named:
    """A table or view of a `PlainDuckDB`, by its name; `path` is the file that it shows, for messages."""

    name: str
    path: str = "the table"

    def on(self, backend: Any) -> Any:
        """The Ibis table of that name."""
        try:
            return backend.table(self.name)
        except Exception as error:
            raise InputError(
                f"cannot read {self.path!r} ({type(error).__name__}); is it a complete file of that format?"
            ) from None


def literal(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """The name of a column as SQL writes it, whatever it is."""
    return '"' + name.replace('"', '""') + '"'
