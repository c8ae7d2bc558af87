"""`sfumato demo`: a made-up clinic, from preview to ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.app import Json, app, console, print_json


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
    from sfumato.cli.plans import outcome_record
    from sfumato.demo import write_clinic
    from sfumato.ledger import Ledger
    from sfumato.releases.batch import load
    from sfumato.releases.batch import preview as price_plan
    from sfumato.releases.batch import release as run_plan

    screen = console()

    def aside(sentence: str) -> None:
        console(stderr=True).print(f"note: {sentence}", markup=False)

    plan_path = write_clinic(folder, patients=patients)
    loaded = load(plan_path)
    if as_json:
        print_json(
            {
                "plan": str(plan_path),
                "preview": [show.priced_record(p) for p in price_plan(loaded)],
                "releases": [outcome_record(o) for o in run_plan(loaded, notice=aside)],
                "ledger": Ledger.open(loaded.ledger, create=False).balance(loaded.dataset).to_dict(),
            }
        )
        return
    screen.print(f"A made-up clinic of {patients:,} patients is in [bold]{folder}[/bold]; its plan is {plan_path}.\n")
    screen.print(f"[bold]sfumato preview {plan_path}[/bold]   (opens the schema and the roster, not the patients)")
    show.show_preview(screen, price_plan(loaded))
    screen.print(f"\n[bold]sfumato release {plan_path}[/bold]")
    with show.progress(screen, len(loaded.releases)) as step:
        outcomes = run_plan(loaded, progress=step, notice=aside)
    show.show_outcomes(screen, outcomes)
    screen.print(f"\n[bold]sfumato ledger --plan {plan_path}[/bold]")
    show.show_balance(screen, Ledger.open(loaded.ledger, create=False).balance(loaded.dataset))
    screen.print(f"\nOpen {outcomes[0].folder / 'report.html'} in a browser.")
