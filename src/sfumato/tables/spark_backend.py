"""Ibis on Spark, classic or Connect, with what Ibis leaves to be wished.

Answers
    come as Spark's own Arrow batches. By way of pandas, as Ibis fetches them, a column of whole numbers with a NULL in it
    turns into doubles, and sums above 2^53 lose their last digits.
Traces
    are removed: views of data frames, of rosters that were brought to Spark and of stored aggregates go when nothing refers
    to them any more, and a session that was opened here is closed. A thread of its own does this: Python may drop an object
    in the middle of a call to the server, where a second call would wait for the first, for ever.
Chance
    keeps to one draw. The rows that stay when a person has too many are chosen by `rand()`. After a lost executor Spark
    computes parts again. The cap itself is safe: all rows of a person meet in one task, which takes the first k of whatever
    numbers they have, and `person` alone says where a row goes, so that no row is lost or there twice. But what that task
    counts goes on by cell; if its second attempt had other numbers, because the rows came in another order, one cell could
    have been read from the first attempt and another from the second, and a person be in both, beyond the cap. From version
    4.1 on Spark compares a checksum of what is computed again and, if it differs, computes all that was read from it
    again, or gives up; this is switched on here, whatever the server's default, and a Spark without it is refused. What is
    stored of drawn rows is kept without the way to compute it again: if part of it is lost, the query fails.
"""

from __future__ import annotations

import atexit
import queue
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

from sfumato.errors import InputError

_ONE_DRAW = {
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "true",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "true",
}
_QUOTE = "`"
_unused: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()  # whose `put` may interrupt itself


def backend_on(session: Any) -> Any:
    """An Ibis backend on a Spark session."""
    backend = _kind()().connect(session)
    try:
        for key, value in _ONE_DRAW.items():
            session.conf.get(key)  # an error where Spark does not know it; setting it would be none
            session.conf.set(key, value)
    except Exception:
        known = False
    else:
        known = True
    if not known:
        raise InputError(
            "this Spark is refused: it cannot promise that rows chosen at random stay the same when a lost part is computed "
            "again, and somebody could count more often than they may. Use Spark 4.1 or later, where "
            f"{next(iter(_ONE_DRAW))} can be set"
        )
    return backend


def when_unused(owner: Any, tidy: Callable[..., object], *words: Any) -> weakref.finalize[..., Any]:
    """Call `tidy` with `words` once nothing refers to `owner`, or when Python ends; its failure is nobody's."""
    _start()
    return weakref.finalize(owner, _unused.put, lambda: tidy(*words))


@cache
def _start() -> None:
    worker = threading.Thread(target=_tidy_up, name="sfumato-spark-tidy", daemon=True)

    def finish() -> None:
        _unused.put(None)
        worker.join(10)  # a server that does not answer keeps nobody from leaving

    atexit.register(finish)  # before the first finalizer exists, so that it runs after the last
    worker.start()


def _tidy_up() -> None:
    for tidy in iter(_unused.get, None):
        with suppress(Exception):
            tidy()


def view_of(backend: Any, frame: Any, name: str) -> Any:
    """An Ibis table over a Spark data frame, which is known to the session by `name` for as long as it is used."""
    frame.createOrReplaceTempView(name)
    table = table_of(backend, (name,), frame)
    when_unused(table.op(), backend.drop_view_quietly, name)
    return table


def table_of(backend: Any, parts: tuple[str, ...], frame: Any) -> Any:
    """The Ibis table of the Spark table `frame` called `parts`, with its columns as Spark tells them.

    `Backend.table` would change the current catalogue and schema of the session to look.
    """
    import ibis.expr.operations as ops
    import ibis.expr.schema as sch
    from ibis.backends.pyspark.datatypes import PySparkType

    *above, name = parts
    catalog, database = [None, None, *above][-2:]
    place = ops.Namespace(catalog=catalog, database=database)
    kinds = PySparkType.to_ibis(frame.schema)
    return ops.DatabaseTable(name=name, schema=sch.Schema(kinds), source=backend, namespace=place).to_expr()


def identifier(parts: tuple[str, ...]) -> str:
    """A name of several parts as Spark reads it, whatever characters are in it.

    >>> identifier(("clinic", "visits; DROP `x`"))
    '`clinic`.`visits; DROP ``x```'
    """
    return ".".join(f"{_QUOTE}{part.replace(_QUOTE, 2 * _QUOTE)}{_QUOTE}" for part in parts)


@cache
def _kind() -> Any:
    """The class, made when it is first asked for: its parent needs pyspark."""
    import ibis
    import ibis.expr.operations as ops

    assert ibis.pyspark  # looking at it declares Ibis's options for Spark, without which nothing compiles
    from ibis.backends.pyspark import Backend
    from ibis.formats.pyarrow import PyArrowData

    class SparkBackend(Backend):  # type: ignore[misc, unused-ignore]
        """See the module."""

        def to_pyarrow(self, expr: Any, /, *, params: Any = None, limit: Any = None, **_: Any) -> Any:
            self._run_pre_execute_hooks(expr)
            table = expr.as_table()
            found = self.raw_sql(self.compile(table, params=params, limit=limit)).toArrow()
            return expr.__pyarrow_result__(PyArrowData.convert_table(found, table.schema()))

        def _register_in_memory_table(self, op: Any) -> None:
            frame = self._session.createDataFrame(op.data.to_pyarrow(op.schema))
            frame.createOrReplaceTempView(op.name)
            when_unused(op, self.drop_view_quietly, op.name)

        def _create_cached_table(self, name: str, expr: Any) -> Any:
            self._run_pre_execute_hooks(expr)
            frame = self.raw_sql(self.compile(expr))
            frame = frame.localCheckpoint() if expr.op().find(ops.RandomScalar) else frame.cache()
            frame.createOrReplaceTempView(name)
            self._cached_dataframes[name] = frame
            return table_of(self, (name,), frame)

        def _drop_cached_table(self, name: str) -> None:
            frame = self._cached_dataframes.pop(name)
            self.drop_view_quietly(name)
            with suppress(Exception):
                frame.unpersist()

        def drop_view_quietly(self, name: str) -> None:
            """Drop a view. Without a server there is none, and its words about that may be about the rows, too."""
            with suppress(Exception):
                self._session.catalog.dropTempView(name)

    return SparkBackend
