"""The command line, a module for each group of commands; `sfumato --help` lists them.

Exit codes: 0 done, 1 a check did not hold (audit, bench --check), 2 the request was refused and says why.
"""

from __future__ import annotations

import sys

import typer

from sfumato.cli import (
    artefacts,
    checks,
    demo,
    engines,
    experiments,
    imports,
    ledgers,
    mechanisms,
    people,
    plans,
    predict,
    profiles,
)
from sfumato.cli.app import app
from sfumato.errors import SfumatoError

__all__ = [
    "app",
    "artefacts",
    "checks",
    "demo",
    "engines",
    "experiments",
    "imports",
    "ledgers",
    "main",
    "mechanisms",
    "people",
    "plans",
    "predict",
    "profiles",
]


def main() -> None:
    """Entry point: refusals become one clear message and exit code 2."""
    try:
        app(standalone_mode=True)
    except SfumatoError as error:
        typer.echo(f"sfumato: {error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("sfumato: stopped; what was reserved stays spent", err=True)
        sys.exit(130)
