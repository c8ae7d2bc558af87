"""`sfumato preview --error` and `--chart`: the price of a wanted error, and error against price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from sfumato.cli.app import console, print_json
from sfumato.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from sfumato.releases.curves import Curves
    from sfumato.releases.plan import Plan
    from sfumato.releases.wanted import Needed


@dataclass(frozen=True)
class Wish:
    """What was asked of a preview beside its table.

    Attributes
    ----------
    error, relative, size, confidence : float or None
        The wanted error, as for `Table.epsilon_for`.
    chart : bool
        Whether error is drawn against price.
    picture : Path or None
        Where to, instead of the terminal.
    """

    error: float | None = None
    relative: float | None = None
    size: float | None = None
    confidence: float | None = None
    chart: bool = False
    picture: Path | None = None


def percentage(text: str | None) -> float | None:
    """A relative error as people write it.

    >>> percentage("5%"), percentage("0.05"), percentage(None)
    (0.05, 0.05, None)
    """
    if text is None:
        return None
    try:
        return float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise InputError(f"--relative is a share such as 5% or 0.05, got {text!r}") from None


def preview(plan: Plan, wish: Wish, *, only: str | None, as_json: bool, plan_file: Path) -> None:
    """Print what was wished for; nothing is read or spent."""
    from sfumato.releases.asking_price import PlanPrices

    prices = PlanPrices(plan, only=only)
    wants = wish.error is not None or wish.relative is not None
    asked: dict[str, Any] = {
        "error": wish.error,
        "relative": wish.relative,
        "size": wish.size,
        "confidence": wish.confidence,
    }
    found = prices.needed(**asked) if wants else [None] * len(prices.requests)
    drawn = prices.curves() if wish.chart else []
    if wish.picture is not None:
        save(drawn, wish.picture)
    if as_json:
        releases = [
            {
                "name": request.name,
                **(
                    {"needed": {"why_not": need} if need is None or isinstance(need, str) else need.to_dict()}
                    if wants
                    else {}
                ),
                **({"curves": drawn[i].to_dict()} if drawn else {}),
            }
            for i, (request, need) in enumerate(zip(prices.requests, found, strict=True))
        ]
        print_json({"plan": str(plan_file), "releases": releases})
        return _ended(found)
    screen = console()
    for i, (request, need) in enumerate(zip(prices.requests, found, strict=True)):
        screen.print(f"{request.name}: {request.kind}", style="bold", markup=False)
        if need is not None:
            screen.print(f"  {need}", markup=False)
        if drawn and wish.picture is None:
            show(screen, drawn[i])
    if wish.picture is not None:
        screen.print(f"drawn in {wish.picture}", markup=False)
    return _ended(found)


def _ended(found: Sequence[Needed | str | None]) -> None:
    """Exit code 2 where no release can have the wanted error: nothing that was asked for was told."""
    if found and all(isinstance(need, str) for need in found):
        raise typer.Exit(2)


def show(screen: Console, curves: Curves) -> None:
    """The chart in the terminal, one colour and letter for each mechanism."""
    from sfumato.releases.curves import STYLES

    width = max(24, min(72, screen.width - 14))
    screen.print("  expected error (both axes logarithmic)", style="dim")
    for row in curves.lines(width):
        line = Text("  ")
        for text, number in row:
            line.append(text, style="dim" if number is None else STYLES[number % len(STYLES)])
        screen.print(line)
    screen.print()


def save(drawn: list[Curves], path: Path) -> None:
    """One picture with a panel for each release."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if path.suffix.lower() != ".png":
        raise InputError(f"the chart is written as PNG: name a file that ends in .png, not {path.name!r}")
    figure = Figure(figsize=(7, 3.8 * len(drawn)), layout="constrained")
    FigureCanvasAgg(figure)
    for i, curves in enumerate(drawn):
        curves.plot(figure.add_subplot(len(drawn), 1, i + 1))
    try:
        figure.savefig(path, dpi=140, facecolor="white")
    except OSError as error:
        raise InputError(f"the chart cannot be written to {str(path)!r}: {error.strerror}") from None
