"""`sfumato check PLAN`: all mistakes of a plan at once."""

from __future__ import annotations

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
