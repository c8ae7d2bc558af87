"""`sfumato bench` and `sfumato audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.app import Json, app, console, print_json


def bench_names() -> list[str]:
    """For shell completion."""
    from sfumato.bench import NAMES

    return ["list", *NAMES]


def audit_names() -> list[str]:
    """For shell completion."""
    from sfumato.audit import names

    return ["list", "all", *names()]


@app.command()
def bench(
    name: Annotated[
        str, typer.Argument(help="Which experiments; `sfumato bench list` names them.", autocompletion=bench_names)
    ],
    quick: Annotated[bool, typer.Option("--quick", help="A small honest version, in under a minute.")] = False,
    data: Annotated[Path | None, typer.Option(help="Folder with the public datasets of the papers.")] = None,
    plots: Annotated[Path | None, typer.Option(help="Write pictures to this folder.")] = None,
    peers: Annotated[bool, typer.Option("--peers", help="Run other libraries too, where they are installed.")] = False,
    part: Annotated[
        str | None, typer.Option(help="One part of a long bench: a data set, `time`, ... (see its help).")
    ] = None,
    draws: Annotated[
        int | None, typer.Option(help="Splits or draws behind every figure; fewer take less time.", min=1)
    ] = None,
    rows: Annotated[str | None, typer.Option(help="Sizes of the tables of `scale`: 1e6,1e7,1e8.")] = None,
    engine: Annotated[str | None, typer.Option(help="Engines of `scale`: duckdb,postgres,spark.")] = None,
    as_json: Json = False,
) -> None:
    """Run the experiments behind the figures in the documentation; each ends with its claims."""
    from sfumato.bench import NAMES, run_bench
    from sfumato.cli import show

    if name == "list":
        print_json({"benches": list(NAMES)}) if as_json else typer.echo("\n".join(NAMES))
        return
    screen = console(stderr=True)
    found = run_bench(
        name,
        quick=quick,
        data=data,
        plots=plots,
        peers=peers,
        part=part,
        draws=draws,
        rows=rows,
        engine=engine,
        progress=lambda s: screen.print(f"[dim]{s}[/dim]"),
    )
    if as_json:
        print_json(found)
        return
    show.show_bench(console(), name, found)


@app.command()
def audit(
    name: Annotated[
        str, typer.Argument(help="A mechanism; `sfumato audit list` names them.", autocompletion=audit_names)
    ] = "all",
    trials: Annotated[int, typer.Option(help="Outputs to draw from each neighbour.", min=1000)] = 200_000,
    confidence: Annotated[float, typer.Option(help="Of the lower bound on the loss.")] = 0.999,
    deficit: Annotated[
        float,
        typer.Option(help="Draw noise that is too small by this share; every case must then be caught.", min=0, max=0.9),
    ] = 0.0,
    as_json: Json = False,
) -> None:
    """Attack mechanisms: a lower confidence bound on the loss, next to the ε they claim. Exit 1 if one is caught.

    The smallest deficit caught is how much too little noise a case would have shown. Without a name every mechanism is
    attacked, which takes a few minutes.
    """
    from sfumato.audit import Weaker, run
    from sfumato.audit import names as case_names
    from sfumato.cli import show
    from sfumato.privacy import SECURE

    if name == "list":
        print_json({"cases": list(case_names())}) if as_json else typer.echo("\n".join(case_names()))
        return
    screen = console(stderr=True)

    def heard(line: str) -> None:
        if name == "all":
            screen.print(f"[dim]{line}[/dim]")

    source = Weaker(deficit) if deficit else SECURE
    wanted = [] if name == "all" else [name]
    results = run(wanted, trials=trials, confidence=confidence, source=source, power=not deficit, progress=heard)
    if as_json:
        print_json({"results": [r.to_dict() for r in results]})
    else:
        show.show_audit(console(), results)
    if not all(r.caught if deficit else r.passed for r in results):
        raise typer.Exit(1)
