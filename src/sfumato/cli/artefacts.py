"""`sfumato verify FOLDER` and `sfumato report FOLDER`: for whoever was given a release."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.app import Json, app, console, escape, print_json
from sfumato.errors import InputError

Folder = Annotated[Path, typer.Argument(help="The folder of a release.")]


@app.command()
def verify(
    folder: Folder,
    keys: Annotated[Path | None, typer.Option("--keys", help="The custodian's public keys: checks the signature.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option("--checkpoint", help="A checkpoint that you kept: checks that the log is the same.")
    ] = None,
    consistency: Annotated[
        Path | None,
        typer.Option("--consistency", help="The proof from the service, where the checkpoint is of another size."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a release that you were given: digests, figures, promise, price, signature, and that its charge is in the log.

    Or a signed statement of what was spent on you, if it is a file; give the service's keys with it.

    Needs no ledger and no network. Exit 1 if a check fails.
    """
    from rich.table import Table

    from sfumato.releases.statements import verify_statement_file
    from sfumato.releases.verification import verify as check

    if folder.is_file():
        found, what = verify_statement_file(folder, keys=keys), "statement"
    else:
        found, what = check(folder, keys=keys, checkpoint=checkpoint, consistency=consistency), "certificate"
    if as_json:
        print_json(found.to_dict())
    else:
        table = Table(show_edge=False, pad_edge=False)
        for head in ("", "checked", "found"):
            table.add_column(head, overflow="fold")
        for one in found.checks:
            table.add_row("[green]✓[/green]" if one.holds else "[red]✗[/red]", escape(one.what), escape(one.found))
        console().print(table)
        verdict = "everything agrees" if found.holds else "this is not what was released"
        if not found.holds and what == "statement":
            verdict = "this is not what the service stated"
        console().print(f"{verdict}; {what} SHA-256 {found.digest}", soft_wrap=True)
        if keys is None:
            console().print(
                "Compare that digest with the custodian's, or give their keys with --keys: whoever rewrites a certificate "
                "can rewrite its folder too."
            )
    if not found.holds:
        sys.exit(1)


@app.command()
def report(
    folder: Folder,
    pdf: Annotated[bool, typer.Option("--pdf", help="Print it to a PDF, by a browser that is installed.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where the PDF goes; report.pdf in the folder if left out.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say where the report of a release is, or print it to a PDF."""
    page = folder / "report.html"
    if not page.is_file():
        raise InputError(f"{folder} holds no report.html: give the folder of a release, as `sfumato release` wrote it")
    if out is not None and not pdf:
        raise InputError("--out says where the PDF goes: add --pdf")
    if pdf:
        from sfumato.releases.pdf import print_pdf

        page = print_pdf(page, out or folder / "report.pdf")
    print_json({"report": str(page)}) if as_json else typer.echo(page)
