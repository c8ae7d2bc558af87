"""An open table. One Ibis expression runs on whichever engine holds it; only aggregates come back.

Errors from an engine may quote values, so after a table is open they are replaced by a sentence without any. What can be
opened is in `sfumato.tables.connecting`, what is offered in `sfumato.tables.engine_list`.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sfumato.errors import InputError, SchemaError
from sfumato.tables.plain_duckdb import Named
from sfumato.tables.words import did_you_mean

_number = itertools.count()
_reading = threading.RLock()


@dataclass(frozen=True)
class Engine:
    """An open table: the Ibis backend and the table on it."""

    backend: Any
    opened: Any  # an Ibis table, or the name of one that becomes it when an expression is made
    name: str
    text: bool = False  # an untyped source, where numbers arrive as text
    written: str = ""  # how its lines are, for messages
    url: str | None = None
    # Shared by engines on one backend, which meet in joins: what has yet to be read, and readings that a failure calls for.
    pending: list[Callable[[], None]] = field(default_factory=list)
    spare: list[Callable[[], None]] = field(default_factory=list)

    @cached_property
    def table(self) -> Any:
        """The Ibis table."""
        return self.opened.on(self.backend) if isinstance(self.opened, Named) else self.opened

    def sql(self, query: str) -> Any:
        """The columns of a query in DuckDB's SQL, in which ``{table}`` is this table; errors as for `fetch`."""
        written = query.replace("{table}", self.opened.name)
        return self._run(lambda: self.backend.con.execute(written).fetchnumpy())

    def fetch(self, expr: Any) -> Any:
        """Run an aggregate and bring back its rows as an Arrow table; engine errors lose their wording."""
        return self._run(lambda: self.backend.to_pyarrow(expr))

    def store(self, expr: Any) -> Any:
        """Compute a table of aggregates and keep it on the engine, until it is released; errors as for `fetch`."""
        return self._run(expr.cache)

    def write(self, expr: Any, path: str) -> None:
        """Write rows to a Parquet file: for `import_table`, whose user owns the table. Errors as for `fetch`."""
        self._run(lambda: self.backend.to_parquet(expr, path))

    @property
    def is_closed(self) -> bool:
        """Whether the connection is known to be lost; a server says so when it is asked next."""
        return getattr(getattr(self.backend, "con", None), "closed", False) is True

    def _run(self, compute: Callable[[], Any]) -> Any:
        # One at a time: threads that release from one open table share a connection, whose answers would get mixed up.
        turn: threading.RLock = self.backend.__dict__.setdefault("_sfumato_turn", threading.RLock())
        try:
            with _reading:  # rows that two threads add at once would be there twice
                while self.pending:
                    self.pending[-1]()
                    self.pending.pop()
            with turn:
                try:
                    return compute()
                except Exception:
                    if not self.spare:
                        raise
                while self.spare:
                    self.spare.pop()()
                return compute()
        except Exception:
            pass
        # Raised outside the handler: inside it, the new error would carry the old one, which may quote a value.
        raise InputError(
            f"{self.name} could not compute the aggregate; its message may quote private values and is not shown. "
            "Check that the table still has the types it had when it was opened"
        )

    def column(self, name: str, what: str) -> Any:
        """A column of the table, by its exact name."""
        if name not in self.table.columns:
            # The first line of a file without a header is somebody's record.
            hint = (
                f"the first line must name the columns{self.written}"
                if self.text
                else did_you_mean(name, self.table.columns)
            )
            raise SchemaError(f"{what} {name!r} is not in the table (names are case-sensitive); {hint}")
        return self.table[name]


def fresh_name(what: str) -> str:
    """A name that no other table on an engine has."""
    return f"{what}_{next(_number)}"
