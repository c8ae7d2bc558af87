"""A schema to fill in, from the names and types of a table and nothing else.

Of a text file or a sheet the first line is read, of Parquet and databases the declaration: two tables with the same columns
have the same skeleton to the last byte. Bounds and values are left blank, for reading them off the table would publish them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfumato.tables.blanks import BLANK, HINTS
from sfumato.tables.connecting import connect
from sfumato.tables.csv_lines import Lines
from sfumato.tables.csv_options import CsvOptions
from sfumato.tables.domains.declared import DOMAINS
from sfumato.tables.files import header_of_sheet, readable
from sfumato.tables.sources import SHEETS, TEXTS, TableName, check_source
from sfumato.tables.toml_text import toml_lines

_KEYS = {
    "numeric": ("low", "high", "bins"),
    "decimal": ("low", "high", "bins", "places"),
    "date": ("first", "last", "by"),
    "timestamp": ("first", "last", "by", "zone"),
    "categorical": ("values",),
    "boolean": (),
}


def names_and_types(
    source: str | Path, table: TableName | None = None, csv: CsvOptions | None = None
) -> list[tuple[str, str | None]]:
    """The columns of a table and their declared types; None where the source declares none."""
    text = str(source)
    check_source(text, table, csv)
    if text.endswith(TEXTS):
        with readable(text):
            return [(name, None) for name in Lines.at(text, csv).names]
    if text.endswith(SHEETS):
        return [(name, None) for name in header_of_sheet(text, None if table is None else str(table))]
    found = connect(text, table, columns={}).table.schema()
    return [(str(name), str(kind).removeprefix("!")) for name, kind in found.items()]


def schema_skeleton(columns: list[tuple[str, str | None]]) -> str:
    """The text of a schema for these columns, to be filled in."""
    lines = [
        "# The public schema: which columns a release may use, and which values they can have.",
        f"# Replace every {BLANK!r} by what is publicly known; never by what the table holds, which would publish it.",
        "# Remove the columns that no release needs. `sfumato check PLAN` tells what is left to do.",
        "",
        "[unit]  # what one person can put into the table",
        f'person = "{BLANK}"  # {HINTS["person"]}',
        f'rows_per_person = "{BLANK}"  # {HINTS["rows_per_person"]}; noise grows with it',
        "",
    ]
    for name, kind in columns:
        domain = domain_of(kind)
        head, *_ = toml_lines({"columns": {name: {"type": domain or BLANK}}})
        lines.append(head + ("" if kind is None else f"  # {kind} in the table"))
        lines.append(f'type = "{domain or BLANK}"' + ("" if domain else f"  # {HINTS['type']}"))
        if domain == "numeric" and _is_whole(kind):
            lines.append("integer = true")
        for key in _KEYS[domain] if domain else ():
            blank = f'["{BLANK}"]' if key == "values" else f'"{BLANK}"'
            lines.append(f"{key} = {blank}  # {HINTS[key]}")
        lines.append("")
    return "\n".join(lines)


def domain_of(kind: str | None) -> str | None:
    """The kind of column that a declared type asks for; None where somebody must say it.

    >>> [domain_of(kind) for kind in ("int64", "string", "boolean", None)]
    ['numeric', 'categorical', 'boolean', None]
    """
    if kind is None:
        return None
    found = next((domain for word, domain in _TYPES if kind.startswith(word)), None)
    return found if found in DOMAINS else None


_TYPES: tuple[tuple[str, str], ...] = (
    ("int", "numeric"),
    ("uint", "numeric"),
    ("float", "numeric"),
    ("decimal", "decimal"),
    ("string", "categorical"),
    ("bool", "boolean"),
    ("date", "date"),
    ("timestamp", "timestamp"),
)


def _is_whole(kind: Any) -> bool:
    return str(kind).startswith(("int", "uint"))
