"""`sfumato init TABLE`: a schema and a plan to fill in, from names and types only."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sfumato.errors import InputError
from sfumato.tables.addresses import without_secrets
from sfumato.tables.blanks import BLANK, HINTS
from sfumato.tables.csv_options import CsvOptions
from sfumato.tables.skeleton import names_and_types, schema_skeleton
from sfumato.tables.toml_text import toml_lines

SCHEMA, PLAN = "schema.toml", "plan.toml"


def init(
    source: str, folder: str | Path = ".", *, table: str | None = None, csv: CsvOptions | None = None
) -> tuple[Path, Path]:
    """Write a schema and a plan to be filled in.

    Parameters
    ----------
    source : str
        The table: a file, a folder of Parquet files or a database URL. Names and types are read, and no row.
    folder : path
        Where to write them. Neither file may exist.
    table : str, optional
        The table in a database, or the sheet.
    csv : CsvOptions, optional
        How a text file is written.

    Returns
    -------
    schema, plan : Path
    """
    home = Path(folder)
    made = (home / SCHEMA, home / PLAN)
    for path in made:
        if path.exists() or path.is_symlink():
            raise InputError(f"{path} exists already; remove it, or choose another folder with -o")
    columns = names_and_types(source, table, csv)
    texts = (schema_skeleton(columns), plan_skeleton(source, home, table=table, csv=csv))
    try:
        home.mkdir(parents=True, exist_ok=True)
        for path, text in zip(made, texts, strict=True):
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise InputError(f"cannot write to {home}: {error.strerror}; choose another folder with -o") from None
    return made


def plan_skeleton(source: str, home: Path, *, table: str | None, csv: CsvOptions | None) -> str:
    """The text of a plan for a table, to be filled in."""
    url = "://" in source
    place = without_secrets(source) if url else Path(os.path.relpath(source, home)).as_posix()
    name = re.sub(r"[^\w-]+", "-", table if url and table else Path(source.rstrip("/")).name.split(".")[0]).strip("-")
    dataset = {"name": name or "table", "source": place.replace("$", "$$"), "schema": SCHEMA}
    dataset |= {} if table is None else {"table": table}
    lines = [
        f"# A plan to fill in: replace every {BLANK!r}, then `sfumato check {PLAN}` and `sfumato preview {PLAN}`.",
        *toml_lines({"dataset": dataset}),
    ]
    lines[-1:] = [f'rows = "{BLANK}"  # {HINTS["rows"]}']
    if url:
        lines.append("# A password comes from the environment: postgresql://user:${PGPASSWORD}@host/database")
    lines.append("")
    if csv is not None:
        said = {"delimiter": csv.delimiter, "quote": csv.quote, "encoding": csv.encoding, "decimal": csv.decimal}
        lines += list(toml_lines({"dataset": {"csv": {k: v for k, v in said.items() if v is not None}}}))
    lines += [
        *list(toml_lines({"ledger": {"location": f"{name or 'table'}.ledger"}}))[:-1],
        f'epsilon = "{BLANK}"  # {HINTS["epsilon"]}: all releases of this table together',
        "",
        "[[release]]",
        'name = "everybody"',
        'kind = "count"  # `sfumato mechanisms` lists the kinds, their keys and their mechanisms',
        f'epsilon = "{BLANK}"  # {HINTS["epsilon"]}: this release',
        "",
    ]
    return "\n".join(lines)
