"""`sfumato ledger`: who has what left, and what it was spent on.

A ledger may hold a hundred thousand releases: the newest are shown, a page at a time, and ``--all`` prints the others
while it reads them, so that neither takes longer, or more memory, than what it shows.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.app import Json, app, console, print_json
from sfumato.errors import InputError, SfumatoError

if TYPE_CHECKING:
    from sfumato.ledger import Ledger


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
    limit: Annotated[int, typer.Option(help="How many releases to show, the newest ones.")] = 20,
    before: Annotated[
        int | None, typer.Option(help="Show releases before the one of this number.", show_default=False)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show every release, oldest first.")] = False,
    as_json: Json = False,
) -> None:
    """Show who has what left and what it was spent on lately."""
    from sfumato.cli import show
    from sfumato.ledger import Ledger

    if plan is not None:
        from sfumato.releases.batch import load

        loaded = load(plan)
        location, dataset = location or loaded.ledger, dataset or loaded.dataset
    book = Ledger.open(location or find_ledger(dataset), create=False)
    names = [dataset] if dataset is not None else book.datasets()
    if before is not None and (everything or len(names) != 1):
        raise InputError("--before goes with one dataset and not with --all; name the dataset, or leave one of them out")
    if everything:
        _everything(book, names, as_json)
        return
    balances = [book.balance(name, releases=limit) for name in names]
    if before is not None:
        balances = [replace(b, releases=book.history(b.dataset, limit=limit, before=before)) for b in balances]
    if as_json:
        print_json({"ledger": book.location, "datasets": [b.to_dict() for b in balances]})
        return
    for balance in balances:
        show.show_balance(console(), balance)
        if balance.releases.older is not None:
            where = ["--plan", str(plan)] if plan is not None else ["--ledger", location] if location else []
            told = shlex.join(["sfumato", "ledger", balance.dataset, *where, "--before", str(balance.releases.older)])
            console().print(f"Older ones: {told}, or --all for every one.", markup=False, soft_wrap=True)


@app.command()
def allow(
    dataset: Annotated[str, typer.Argument(help="Name of the dataset.")],
    analyst: Annotated[str, typer.Argument(help="Whose allowance it is.")],
    purpose: Annotated[str, typer.Argument(help="What it is for.")],
    epsilon: Annotated[str, typer.Argument(help="What they may spend for it in all; 0 ends it.")],
    per_day: Annotated[str | None, typer.Option(help="What they may spend in one day (UTC).", show_default=False)] = None,
    by: Annotated[str | None, typer.Option(help="Who grants it, for the ledger.", show_default=False)] = None,
    location: Annotated[
        str | None,
        typer.Option("--ledger", help="Ledger file or postgresql:// URL; found in this folder if left out."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what an analyst may spend for a purpose; the newest word holds, and what was spent stays spent."""
    from sfumato.ledger import Ledger

    book = Ledger.open(location or find_ledger(dataset), create=False)
    book.allow(dataset, analyst=analyst, purpose=purpose, epsilon=epsilon, per_day=per_day, by=by)
    told = next(a for a in book.allowances(dataset, analyst) if a.purpose == purpose).to_dict()
    if as_json:
        print_json(told)
        return
    rate = "" if per_day is None else f", {told['left_today']} of them today"
    console().print(f"{analyst} may spend {told['left']} of {told['cap']} for {purpose} in {dataset}{rate}.", markup=False)


def _everything(book: Ledger, names: list[str], as_json: bool) -> None:
    """Every release of some datasets, printed as they are read."""
    from sfumato.cli import show
    from sfumato.releases.folder import plain_json

    if not as_json:
        for name in names:
            show.show_balance(console(), book.balance(name, releases=0), history=False)
            for release in book.releases(name):
                typer.echo(show.release_line(release.to_dict()))
        return
    typer.echo(f'{{"ledger": {json.dumps(book.location)}, "datasets": [')
    for number, name in enumerate(names):
        head = {k: v for k, v in book.balance(name, releases=0).to_dict().items() if k != "releases"}
        typer.echo(json.dumps(head, ensure_ascii=False, default=plain_json)[:-1] + ', "releases": [')
        for count, release in enumerate(book.releases(name)):
            line = json.dumps(release.to_dict(), ensure_ascii=False, default=plain_json)
            typer.echo(("," if count else "") + line)
        typer.echo("]}" + ("," if number + 1 < len(names) else ""))
    typer.echo("]}")


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
