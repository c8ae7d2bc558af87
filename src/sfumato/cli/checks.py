"""`sfumato init TABLE` and `sfumato check PLAN`: a schema and a plan to fill in, and all that is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.app import Json, app, console, print_json
from sfumato.cli.plans import PlanFile


@app.command()
def check(
    plan: PlanFile,
    table: Annotated[
        bool, typer.Option("--table", help="Open the private table too, for its names and types; no row is read.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Tell all mistakes of a plan at once, against the ledger's caps. Nothing private is read, nothing is spent."""
    from sfumato.errors import to_show
    from sfumato.releases.plan_check import check as check_plan

    found = check_plan(plan, table=table)
    if as_json:
        print_json({"plan": str(plan), **found.to_dict()})
    else:
        screen = console()
        for sentence in found.mistakes:
            screen.print(f"- {sentence}", markup=False, soft_wrap=True)
        for note in found.notes:
            screen.print(f"note: {to_show(note)}", markup=False, soft_wrap=True)
        number = len(found.mistakes)
        told = "no mistake" if not number else "1 mistake" if number == 1 else f"{number} mistakes"
        opened = "its table was opened for names and types" if table else "its table was not opened"
        screen.print(f"{to_show(str(plan))}: {told}; {opened}", markup=False, soft_wrap=True)
    if found.mistakes:
        raise typer.Exit(2)


@app.command()
def init(
    table: Annotated[str, typer.Argument(help="A .csv, .parquet, .xlsx or .ods file, a folder, or a database URL.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The folder to write schema.toml and plan.toml to.")] = Path(),
    name: Annotated[str | None, typer.Option("--table", help="The table in a database, or the sheet.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="The sign between fields of a text file.")] = None,
    quote: Annotated[str | None, typer.Option(help="The sign around fields; '' if there is none.")] = None,
    encoding: Annotated[str | None, typer.Option(help="utf-8 unless given; latin-1, cp1252...")] = None,
    decimal: Annotated[str | None, typer.Option(help="The decimal sign, '.' or ','.")] = None,
) -> None:
    """Write a schema and a plan to fill in, from the names and types of a table; no row of it is read."""
    from sfumato.releases.skeleton import init as write
    from sfumato.tables.csv_options import CsvOptions

    said = {"delimiter": delimiter, "quote": quote, "encoding": encoding, "decimal": decimal}
    given = {key: value for key, value in said.items() if value is not None}
    schema, plan = write(table, out, table=name, csv=CsvOptions.of(given or None))
    screen = console()
    screen.print(f"Written: {schema} and {plan}. Fill in what is blank, then: sfumato check {plan}", markup=False)
