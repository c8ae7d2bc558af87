"""`sfumato import`: a typed Parquet file from a text file, and what was found on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.app import Json, app, console, escape, print_json


@app.command("import")
def import_text(
    table: Annotated[str, typer.Argument(help="The .csv or .tsv file; its first line names the columns.")],
    out: Annotated[Path, typer.Argument(help="The .parquet file to be written; it must not exist.")],
    schema: Annotated[Path, typer.Option(help="The public schema, a TOML file.")],
    whole: Annotated[
        list[str] | None, typer.Option(help="A column to keep as whole numbers, as the person column; repeatable.")
    ] = None,
    number: Annotated[list[str] | None, typer.Option(help="A further column to keep as numbers; repeatable.")] = None,
    text: Annotated[list[str] | None, typer.Option(help="A further column to keep as text; repeatable.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="The sign between fields, if not a comma (.tsv: a tab).")] = None,
    quote: Annotated[str | None, typer.Option(help="The sign around fields; '' if there is none.")] = None,
    encoding: Annotated[str | None, typer.Option(help="utf-8 unless given; latin-1, cp1252...")] = None,
    decimal: Annotated[str | None, typer.Option(help="The decimal sign, '.' or ','.")] = None,
    as_json: Json = False,
) -> None:
    """Make a typed Parquet file of a text file, and tell its custodian what was found. The figures are private."""
    from sfumato.tables.importing import PRIVATE, import_table

    said = {"delimiter": delimiter, "quote": quote, "encoding": encoding, "decimal": decimal}
    csv = {key: value for key, value in said.items() if value is not None}
    kept = {"wholes": whole or (), "numbers": number or (), "texts": text or ()}
    found = import_table(table, out, schema=schema, csv=csv or None, **kept)
    if as_json:
        print_json(found.to_dict())
        return
    from rich.table import Table

    screen = console()
    screen.print(f"[bold red]PRIVATE.[/] {PRIVATE}\n")
    screen.print(f"{escape(found.path)}: {found.records} records; {found.malformed} malformed lines were skipped")
    shown = Table("column", "missing", "no number, or outside the domain")
    for name in found.missing:
        shown.add_row(escape(name), str(found.missing[name]), str(found.outside[name]))
    screen.print(shown)
