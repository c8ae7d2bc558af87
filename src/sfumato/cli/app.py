"""The application that the commands hang on, and what they share."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato import __version__
from sfumato.errors import printable

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(
    name="sfumato",
    help="Differentially private releases in which budgets differ per person, attribute, bin and step.",
    no_args_is_help=True,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
Json = Annotated[bool, typer.Option("--json", help="Print figures as JSON.")]


@app.callback(invoke_without_command=True)
def _top(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)] = False,
    verbose: Annotated[
        int, typer.Option("-v", "--verbose", count=True, help="Say on standard error what is done; -vv says more.")
    ] = 0,
) -> None:
    if version:
        typer.echo(f"sfumato {__version__}")
        raise typer.Exit
    if verbose:
        log_to_stderr(logging.DEBUG if verbose > 1 else logging.INFO)


def log_to_stderr(level: int) -> None:
    """Let the loggers below "sfumato" speak.

    They name requests, prices, steps and public queries, never a value of the table; times are to the minute, as in the
    ledger, since finer ones would tell how long the table took to read.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s", datefmt="%Y-%m-%d %H:%M"))
    logger = logging.getLogger("sfumato")
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False


def escape(text: str) -> str:
    """A text to be shown as it is: neither rich nor the terminal takes anything in it for an order."""
    from rich.markup import escape as without_markup

    return without_markup(printable(text))


def console(*, stderr: bool = False) -> Console:
    """Where tables and sentences go."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


def print_json(data: Any) -> None:
    """Figures as JSON on standard output."""
    from sfumato.releases.folder import plain_json

    typer.echo(json.dumps(data, indent=1, ensure_ascii=False, default=plain_json))
