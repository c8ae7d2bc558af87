"""Tables in databases, opened by their URLs through Ibis.

What a URL says is taken apart here and handed to Ibis by name, so that every part has one meaning: Ibis's own reading of it
cannot open Databricks, leaves a Trino password unencrypted, installs functions in a Snowflake account and asks for BigQuery
credentials in a browser. Options (``?warehouse=small``) go to the driver as they are. A password never stands in a message.

=====================================================  ==================================================
URL                                                    what Ibis is called with
=====================================================  ==================================================
``postgresql://ann:pw@host:5432/db``                    the URL
``trino://ann:pw@host:8443/catalog/schema``             host, port, user, auth, database, schema
``bigquery://project/dataset``                          project_id, dataset_id, the machine's credentials
``snowflake://ann:pw@account/database/schema``          account, user, password, database, schema
``databricks://token:pw@host/http/path``                server_hostname, http_path, access_token
=====================================================  ==================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from sfumato.errors import InputError
from sfumato.extras import need
from sfumato.tables.addresses import reason_to_tell
from sfumato.tables.duckdb_engine import open_duckdb_url
from sfumato.tables.engine_list import SCHEMES
from sfumato.tables.engine_probe import try_hard_constants
from sfumato.tables.engine_settings import EngineSettings
from sfumato.tables.engines import Engine
from sfumato.tables.sources import TableName, describe, names_of


def open_database(url: str, table: TableName | None, near: Engine | None, settings: EngineSettings | None = None) -> Engine:
    """A table of the database at `url`; on the connection of `near` if that is to the same one."""
    shared = near is not None and near.url == url
    backend = near.backend if near is not None and shared else connected(url, settings)
    pending, spare = (near.pending, near.spare) if near is not None and shared else ([], [])
    found = Engine(backend, None, backend.name, url=url, pending=pending, spare=spare)
    if not url.startswith("duckdb://"):  # which is the one in this process
        try_hard_constants(found)
    return Engine(backend, table_of(backend, url, table), backend.name, url=url, pending=pending, spare=spare)


def table_of(backend: Any, url: str, table: TableName | None) -> Any:
    """The Ibis table of that name."""
    whole = isinstance(table, str) and url.startswith(("duckdb://", "postgres"))  # a dot is part of a name there
    *place, name = (str(table),) if whole else names_of(table)
    try:
        database = None if not place else place[0] if len(place) == 1 else tuple(place)
        return backend.table(name, database=database)
    except Exception as error:
        shown = ".".join([*place, name])
        raise InputError(f"no table {shown!r} in {describe(url)} ({type(error).__name__}); correct table=...") from None


def connected(url: str, settings: EngineSettings | None = None) -> Any:
    """The Ibis backend at `url`."""
    scheme = url.partition("://")[0]
    offered = SCHEMES[scheme]
    for module in offered.driver:
        need(module, f"a {offered.name} table")
    try:
        backend = open_duckdb_url(url, settings) if scheme == "duckdb" else _CONNECT[scheme](url)
    except InputError:
        raise
    except Exception as error:
        why = reason_to_tell(error)
    else:
        if backend is not None:
            return backend
        why = "no such file; an absolute path has four slashes, as in duckdb:////data/clinic.db"
    # Outside the handler: the driver's error may hold the password.
    raise InputError(f"cannot connect to {describe(url)}: {why}")


def _parts(url: str) -> tuple[SplitResult, list[str], dict[str, str]]:
    """A URL taken apart, the parts of its path, and its options."""
    split = urlsplit(url)
    return split, [unquote(part) for part in split.path.split("/") if part], dict(parse_qsl(split.query))


def _login(split: SplitResult, user: str, password: str) -> dict[str, str]:
    """User and password by the names that a driver has for them."""
    said = {user: split.username, password: split.password}
    return {key: unquote(value) for key, value in said.items() if value}


def _postgres(url: str) -> Any:
    import ibis

    return ibis.connect(url.replace("postgres://", "postgresql://", 1))


def _trino(url: str) -> Any:
    import ibis

    split, path, options = _parts(url)
    login = _login(split, "user", "auth")
    secure = "auth" in login or options.get("http_scheme") == "https"
    host = f"https://{split.hostname}" if secure else split.hostname or "localhost"
    port = split.port or (443 if secure else 8080)
    place = dict(zip(("database", "schema"), path, strict=False))
    return ibis.trino.connect(**{"host": host, "port": port, **login, **place, **options})


def _bigquery(url: str) -> Any:
    import ibis

    split, path, options = _parts(url)
    auth = need("google.auth", "a BigQuery table")
    # Ibis would ask whoever sits here in a browser, and keep the answer in a file.
    credentials, _ = auth.default(scopes=["https://www.googleapis.com/auth/bigquery"])
    dataset = {"dataset_id": path[0]} if path else {}
    return ibis.bigquery.connect(project_id=split.netloc, credentials=credentials, **dataset, **options)


def _snowflake(url: str) -> Any:
    import ibis

    split, path, options = _parts(url)
    place = dict(zip(("database", "schema"), path, strict=False))
    login = _login(split, "user", "password")
    # With its functions, Ibis would make a database in the account.
    return ibis.snowflake.connect(
        **{"account": split.hostname or "", **login, **place, **options, "create_object_udfs": False}
    )


def _databricks(url: str) -> Any:
    import ibis

    split, path, options = _parts(url)
    token = {"access_token": unquote(split.password)} if split.password else {}
    return ibis.databricks.connect(
        **{"server_hostname": split.hostname, "http_path": "/" + "/".join(path), **token, **options}
    )


_CONNECT: dict[str, Callable[[str], Any]] = {
    "postgresql": _postgres,
    "postgres": _postgres,
    "trino": _trino,
    "bigquery": _bigquery,
    "snowflake": _snowflake,
    "databricks": _databricks,
}
