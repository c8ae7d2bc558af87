"""`sfumato serve --demo`: a clinic to try the service on."""

from __future__ import annotations

import tempfile
from pathlib import Path

import typer

from sfumato.cli.app import console

PATIENTS = 2_000


def serve_demo(folder: Path | None, host: str | None, port: int | None) -> None:
    """Make the demo clinic, say who is who, and serve it until it is told to stop.

    Parameters
    ----------
    folder : Path or None
        Where it lies; a temporary folder, gone afterwards, if left out.
    host, port : optional
        Where to listen.
    """
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="sfumato-demo-") as temporary:
            _serve(Path(temporary), host, port)
    else:
        _serve(folder, host, port)


def written(folder: Path, patients: int = PATIENTS) -> tuple[list[tuple[str, str]], str]:
    """Write the clinic to a folder; who chose which tier, and the schema.

    Parameters
    ----------
    folder : Path
        Where to.
    patients : int
        How many there are.

    Returns
    -------
    tuple
    """
    import pyarrow.parquet as pq

    from sfumato.demo import write_clinic

    write_clinic(folder, patients=patients)
    roster = pq.read_table(folder / "roster.parquet")
    people = list(zip(map(str, roster["patient"].to_pylist()), roster["consent"].to_pylist(), strict=True))
    return people, (folder / "clinic.toml").read_text(encoding="utf-8")


def _serve(folder: Path, host: str | None, port: int | None) -> None:
    from rich.table import Table

    from sfumato.cli.serve import run
    from sfumato.service.operations.demo import DATASET, PURPOSE, demo_service

    made = demo_service(folder, written)
    screen = console()
    table = Table(show_edge=False, pad_edge=False, box=None)
    for head in ("name", "role", "password", "secret for one-time codes"):
        table.add_column(head, no_wrap=True)
    for account in made.accounts:
        table.add_row(account.name, account.role, account.password, account.codes or "")
    screen.print(f"A made-up clinic is in {folder}. Five accounts:", markup=False, soft_wrap=True)
    screen.print(table)
    screen.print(
        f"The dataset is {DATASET!r}, the analyst's purpose {PURPOSE!r}. One plan is approved, one waits.", markup=False
    )
    run(made.config, host, port, started=_hints)


def _hints(address: str) -> None:
    typer.echo("From Python, in another terminal:", err=True)
    typer.echo("  import sfumato.client", err=True)
    typer.echo(f'  client = sfumato.client.connect("{address}", name="ana", password=...)', err=True)
    typer.echo('  client.open("clinic", purpose="research").count(where="age >= 65", share="0.05")', err=True)
