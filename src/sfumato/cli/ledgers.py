"""`sfumato ledger`: who has what left, and what it was spent on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.app import Json, app, console, print_json
from sfumato.errors import InputError, SfumatoError


@app.command()
def ledger(
    dataset: Annotated[
        str | None, typer.Argument(help="Name of the dataset; all of them if left out.", show_default=False)
    ] = None,
    location: Annotated[
        str | None,
        typer.Option("--ledger", help="Ledger file or postgresql:// URL; found in this folder if left out."),
    ] = None,
    plan: Annotated[Path | None, typer.Option(help="Take ledger and dataset from this plan.")] = None,
    as_json: Json = False,
) -> None:
    """Show who has what left and what it was spent on."""
    from sfumato.cli import show
    from sfumato.ledger import Ledger

    if plan is not None:
        from sfumato.releases.batch import load

        loaded = load(plan)
        location, dataset = location or loaded.ledger, dataset or loaded.dataset
    book = Ledger.open(location or find_ledger(dataset), create=False)
    names = [dataset] if dataset is not None else book.datasets()
    balances = [book.balance(name) for name in names]
    if as_json:
        print_json({"ledger": book.location, "datasets": [b.to_dict() for b in balances]})
        return
    for balance in balances:
        show.show_balance(console(), balance)


def find_ledger(dataset: str | None) -> str:
    """The ledger in this folder that knows the dataset: NAME.ledger, or the only other one that does."""
    from sfumato.ledger import datasets_at

    if dataset is None:
        raise InputError("say which dataset, which --ledger or which --plan")
    named = Path(f"{dataset}.ledger")
    if named.exists():
        return str(named)
    here = sorted(Path.cwd().glob("*.ledger"))
    knows = []
    for path in here:
        try:
            knows += [path] if dataset in datasets_at(path) else []
        except SfumatoError:  # some other file of that ending
            continue
    if len(knows) == 1:
        return str(knows[0])
    seen = ", ".join(p.name for p in (knows or here)) or "none"
    what = f"several ledgers here know {dataset!r}" if knows else f"no ledger in this folder knows {dataset!r}"
    raise InputError(f"{what} (ledgers here: {seen}); name one with --ledger FILE or --plan PLAN")
