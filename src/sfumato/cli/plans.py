"""`sfumato preview PLAN` and `sfumato release PLAN`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.app import Json, app, console, print_json

if TYPE_CHECKING:
    from sfumato.releases.batch import Outcome
    from sfumato.results import Result

PlanFile = Annotated[Path, typer.Argument(help="The plan, a TOML file.")]


@app.command()
def preview(
    plan: PlanFile,
    picture: Annotated[Path | None, typer.Argument(help="With --chart: where to write it as PNG.")] = None,
    chart: Annotated[bool, typer.Option("--chart", help="Draw expected error against ε or share.")] = False,
    error: Annotated[float | None, typer.Option(help="Tell the smallest ε or share with this error.")] = None,
    relative: Annotated[str | None, typer.Option(help="The same, relative to --size: 5% or 0.05.")] = None,
    size: Annotated[float | None, typer.Option(help="A public guess of the answer, for --relative.")] = None,
    confidence: Annotated[float | None, typer.Option(help="The error is the half-width at this confidence.")] = None,
    only: Annotated[str | None, typer.Option(help="Only the release of this name.")] = None,
    as_json: Json = False,
) -> None:
    """Show price and expected error of every applicable mechanism. The private table is not opened."""
    from sfumato.cli import charts, show
    from sfumato.releases.batch import load
    from sfumato.releases.batch import preview as price_plan

    loaded = load(plan)
    if chart or picture is not None or error is not None or relative is not None:
        wish = charts.Wish(error, charts.percentage(relative), size, confidence, chart or picture is not None, picture)
        charts.preview(loaded, wish, only=only, as_json=as_json, plan_file=plan)
        return
    priced = price_plan(loaded)
    if as_json:
        found = {"findings": list(priced.findings), "releases": [show.priced_record(p) for p in priced]}
        print_json({"plan": str(plan), **found})
        return
    show.show_preview(console(), priced)


@app.command()
def release(
    plan: PlanFile,
    only: Annotated[str | None, typer.Option(help="Run only the release of this name.")] = None,
    by: Annotated[
        str | None, typer.Option(help="Who asks, for the ledger.", envvar="SFUMATO_USER", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Charge the ledger, make the releases and write their folders. An identical release is never charged twice."""
    from sfumato.cli import show
    from sfumato.releases.batch import StoppedError, load
    from sfumato.releases.batch import release as run_plan

    loaded = load(plan)
    screen = console()
    stopped: StoppedError | None = None
    said: list[str] = []

    def tell(sentence: str) -> None:
        said.append(sentence)
        console(stderr=True).print(f"note: {sentence}", markup=False)

    with show.progress(screen, len(loaded.releases) if only is None else 1, quiet=as_json) as step:
        try:
            outcomes = run_plan(loaded, only=only, progress=step, notice=tell, by=by)
        except StoppedError as error:
            outcomes, stopped = error.outcomes, error
    if as_json:
        why = {} if stopped is None else {"stopped": {"release": stopped.name, "why": str(stopped)}}
        print_json({"findings": said, "releases": [outcome_record(o) for o in outcomes], **why})
    else:
        show.show_outcomes(screen, outcomes)
    if stopped is not None:
        typer.echo(f"sfumato: {stopped_sentence(stopped)}", err=True)
        sys.exit(2)


def stopped_sentence(stopped: Any) -> str:
    """What was released and spent before a plan stopped, and why it did."""
    made = [o for o in stopped.outcomes if not o.repeated]
    spent = ", ".join(f"{o.name} (ε {o.certificate['charged']['epsilon']})" for o in made) or "nothing new"
    where = "after the head counts" if stopped.name is None else f"at release {stopped.name!r}"
    return f"the plan stopped {where}. Released and spent before that: {spent}. {stopped}"


def outcome_record(outcome: Outcome) -> dict[str, Any]:
    """One release of a plan as JSON, with its figures."""
    result = outcome.result
    return {
        "name": outcome.name,
        "folder": str(outcome.folder),
        "repeated": outcome.repeated,
        "answer": answer_record(result),
        "result": result.to_dict(),
        "certificate": outcome.certificate,
    }


def answer_record(result: Result) -> Any:
    """The figures as they are printed: a value with its intervals, or the rows of the table."""
    from sfumato.cli.show import headline_of

    made = headline_of(result)
    return made.to_dict() if made is not None else result.to_frame().to_dict(orient="records")
