"""`sfumato engines`: which engines are offered, installed and tested; `sfumato engines check`: hard rows on one's own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.app import Json, app, console, escape, print_json

if TYPE_CHECKING:
    from sfumato.tables.engine_list import Offered

engines = typer.Typer(
    help="The engines that hold tables: which are offered, installed and tested; `check` tries one.",
    invoke_without_command=True,
)
app.add_typer(engines, name="engines")


@engines.callback()
def listed(
    context: typer.Context,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table of the documentation.")] = False,
    as_json: Json = False,
) -> None:
    """List the engines that are offered: how to open each, what to install, and whether it was tested."""
    from sfumato.tables.engine_list import OFFERED

    if context.invoked_subcommand is not None:
        return
    if as_json:
        print_json({"engines": [record(offered) for offered in OFFERED]})
    elif markdown:
        typer.echo(markdown_table())
    else:
        _show(OFFERED)


@engines.command()
def check(
    url: Annotated[str, typer.Argument(help="The engine, as in a plan: trino://ann@host:8443/catalog; ${NAME} too.")],
    scratch: Annotated[str, typer.Option(help="A schema, or CATALOGUE.SCHEMA, in which two tables are made and dropped.")],
    as_json: Json = False,
) -> None:
    """Run hard rows on an engine of yours and compare with DuckDB: exit code 1 if any case differs.

    The rows are constants (NaN, infinity, NULL, huge numbers, quotes); none of your tables is touched.
    """
    import warnings

    from sfumato.errors import UntestedEngineWarning
    from sfumato.releases.variables import expanded
    from sfumato.tables.sources import describe
    from sfumato.testing.engine_check import check_url

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UntestedEngineWarning)  # that is why it is tried
        cases = check_url(expanded(url, "the URL"), scratch)
    wrong = [case for case in cases if not case.passed]
    if as_json:
        found = [{"name": c.name, "passed": c.passed, "why": c.why} for c in cases]
        print_json({"engine": describe(url), "passed": not wrong, "cases": found})
    else:
        for case in wrong:
            console().print(f"[red]differs[/red] {escape(case.name)}: {escape(case.why)}")
        verdict = "it agrees with DuckDB here" if not wrong else "do not release from it"
        console().print(f"{len(cases) - len(wrong)} of {len(cases)} cases passed on {escape(describe(url))}: {verdict}")
    if wrong:
        sys.exit(1)


def record(offered: Offered) -> dict[str, Any]:
    """An engine as JSON."""
    return {
        "name": offered.name,
        "opened_by": offered.opened_by,
        "schemes": list(offered.schemes),
        "tested": offered.tested,
        "tested_with": offered.versions,
        "installed": offered.installed,
        "install": offered.install,
        "note": offered.note,
    }


def markdown_table() -> str:
    """The table of docs/engines.md."""
    from sfumato.tables.engine_list import OFFERED

    lines = ["| engine | opened by | tested | install | note |", "|---|---|---|---|---|"]
    for offered in OFFERED:
        tested = f"with {offered.versions}" if offered.tested else "**untested**"
        cells = (offered.name, offered.opened_by, tested, f"`{offered.install}`", offered.note)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def _show(offered: tuple[Offered, ...]) -> None:
    from rich.table import Table

    table = Table(show_edge=False, pad_edge=False)
    for head in ("engine", "opened by", "tested", "installed"):
        table.add_column(head, overflow="fold")
    for one in offered:
        tested = one.versions if one.tested else "untested"
        table.add_row(
            *map(escape, (one.name, one.opened_by.replace("`", ""), tested, "yes" if one.installed else one.install))
        )
    console().print(table)
