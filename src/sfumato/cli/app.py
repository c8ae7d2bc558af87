"""The application that the commands hang on, and what they share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato import __version__

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(
    name="sfumato",
    help="Differentially private releases in which budgets differ per person, attribute, bin and step.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
Json = Annotated[bool, typer.Option("--json", help="Print figures as JSON.")]


@app.callback(invoke_without_command=True)
def _top(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        typer.echo(f"sfumato {__version__}")
        raise typer.Exit


def console(*, stderr: bool = False) -> Console:
    """Where tables and sentences go."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


def print_json(data: Any) -> None:
    """Figures as JSON on standard output."""
    from sfumato.releases.folder import plain_json

    typer.echo(json.dumps(data, indent=1, ensure_ascii=False, default=plain_json))
