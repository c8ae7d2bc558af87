"""The command line, a module for each group of commands; `sfumato --help` lists them.

Exit codes: 0 done, 1 a check did not hold (audit, bench --check), 2 the request was refused and says why.
"""

from __future__ import annotations

import os
import sys
from copy import copy

import typer

from sfumato.cli import (
    artefacts,
    checks,
    closing,
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
    serve,
)
from sfumato.cli.app import app
from sfumato.errors import SfumatoError

__all__ = [
    "app",
    "artefacts",
    "checks",
    "closing",
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
    "serve",
]


def main() -> None:
    """Entry point: refusals become one clear message and exit code 2."""
    try:
        _asked()(standalone_mode=True)
    except SfumatoError as error:
        typer.echo(f"sfumato: {error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("sfumato: stopped; what was reserved stays spent", err=True)
        sys.exit(130)


def _asked() -> typer.Typer:
    """The application with the one command that is asked for: Typer takes as long to prepare all of them as to load."""
    name = next(iter(sys.argv[1:]), "")
    if not isinstance(app, typer.Typer) or "_SFUMATO_COMPLETE" in os.environ:
        return app
    only = copy(app)
    only.registered_commands = [c for c in app.registered_commands if name in (c.name, getattr(c.callback, "__name__", ""))]
    only.registered_groups = [g for g in app.registered_groups if g.name == name]
    return only if only.registered_commands or only.registered_groups else app
