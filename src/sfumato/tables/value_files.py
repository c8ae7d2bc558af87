"""Long lists of categories in a file beside the schema: one value on a line, or a CSV file of value and label.

The list is read when the schema is, and the schema holds the values: what a request is does not depend on a path, and a file
that changes makes another schema.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.errors import SchemaError

MOST_VALUES = 1_000_000
_HEADERS = ({"code", "label"}, {"value", "label"}, {"code"}, {"value"})


def with_values(plain: Any, folder: Path | None, what: str) -> Any:
    """The table of a column (`plain`) with what its `values_file` holds in place of that key; `what` names it in errors.

    A path is relative to `folder`, where the schema file lies.
    """
    if not isinstance(plain, Mapping) or "values_file" not in plain:
        return plain
    rest = {key: value for key, value in plain.items() if key not in ("values_file", "integer")}
    name, whole = plain["values_file"], plain.get("integer", False)
    if "values" in plain or "labels" in plain:
        raise SchemaError(f"{what}: give values and labels, or a values_file that holds both, not the two together")
    if not isinstance(name, str) or not name:
        raise SchemaError(f"{what}: values_file must be the name of a file in quotes, got {name!r}")
    if not isinstance(whole, bool):
        raise SchemaError(f"{what}: integer must be true or false, got {whole!r}")
    if folder is None and not Path(name).is_absolute():
        raise SchemaError(
            f"{what}: values_file = {name!r} is relative to a schema file, and there is none; give values = [...]"
        )
    pairs = _pairs(Path(name) if folder is None else folder / name, what)
    values = [_value(code, whole, what) for code, _ in pairs]
    labels = {str(v): label for v, (_, label) in zip(values, pairs, strict=True) if label}
    return {"type": "categorical", **rest, "values": values} | ({"labels": labels} if labels else {})


def _value(code: str, whole: bool, what: str) -> str | int:
    try:
        return int(code) if whole else code
    except ValueError:
        raise SchemaError(
            f"{what}: {code!r} in its values_file is not a whole number; correct it, or leave out integer"
        ) from None


def _pairs(path: Path, what: str) -> list[tuple[str, str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SchemaError(
            f"{what}: no file {str(path)!r}; correct values_file, which is relative to the schema file"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SchemaError(f"{what}: cannot read its values_file {str(path)!r} ({type(error).__name__}); use UTF-8") from None
    lines = [line for line in text.splitlines() if line.strip()]
    if path.suffix.lower() in (".csv", ".tsv"):
        rows = list(csv.reader(lines, delimiter="\t" if path.suffix.lower() == ".tsv" else ","))
        if rows and {cell.strip().lower() for cell in rows[0]} in _HEADERS:
            rows = rows[1:]
        odd = next((row for row in rows if not 1 <= len(row) <= 2), None)
        if odd is not None:
            raise SchemaError(
                f"{what}: a line of its values_file has {len(odd)} fields; give a value, or a value and its label"
            )
        pairs = [(row[0], row[1] if len(row) == 2 else "") for row in rows]
    else:
        pairs = [(line, "") for line in lines]
    if not pairs:
        raise SchemaError(f"{what}: its values_file {str(path)!r} holds no values")
    if len(pairs) > MOST_VALUES:
        raise SchemaError(f"{what}: {len(pairs):,} values in its values_file; at most {MOST_VALUES:,}")
    return pairs
