"""Packages that are not always there, and the sentence that names what to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sfumato.errors import NotInstalledError

# Module -> the extra of the distribution `sfumato` that brings it. All other modules come with `sfumato` itself.
EXTRAS = {"cvxpy": "bench", "opendp": "bench", "polars": "polars", "psycopg": "postgres", "python_calamine": "excel"}
EXTRAS |= dict.fromkeys(("google.rpc", "grpc", "grpc_status", "pyspark", "zstandard"), "spark")
EXTRAS |= dict.fromkeys(("db_dtypes", "google.auth", "google.cloud", "pandas_gbq", "pydata_google_auth"), "bigquery")
EXTRAS |= dict.fromkeys(("alembic", "argon2", "authlib", "fastapi", "starlette", "uvicorn"), "service") | {"httpx": "client"}
EXTRAS |= {"databricks": "databricks", "snowflake": "snowflake", "trino": "trino"}


def need(module: str, what: str) -> Any:
    """Import a module that may be missing.

    Parameters
    ----------
    module : str
        Its full name.
    what : str
        What needs it, to begin the sentence with.

    Returns
    -------
    module

    Raises
    ------
    NotInstalledError
        If its package is not installed. A package that is there but fails to import raises its own error.

    Examples
    --------
    >>> need("json", "this example").dumps([1])
    '[1]'
    >>> need("no_such_package.part", "this example")
    Traceback (most recent call last):
    sfumato.errors.NotInstalledError: this example needs no_such_package, which is not installed: pip install
    no_such_package (it comes with sfumato, and not with sfumato-device)
    """
    package = module.split(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != package:
            raise
    known = next((m for m in (module, ".".join(module.split(".")[:2]), package) if m in EXTRAS), None)
    missing = f"{what} needs {known or package}, which is not installed: pip install "
    if known is not None:
        raise NotInstalledError(f'{missing}"sfumato[{EXTRAS[known]}]"')
    raise NotInstalledError(f"{missing}{package} (it comes with sfumato, and not with sfumato-device)")
