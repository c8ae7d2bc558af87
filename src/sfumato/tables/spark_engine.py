"""Tables on Spark: a session or a data frame of the user's, or a server by its URL.

==============================================  ==================================================================
``"sc://host:15002"`` and ``table=``             Spark Connect; ``sc://host/;token=...;use_ssl=true`` as Spark has it
``"spark://host:7077"`` and ``table=``           a Spark master; the driver runs here and needs Java
a Spark session and ``table=``, a data frame     as it is
==============================================  ==================================================================

`table` has one to three parts, ``"visits"``, ``"clinic.visits"`` or ``"lake.clinic.visits"``; a part with a dot in it
stands in backquotes, or the parts are given as a tuple. They reach Spark as quoted identifiers. Or it is a format and a
path, ``"delta:/data/visits"`` or ``"parquet:s3a://bucket/visits"``: both reach Spark's reader as they are, never SQL, and
whatever the jars of the server can read will do.

Engines on one URL share a session, so that their tables can be joined where they are. It is closed with the last of them; a
session of the user's is never closed. On a session of our own whole numbers that are too large are an error and not a wrong
sum (ANSI mode), whatever the server's default.
"""

from __future__ import annotations

import re
import weakref
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sfumato.errors import InputError, NotInstalledError
from sfumato.extras import need
from sfumato.tables.addresses import reason_to_tell, without_secrets
from sfumato.tables.spark_backend import backend_on, identifier, table_of, view_of, when_unused
from sfumato.tables.spark_types import with_instants

if TYPE_CHECKING:
    from sfumato.tables.engines import Engine

SCHEMES = ("sc", "spark")
FORMATS = ("delta", "iceberg", "orc", "parquet")  # that a path may be read as
_PART = r"`(?:[^`]|``)+`|[^`.]+"
_CONNECT = {"grpcio": "grpc", "grpcio-status": "grpc_status", "zstandard": "zstandard"}  # extra `connect` of pyspark
_OURS = {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC"}
RETRIES, LONGEST_WAIT = 6, 15_000  # milliseconds: about half a minute in all, where Spark itself waits for ten
_open: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()  # URL -> backend


def open_spark(source: Any, table: str | tuple[str, ...] | None, near: Engine | None) -> Engine:
    """Open a data frame, or a table of a session of the user's."""
    from sfumato.tables.engines import Engine, fresh_name

    session = source if is_spark_session(source) else source.sparkSession
    shared = near is not None and near.name == "pyspark" and near.backend._session is session
    backend = near.backend if near is not None and shared else backend_on(session)
    if session is not source:
        found = view_of(backend, source, fresh_name("sfumato_frame"))
        return Engine(backend, with_instants(found, source), "pyspark")
    found, frame = _found(backend, table, "the Spark session")
    return Engine(backend, with_instants(found, frame), "pyspark")


def open_spark_url(url: str, table: str | tuple[str, ...] | None, near: Engine | None) -> Engine:
    """Open a table of a Spark Connect server (``sc://``) or of a Spark master (``spark://``)."""
    from sfumato.tables.engines import Engine

    if _by_path(table) is None:
        parts_of(table)  # which refuses what is no name
    backend = near.backend if near is not None and near.url == url else backend_at(url)
    found, frame = _found(backend, table, without_secrets(url))
    return Engine(backend, with_instants(found, frame), "pyspark", url=url)


def backend_at(url: str) -> Any:
    """The backend that all engines on one URL share."""
    backend = _open.get(url)
    if backend is None or not _answers(backend):
        backend = _connect(url)
        _open[url] = backend
    return backend


def is_spark_session(source: Any) -> bool:
    """By its type: a Spark Connect data frame claims to have every attribute, taking it for a column."""
    return any(kind.__name__ == "SparkSession" for kind in type(source).__mro__)


def parts_of(table: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """The parts of a table's name.

    >>> parts_of("lake.clinic.visits"), parts_of("`clinic.v2`.visits"), parts_of(("clinic", "visits.2024"))
    (('lake', 'clinic', 'visits'), ('clinic.v2', 'visits'), ('clinic', 'visits.2024'))
    """
    if isinstance(table, str):
        whole = re.fullmatch(rf"(?:{_PART})(?:\.(?:{_PART}))*", table)
        found = [p[1:-1].replace("``", "`") if p[0] == "`" else p for p in re.findall(_PART, table)] if whole else []
    else:
        found = list(table or ())
    if not 1 <= len(found) <= 3 or not all(found):
        raise InputError(
            f"a table of Spark has one to three parts, as in table='clinic.visits'; got {table!r}. A part with a dot in it "
            "stands in backquotes"
        )
    return tuple(found)


def _by_path(table: str | tuple[str, ...] | None) -> tuple[str, str] | None:
    """Format and path, if a table is given by them."""
    kind, _, path = table.partition(":") if isinstance(table, str) else ("", "", "")
    return (kind, path) if kind in FORMATS and path else None


def _found(backend: Any, table: str | tuple[str, ...] | None, where: str) -> tuple[Any, Any]:
    """The table with its data frame, by its name or by format and path."""
    from sfumato.tables.engines import fresh_name

    by_path = _by_path(table)
    if by_path is None:
        return _table(backend, parts_of(table), where)
    try:
        frame = backend._session.read.format(by_path[0]).load(by_path[1])
        return view_of(backend, frame, fresh_name("sfumato_file")), frame
    except Exception as error:
        kind = type(error).__name__
    raise InputError(
        f"no {by_path[0]} table at {without_secrets(by_path[1])!r} in {where} ({kind}); correct table=..., and see that "
        f"Spark has the jars for {by_path[0]}"
    )


def _table(backend: Any, parts: tuple[str, ...], where: str) -> tuple[Any, Any]:
    try:
        frame = backend._session.table(identifier(parts))
        return table_of(backend, parts, frame), frame
    except Exception as error:
        kind = type(error).__name__
    raise InputError(f"no table {'.'.join(parts)!r} in {where} ({kind}); correct table=...")


def _answers(backend: Any) -> bool:
    """Whether the session of a backend is still alive: a server may have been started anew."""
    try:
        backend._session.conf.get("spark.sql.session.timeZone")
    except Exception:
        return False
    return True


def _connect(url: str) -> Any:
    need("pyspark", "a Spark table")
    shown = without_secrets(url)
    try:
        session, ours = _connect_session(url) if url.startswith("sc://") else _classic_session(url)
        for key, value in _OURS.items():
            session.conf.set(key, value)
    except InputError:
        raise
    except Exception as error:
        told = "Java did not start; install a Java of version 17 or later" if "JAVA" in str(error) else reason_to_tell(error)
        raise InputError(f"cannot connect to {shown}: {told}") from None
    backend = backend_on(session)
    if ours:
        when_unused(backend, session.stop)
    return backend


def _connect_session(url: str) -> tuple[Any, bool]:
    """A session of its own on the server, even where the process has another, of whatever kind."""
    missing = [package for package, module in _CONNECT.items() if find_spec(module) is None]
    if missing:
        raise NotInstalledError(
            f'Spark Connect needs {" and ".join(missing)}, not installed here: pip install "sfumato[spark]"'
        )
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    before = SparkSession._default_session, getattr(SparkSession._active_session, "session", None)
    session = SparkSession.builder.remote(url).create()
    # `create` makes it the default where there was none; the user's `getOrCreate` shall not find ours.
    SparkSession._default_session, SparkSession._active_session.session = before
    try:
        session.client.set_retry_policies([DefaultPolicy(max_retries=2)])
        session.conf.get("spark.sql.session.timeZone")
        session.client.set_retry_policies([DefaultPolicy(max_retries=RETRIES, max_backoff=LONGEST_WAIT)])
    except Exception:
        with suppress(Exception):
            session.client.close()
        raise
    return session, True


def _classic_session(url: str) -> tuple[Any, bool]:
    """A session with its driver in this process, which can have one such driver only."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    running = SparkContext._active_spark_context
    if running is not None and running.master != url:
        raise InputError(
            f"cannot connect to {without_secrets(url)}: this process already has a Spark session, on {running.master!r}; "
            "pass that session itself, or use Spark Connect (sc://...)"
        )
    builder = SparkSession.builder.master(url).appName("sfumato").config("spark.ui.showConsoleProgress", "false")
    if running is not None:
        return SparkSession(running).newSession(), False
    return builder.getOrCreate(), True
