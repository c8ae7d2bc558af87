"""`sfumato demo`: a made-up clinic, from preview to ledger, and what is true beside what is said."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.app import Json, app, console, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from sfumato.demo import Compared, Lived
    from sfumato.people import Estimate
    from sfumato.releases.batch import Outcome
    from sfumato.releases.pipeline import Priced

_SHOWN = ("adaptive", "affine", "minimum")  # of the mechanisms that a preview prices


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where to put the made-up clinic.")] = Path("demo-clinic"),
    patients: Annotated[int, typer.Option(help="How many patients.", min=1000)] = 50_000,
    as_json: Json = False,
) -> None:
    """A clinic of 50,000 made-up patients whose consent depends on age and illness: preview, release, truth, ledger.

    Opens no port and needs no network. A second run finds the releases paid for and charges nothing.
    """
    from sfumato.cli import show
    from sfumato.cli.plans import outcome_record
    from sfumato.demo import compare, live, write_clinic
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
        priced, outcomes = price_plan(loaded), run_plan(loaded, notice=aside)
        print_json(
            {
                "plan": str(plan_path),
                "preview": [show.priced_record(p) for p in priced],
                "releases": [outcome_record(o) for o in outcomes],
                "truth": [c.to_dict() for c in compare(folder, released=answered(outcomes))],
                "life": live(folder).to_dict(),
                "ledger": Ledger.open(loaded.ledger, create=False).balance(loaded.dataset).to_dict(),
            }
        )
        return
    screen.print(f"A made-up clinic is in [bold]{folder}[/bold]: older and sicker people grant less, as in life.")
    _heading(screen, 1, f"sfumato preview {plan_path}", "opens the schema and the roster, not the patients")
    _show_errors(screen, price_plan(loaded)[0])
    _heading(screen, 2, f"sfumato release {plan_path}", "charges the ledger, then reads and adds noise")
    with show.progress(screen, len(loaded.releases)) as step:
        outcomes = run_plan(loaded, progress=step, notice=aside)
    _show_releases(screen, outcomes)
    _heading(screen, 3, "What is true", "only made-up patients may be counted in the open")
    with screen.status("counting"):
        compared = compare(folder, released=answered(outcomes))
    show_truth(screen, compared)
    _heading(screen, 4, "People change their minds", "a plan of its own, with a living roster")
    with screen.status("two epochs"):
        lived = live(folder)
    _show_life(screen, lived)
    _heading(screen, 5, f"sfumato ledger --plan {plan_path}")
    show.show_balance(screen, Ledger.open(loaded.ledger, create=False).balance(loaded.dataset))
    screen.print("\n[bold]Next[/bold]")
    screen.print(f"  open {outcomes[0].folder / 'report.html'} in a browser", soft_wrap=True)
    screen.print(f"  open {lived.page}: what a patient gets who asks what was spent on them", soft_wrap=True)
    screen.print(f"  read and change {plan_path}, then sfumato preview {plan_path}", soft_wrap=True)
    screen.print(
        f"  sfumato release {folder / 'every.toml'}: a release of every kind, from columns of every type", soft_wrap=True
    )
    screen.print("  read docs/consent.md (which setting assumes what) and docs/for-patients.md")


def answered(outcomes: list[Outcome]) -> dict[str, Estimate]:
    """The counts among the releases that `adaptive` made, by condition."""
    from sfumato.people import Estimate

    found = {o.certificate["asked"]["where"]: o.result for o in outcomes}
    return {where: r for where, r in found.items() if isinstance(r, Estimate) and r.mechanism == "adaptive"}


def _heading(screen: Console, number: int, text: str, aside: str = "") -> None:
    """A numbered heading: a command that could be typed, or words."""
    screen.print(f"\n[bold]{number}. {text}[/bold]" + (f"   [dim]{aside}[/dim]" if aside else ""), soft_wrap=True)


def _table(*heads: str) -> Any:
    from rich.table import Table

    table = Table(show_edge=False, pad_edge=False, box=None)
    for place, head in enumerate(heads):
        table.add_column(head, justify="left" if place == 0 or len(heads) == 2 else "right")
    return table


def _show_errors(screen: Console, priced: Priced) -> None:
    """Expected errors of the first release by a few mechanisms: if consent and value are unrelated, and if not."""
    from sfumato.privacy.units import epsilon_text

    table = _table("", "if unrelated", "gap of 5 points", "worst case", "ε from", "to")
    for offer in priced.offers:
        if offer.mechanism not in _SHOWN or offer.errors is None:
            continue
        people = offer.charge.people
        ends = (offer.charge.total if people is None else int(people.min()), offer.charge.total)
        mark = "→" if offer is priced.chosen else " "
        errors = (offer.errors.independent, offer.errors.at[1], offer.errors.worst)
        table.add_row(f"{mark} {offer.mechanism}", *(f"{e:,.0f}" for e in errors), *map(epsilon_text, ends))
    request = priced.request
    screen.print(f"{request.name}, a {request.kind} where {request.where}: expected error in people,")
    screen.print("by how far the strict tier differs from the others")
    screen.print(table)


def _show_releases(screen: Console, outcomes: list[Outcome]) -> None:
    """The answers."""
    from sfumato.cli.show import answer_lines
    from sfumato.people import Estimate

    for outcome in outcomes:
        paid = " (already paid for: nothing was charged)" if outcome.repeated else ""
        screen.print(f"[bold]{outcome.name}[/bold] → {outcome.folder}{paid}", soft_wrap=True)
        result = outcome.result
        if isinstance(result, Estimate):
            screen.print("\n".join(answer_lines(result)))
        else:
            screen.print(f"{len(result.to_frame())} bins by {outcome.certificate['mechanism']}, in data.parquet")
    screen.print("Nobody loses more than they granted (see 5); report.html has the promise.", style="dim")


def show_truth(screen: Console, compared: list[Compared]) -> None:
    """The truth about made-up people, what the default says and what the assumption would have said."""
    table = _table("patients", "truth", "adaptive", "any data", "affine claims", "off by", "")
    for c in compared:
        words, off = c.adaptive.words, f"{c.affine.value - c.truth:+,.0f}"
        spans = ("–".join(map(words, e.interval(0.95, independent=e is c.affine))) for e in (c.adaptive, c.affine))
        verdict = "[green]holds[/green]" if c.holds(c.affine) else "[red]misses[/red]"
        table.add_row(c.question, words(c.truth), words(c.adaptive.value), *spans, off, verdict)
    screen.print(table)
    missed, held = sum(not c.holds(c.affine) for c in compared), sum(c.holds(c.adaptive) for c in compared)
    screen.print(f"affine assumes that consent and count are unrelated: {missed} of {len(compared)} intervals miss.")
    screen.print(f"adaptive, the default, assumes nothing: {held} of {len(compared)} hold; in the long run 95% do.")


def _show_life(screen: Console, lived: Lived) -> None:
    """Who changed what, from when it holds, and the receipt of the one who left."""
    minds, (first, second) = lived.minds, (f"{heads:,} take part" for heads in lived.people)
    table = _table("sfumato people living.toml ...", "")
    for words, holds in (
        ("import choices.parquet", "all patients but one chose a tier"),
        ("epoch", f"epoch 1 begins; over65: {first}"),
        (f"withdraw {minds.leaves}", "granted open; holds from the next release on"),
        (f"change {minds.lowers} strict", "granted standard; strict is spent: takes no part"),
        (f"join {minds.joins} open", "starts at zero, from the next epoch on"),
        ("epoch", f"epoch 2 begins; over65 again: {second}"),
    ):
        table.add_row(f"[bold]{words}[/bold]", holds)
    screen.print(table)
    screen.print(f"[bold]sfumato receipt {minds.leaves} --plan {lived.plan} --html {lived.page}[/bold]", soft_wrap=True)
    for line in lived.receipt["lines"]:
        spent = f"ε {line['charged']} of the {line['grant']} granted then"
        screen.print(f"  {line['name']}, epoch {line['epoch']}, for {line['recipient'] or 'everybody'}: {spent}")
    screen.print(f"  in all ε {lived.receipt['spent']}, and no more: they left. What is published stays.")
