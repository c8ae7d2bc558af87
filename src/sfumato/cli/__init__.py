"""The command line: sfumato preview | release | ledger | bench | audit | demo.

Exit codes: 0 done, 1 a check did not hold (audit, bench --check), 2 the request was refused and says why.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato import __version__
from sfumato.errors import InputError, SfumatoError

if TYPE_CHECKING:
    from rich.console import Console

    from sfumato.releases.batch import Outcome

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


@app.command()
def preview(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file.")],
    as_json: Json = False,
) -> None:
    """Show price and expected error of every applicable mechanism. The private table is not opened."""
    from sfumato.cli import show
    from sfumato.releases.batch import load
    from sfumato.releases.batch import preview as price_plan

    priced = price_plan(load(plan))
    if as_json:
        _print_json({"plan": str(plan), "releases": [show.priced_record(p) for p in priced]})
        return
    show.show_preview(_console(), priced)


@app.command()
def release(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file.")],
    only: Annotated[str | None, typer.Option(help="Run only the release of this name.")] = None,
    as_json: Json = False,
) -> None:
    """Charge the ledger, make the releases and write their folders. An identical release is never charged twice."""
    from sfumato.cli import show
    from sfumato.releases.batch import load
    from sfumato.releases.batch import release as run_plan

    loaded = load(plan)
    console = _console()
    with show.progress(console, len(loaded.releases) if only is None else 1, quiet=as_json) as step:
        outcomes = run_plan(loaded, only=only, progress=step, notice=_console(stderr=True).print)
    if as_json:
        _print_json({"releases": [_outcome_record(o) for o in outcomes]})
        return
    show.show_outcomes(console, outcomes)


@app.command()
def ledger(
    dataset: Annotated[
        str | None, typer.Argument(help="Name of the dataset; all of them if left out.", show_default=False)
    ] = None,
    location: Annotated[
        str | None,
        typer.Option("--ledger", help="Ledger file or postgresql:// URL; DATASET.ledger in this folder if left out."),
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
    if location is None:
        if dataset is None:
            raise InputError("say which dataset, which --ledger or which --plan")
        location = f"{dataset}.ledger"
    book = Ledger.open(location, create=False)
    names = [dataset] if dataset is not None else book.datasets()
    balances = [book.balance(name) for name in names]
    if as_json:
        _print_json({"ledger": book.where, "datasets": [b.to_dict() for b in balances]})
        return
    for balance in balances:
        show.show_balance(_console(), balance)


@app.command()
def bench(
    name: Annotated[str, typer.Argument(help="Which experiments; `sfumato bench list` names them.")],
    quick: Annotated[bool, typer.Option("--quick", help="A small honest version, in under a minute.")] = False,
    data: Annotated[Path | None, typer.Option(help="Folder with the public datasets of the papers.")] = None,
    plots: Annotated[Path | None, typer.Option(help="Write pictures to this folder.")] = None,
    peers: Annotated[bool, typer.Option("--peers", help="Run other libraries too, where they are installed.")] = False,
    part: Annotated[
        str | None, typer.Option(help="One part of a long bench: a data set, `time`, ... (see its help).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the experiments behind the figures in the documentation; each ends with its claims."""
    from sfumato.bench import NAMES, run_bench
    from sfumato.cli import show

    if name == "list":
        _print_json({"benches": list(NAMES)}) if as_json else typer.echo("\n".join(NAMES))
        return
    console = _console(stderr=True)
    found = run_bench(
        name,
        quick=quick,
        data=data,
        plots=plots,
        peers=peers,
        part=part,
        progress=lambda s: console.print(f"[dim]{s}[/dim]"),
    )
    if as_json:
        _print_json(found)
        return
    show.show_bench(_console(), name, found)


@app.command()
def audit(
    name: Annotated[str, typer.Argument(help="A mechanism; `sfumato audit list` names them, `all` runs every one.")],
    trials: Annotated[int, typer.Option(help="Outputs to draw from each neighbour.", min=1000)] = 200_000,
    confidence: Annotated[float, typer.Option(help="Of the lower bound on the loss.")] = 0.999,
    as_json: Json = False,
) -> None:
    """Attack a mechanism: a lower confidence bound on its loss, next to the ε it claims. Exit 1 if one is caught."""
    from sfumato.audit import names as case_names
    from sfumato.audit import run
    from sfumato.cli import show

    if name == "list":
        _print_json({"cases": list(case_names())}) if as_json else typer.echo("\n".join(case_names()))
        return
    console = _console(stderr=True)

    def heard(line: str) -> None:
        if name == "all":
            console.print(f"[dim]{line}[/dim]")

    results = run([] if name == "all" else [name], trials=trials, confidence=confidence, progress=heard)
    if as_json:
        _print_json({"results": [r.to_dict() for r in results]})
    else:
        show.show_audit(_console(), results)
    if not all(r.passed for r in results):
        raise typer.Exit(1)


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where to put the made-up clinic.")] = Path("demo-clinic"),
    patients: Annotated[int, typer.Option(help="How many patients.", min=1000)] = 50_000,
    as_json: Json = False,
) -> None:
    """A clinic of 50,000 made-up patients with consent tiers: preview, release a count and a histogram, show the ledger.

    Opens no port and needs no network. A second run finds the releases paid for and charges nothing.
    """
    from sfumato.cli import show
    from sfumato.demo import write_clinic
    from sfumato.ledger import Ledger
    from sfumato.releases.batch import load
    from sfumato.releases.batch import preview as price_plan
    from sfumato.releases.batch import release as run_plan

    console = _console()
    plan_path = write_clinic(folder, patients=patients)
    if as_json:
        loaded = load(plan_path)
        _print_json(
            {
                "plan": str(plan_path),
                "preview": [show.priced_record(p) for p in price_plan(loaded)],
                "releases": [_outcome_record(o) for o in run_plan(loaded)],
                "ledger": Ledger.open(loaded.ledger, create=False).balance(loaded.dataset).to_dict(),
            }
        )
        return
    console.print(f"A made-up clinic of {patients:,} patients is in [bold]{folder}[/bold]; its plan is {plan_path}.\n")
    loaded = load(plan_path)
    console.print(f"[bold]sfumato preview {plan_path}[/bold]   (opens the schema and the roster, not the patients)")
    show.show_preview(console, price_plan(loaded))
    console.print(f"\n[bold]sfumato release {plan_path}[/bold]")
    with show.progress(console, len(loaded.releases)) as step:
        outcomes = run_plan(loaded, progress=step)
    show.show_outcomes(console, outcomes)
    console.print(f"\n[bold]sfumato ledger --plan {plan_path}[/bold]")
    show.show_balance(console, Ledger.open(loaded.ledger, create=False).balance(loaded.dataset))
    console.print(f"\nOpen {outcomes[0].folder / 'report.html'} in a browser.")


def _outcome_record(outcome: Outcome) -> dict[str, Any]:
    return {
        "name": outcome.name,
        "folder": str(outcome.folder),
        "repeated": outcome.repeated,
        "certificate": outcome.certificate,
    }


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


def _print_json(data: Any) -> None:
    from sfumato.releases.folder import plain_json

    typer.echo(json.dumps(data, indent=1, ensure_ascii=False, default=plain_json))


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
