"""Parquet files on object storage: listed and read by PyArrow, computed by DuckDB in this process.

``s3://bucket/visits/`` is a folder, with hive partitions as columns if its folders are named ``year=2024``; a URL that ends
with ``.parquet`` is one file. Keys come from where the provider's tools look for them (``AWS_ACCESS_KEY_ID`` and the like, a
profile, the machine's role), never from the URL. Options say where a store is that is not the provider's own:
``s3://bucket/visits/?region=eu-north-1&endpoint_override=minio.example.org:9000``.

Only columns that are used cross the network, and row groups that a condition rules out do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from sfumato.errors import InputError
from sfumato.tables.addresses import reason_to_tell
from sfumato.tables.duckdb_engine import shared_duckdb
from sfumato.tables.engine_settings import EngineSettings
from sfumato.tables.engines import Engine, fresh_name
from sfumato.tables.files import partitions, view_of_dataset
from sfumato.tables.frames import AsArrow
from sfumato.tables.plain_duckdb import Named
from sfumato.tables.sources import describe
from sfumato.tables.words import did_you_mean

OPTIONS: Final = ("region", "scheme", "endpoint_override")


def open_stored(
    url: str, columns: Mapping[str, AsArrow], near: Engine | None = None, settings: EngineSettings | None = None
) -> Engine:
    """A Parquet file on object storage, or those under a folder; their footers are read, no row."""
    _check(url)
    engine, name = shared_duckdb(near, settings), fresh_name("stored")
    try:
        system, path = _file_system(url)
        folder = not path.endswith(".parquet")
        paths = _listed(system, path) if folder else [path]
        parts = partitions(path, paths) if folder and paths else ()
        if paths:
            view_of_dataset(engine.backend, name, paths, parts, columns, filesystem=system)
            return replace(engine, opened=Named(name))
        why = "there is no .parquet file; correct the path"
    except InputError:
        raise
    except Exception as error:
        why = reason_to_tell(error)
    # Outside the handler: an error of the store may quote a key.
    raise InputError(f"cannot read {describe(url)}: {why}")


def _check(url: str) -> None:
    split = urlsplit(url)
    if split.password is not None or (split.username is not None and split.scheme == "s3"):
        raise InputError(
            f"keys of object storage do not stand in a URL: set them in the environment (AWS_ACCESS_KEY_ID, "
            f"AWS_SECRET_ACCESS_KEY) and write {describe(split._replace(netloc=split.hostname or '').geturl())}"
        )
    for key, _ in parse_qsl(split.query, keep_blank_values=True):
        if key not in OPTIONS:
            raise InputError(f"object storage has no option {key!r}; {did_you_mean(key, OPTIONS)}")


def _file_system(url: str) -> tuple[Any, str]:
    from pyarrow.fs import FileSystem

    system, path = FileSystem.from_uri(url)
    return system, path


def _listed(system: Any, folder: str) -> list[str]:
    """The Parquet files under a folder; what begins with a dot or an underscore is somebody's unfinished work."""
    from pyarrow.fs import FileSelector, FileType

    found = system.get_file_info(FileSelector(folder, recursive=True, allow_not_found=True))
    paths = sorted(f.path for f in found if f.type == FileType.File and f.path.endswith(".parquet"))
    root = PurePosixPath(folder)
    return [p for p in paths if not any(part[0] in "._" for part in PurePosixPath(p).relative_to(root).parts)]
