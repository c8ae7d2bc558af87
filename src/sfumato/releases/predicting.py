"""A released model applied to the rows of a file, a batch at a time, coded by the schema in the model where the rows lie.

The rows are coded by the same expressions that coded the training table, so a value means the same here as it did there. A
model is public; what it says of a table is as private as that table.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.errors import InputError, SfumatoError
from sfumato.tables.connecting import connect
from sfumato.tables.csv_options import CsvOptions
from sfumato.tables.engines import Engine
from sfumato.tables.frames import person_array
from sfumato.tables.schema import Schema

BATCH = 100_000
FORMATS = (".csv", ".parquet")


@dataclass(frozen=True)
class Applied:
    """What was predicted.

    Attributes
    ----------
    rows : int
        How many rows the table has.
    unknown : tuple of str
        Columns of the table that the model does not look at.
    """

    rows: int
    unknown: tuple[str, ...]


def predict_file(
    model: Any,
    table: str | Path,
    out: str | Path | None,
    *,
    proba: bool = False,
    keep: Sequence[str] = (),
    csv: Mapping[str, str] | None = None,
    batch: int = BATCH,
) -> Applied:
    """Apply a fitted estimator to every row of a file.

    Parameters
    ----------
    model : fitted estimator
        What `sfumato.load` gave; it must have been trained by a schema.
    table : path or address
        What `sfumato.open` takes as a source: a CSV or Parquet file, for example.
    out : path, optional
        A ``.csv`` or ``.parquet`` file that does not exist yet; standard output, as CSV, if left out.
    proba : bool
        Whether the probability of every class is written too.
    keep : sequence of str
        Columns of the table to copy beside the predictions, such as the one that names the row.
    csv : mapping, optional
        How a text file is written: delimiter, quote, encoding, decimal (see `sfumato.tables.CsvOptions`).
    batch : int
        Rows at a time.

    Returns
    -------
    Applied
    """
    schema = _predictors(model)
    if proba and not hasattr(model, "predict_proba"):
        raise InputError(f"{type(model).__name__} gives no probabilities; leave out --proba, or release another estimator")
    used = {name: domain.to_arrow for name, domain in schema.columns.items()} | dict.fromkeys(keep, person_array)
    engine = connect(str(table), columns=used, csv=CsvOptions.of(csv))
    columns = list(engine.table.columns)
    missing = [name for name in [*schema.names, *keep] if name not in columns]
    if missing:
        raise InputError(
            f"{table} has no column {', '.join(map(repr, missing))}; the model needs {', '.join(schema.names)}, each by its "
            "exact name"
        )
    clash = [name for name in keep if name in _headings(model, proba)]
    if clash:
        raise InputError(f"the column {clash[0]!r} has the name of a prediction; rename it, or do not keep it")
    target = None if out is None else _free(Path(out))
    rows = 0
    with _Writer(target) as writer:
        for found in _batches(engine, schema, keep, batch):
            rows += found.num_rows
            writer.write(_predicted(model, found, schema, keep, proba))
        if not rows:
            writer.write(_predicted(model, None, schema, keep, proba))
    return Applied(rows, tuple(c for c in columns if c not in schema.names and c not in keep and c != model.target))


def _predictors(model: Any) -> Schema:
    if getattr(model, "schema", None) is None or not hasattr(model, "_coding"):
        raise InputError("this model was trained on numbers without a schema: load it in Python and call its predict")
    # Without the unit: a prediction is for every row, whoever owns it.
    return Schema({a.name: a.domain for a in model._coding.attributes})


def _free(path: Path) -> Path:
    if path.suffix not in FORMATS:
        raise InputError(f"predictions are written as {' or '.join(FORMATS)}; {path} ends with neither")
    if path.exists():
        raise InputError(f"{path} already exists; choose another name")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent} to write {path.name} to")
    return path


def _batches(engine: Engine, schema: Schema, keep: Sequence[str], batch: int) -> Iterator[Any]:
    """The cells of the rows as c0, c1... and the columns to keep as k0, k1..., in the order of the table."""
    cells = {}
    for i, (name, domain) in enumerate(schema.columns.items()):
        column = domain.column(engine.table[name], engine=engine.name, what=f"column {name!r}", text=engine.text)
        cells[f"c{i}"] = domain.cell(column).fill_null(-1).cast("int64")
    kept = {f"k{i}": engine.table[name] for i, name in enumerate(keep)}
    expr = engine.table.select(**cells, **kept)
    engine.fetch(engine.table.limit(0))  # reads what is yet to be read, and tells what cannot be
    try:
        yield from engine.backend.to_pyarrow_batches(expr, chunk_size=batch)
    except SfumatoError:
        raise
    except Exception as error:
        reason = type(error).__name__
    else:
        return
    raise InputError(f"the table could not be read to its end ({reason}); what was written so far is thrown away")


def _predicted(model: Any, found: Any, schema: Schema, keep: Sequence[str], proba: bool) -> Any:
    """A table of what is kept and what is predicted."""
    import pyarrow as pa

    attributes = model._coding.attributes
    leaves = np.empty((0 if found is None else found.num_rows, len(attributes)), dtype=np.int32, order="F")
    for j, attribute in enumerate(attributes):
        if found is not None:
            cells = found.column(f"c{j}").to_numpy(zero_copy_only=False)
            leaves[:, j] = np.where(cells < 0, -1, attribute.leaf_of_cell[np.maximum(cells, 0)])
    columns: dict[str, Any] = {
        name: pa.array([], pa.null()) if found is None else found.column(f"k{i}") for i, name in enumerate(keep)
    }
    labels, *shares = _headings(model, proba)
    columns[labels] = pa.array(model._coded_labels(leaves).tolist(), pa.array(model.classes_.tolist()).type)
    if proba:
        for name, share in zip(shares, model._coded_shares(leaves).T, strict=True):
            columns[name] = pa.array(share)
    return pa.table(columns)


def _headings(model: Any, proba: bool) -> list[str]:
    shares = [f"probability_{c}" for c in model.classes_] if proba else []
    return [f"predicted_{model.target}" if model.target else "predicted", *shares]


class _Writer:
    """CSV or Parquet, written beside its name and renamed when it is whole."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.partial = None if path is None else path.with_name(f".{path.name}.{os.getpid()}.partial")
        self.writer: Any = None

    def __enter__(self) -> _Writer:
        return self

    def write(self, table: Any) -> None:
        """Add rows; the first ones decide the columns."""
        if self.writer is None:
            self.writer = self._open(table.schema)
        self.writer.write_table(table)

    def _open(self, schema: Any) -> Any:
        import sys

        from pyarrow import csv, parquet

        if self.partial is None or self.path is None:
            return csv.CSVWriter(sys.stdout.buffer, schema)
        kind = parquet.ParquetWriter if self.path.suffix == ".parquet" else csv.CSVWriter
        return kind(self.partial, schema)

    def __exit__(self, kind: Any, *_: Any) -> None:
        if self.writer is not None:
            self.writer.close()
        if self.partial is not None and self.path is not None:
            if kind is None:
                os.replace(self.partial, self.path)
            else:
                self.partial.unlink(missing_ok=True)
