"""How the command line shows things: tables, progress, plain sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from sfumato.cli.app import escape
from sfumato.errors import printable
from sfumato.offers import GAPS
from sfumato.privacy.units import epsilon_text

if TYPE_CHECKING:
    from sfumato.ledger import Balance
    from sfumato.people.headline import Headline
    from sfumato.releases.batch import Outcome, PlanPreview
    from sfumato.releases.pipeline import Priced
    from sfumato.results import Result

_GAPS_IN_WORDS = "errors at a gap (points of the range) between the mean of the stricter people and of the rest"
_MOST_ROWS = 12  # of a released table that are shown on the screen


def priced_record(priced: Priced) -> dict[str, Any]:
    """A preview as JSON."""
    from sfumato.releases.assumption import assumption
    from sfumato.releases.attribute_charges import attribute_charges
    from sfumato.releases.certificate import offer_record

    request = priced.request
    return {
        "name": request.name,
        "kind": request.kind,
        "where": request.where,
        "share": None if request.share is None else str(request.share),
        "independent": request.independent,
        "assumption": assumption(priced, "the plan"),
        "chosen": priced.chosen.mechanism,
        "notes": list(priced.notes),
        "refusal": None if priced.foreseen is None else priced.foreseen.refusal,
        "already_paid": priced.foreseen is not None and priced.foreseen.paid,
        "attributes": {name: epsilon_text(nano) for name, nano in attribute_charges(priced).items()},
        "offers": [offer_record(o) for o in priced.offers],
    }


def show_preview(console: Console, priced: PlanPreview) -> None:
    """One table per release, the chosen mechanism marked, then what the ledger would say."""
    from sfumato.releases.attribute_charges import in_words

    for sentence in priced.findings:
        console.print(f"[yellow]note:[/yellow] {escape(sentence)}")
    for item in priced:
        request = item.request
        title = f"{request.name}: {request.kind}" + (f" where {request.where}" if request.where else "")
        if request.share is not None:
            title += f", {float(request.share):.3g} of everyone's own budget"
        table = Table(title=escape(title), title_justify="left", show_edge=False, pad_edge=False)
        table.add_column("")
        table.add_column("mechanism")
        gaps = [f"{100 * gap:.0f} point{'s' if gap > 0.01 else ''}" for gap in GAPS]
        differ = any(o.errors is not None and o.errors.worst > o.errors.independent for o in item.offers)
        for head in ("if independent", *gaps, "worst case") if differ else ("expected error",):
            table.add_column(head, justify="right")
        table.add_column("price ε", justify="right")
        if not differ:
            table.add_column("how", overflow="fold")
        for offer in item.offers:
            people = offer.charge.people
            cost = epsilon_text(offer.charge.total)
            if people is not None and int(people.min()) != offer.charge.total:
                cost = f"{epsilon_text(int(people.min()))} to {cost}"
            errors = offer.errors
            gaps_too = differ and errors is not None
            shown = [errors.independent, *errors.at, errors.worst] if gaps_too and errors else [offer.expected_rmse]
            figures = ["" if error is None else f"{error:,.4g}" for error in shown]
            mark = "→" if offer is item.chosen else ""
            table.add_row(mark, offer.mechanism, *figures, cost, *([] if differ else [escape(offer.note)]))
        console.print(table)
        if differ:
            console.print(f"→ {escape(item.chosen.note)}", style="dim")
            console.print(_GAPS_IN_WORDS, style="dim")
        if attributes := in_words(item):
            console.print(f"charged to attributes: {escape(attributes)}", style="dim")
        for note in item.notes:
            console.print(f"[yellow]note:[/yellow] {escape(note)}")
        if item.foreseen is not None and item.foreseen.paid:
            console.print("already paid for: it costs nothing")
        if item.foreseen is not None and item.foreseen.refusal is not None:
            console.print(f"[red]would be refused:[/red] {escape(item.foreseen.refusal)}")
        console.print()


@contextmanager
def progress(console: Console, total: int, *, quiet: bool = False) -> Iterator[Callable[[str, str], None]]:
    """A progress bar over the releases of a plan; yields the function that moves it."""
    if quiet:
        yield lambda _name, _step: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=total)
        seen: list[str] = []

        def step(name: str, what: str) -> None:
            if name not in seen:
                seen.append(name)
            bar.update(task, description=escape(f"{name}: {what}"), completed=len(seen) - (what != "committing"))

        yield step


def show_outcomes(console: Console, outcomes: list[Outcome]) -> None:
    """Where each release is, and its promise."""
    from sfumato.releases.report import expected_errors

    for outcome in outcomes:
        made = outcome.certificate
        paid = " (already paid for: nothing was charged)" if outcome.repeated else ""
        console.print(f"[bold]{escape(outcome.name)}[/bold] → {escape(str(outcome.folder))}{paid}")
        for line in answer_lines(outcome.result):
            console.print(f"  {line}")
        errors = ", ".join(f"{what} {_number(error)}" for what, error in expected_errors(made).items())
        console.print(f"  {made['mechanism']}, {errors}", style="dim")
        console.print(f"  {escape(made['guarantee']['sentence'])}")
        if made.get("assumption"):
            console.print(f"  [yellow]{escape(made['assumption'])}[/yellow]")
        for warning in made["warnings"]:
            console.print(f"  [yellow]note:[/yellow] {escape(warning)}")


def answer_lines(result: Result) -> list[str]:
    """The released figures: one number with its interval, or the first rows of the table."""
    from sfumato.people.headline import headline_lines

    made = headline_of(result)
    if made is not None:
        lines = headline_lines(made, result.words)
        alarm = lines[:1] if made.alarm else []
        return [*(f"[bold red]{escape(line)}[/bold red]" for line in alarm), *(escape(line) for line in lines[len(alarm) :])]
    frame = result.to_frame()
    columns = [c for c in frame.columns if c not in ("noise", "epsilon", "share")]
    shown = frame[columns].head(_MOST_ROWS).to_string(index=False, float_format=lambda x: f"{x:,.5g}")
    more = [] if len(frame) <= _MOST_ROWS else [f"... {len(frame) - _MOST_ROWS:,} more rows in data.csv"]
    said: str | None = getattr(result, "alarm", None)
    first = [f"[bold red]{escape(said)}[/bold red]"] if said else []
    return [*first, *(escape(line) for line in shown.split("\n")), *more]


def headline_of(result: Result) -> Headline | None:
    """What is said first of an answer that is one figure; None where it is a table."""
    say = getattr(result, "headline", None)
    return say() if callable(say) and isinstance(getattr(result, "value", None), int | float) else None


def show_balance(console: Console, balance: Balance, *, history: bool = True) -> None:
    """Caps and what is left of them, then, as their `history`, the releases that the balance holds."""
    data = balance.to_dict()
    table = Table(title=f"{data['dataset']}: what is left", title_justify="left", show_edge=False, pad_edge=False)
    for head, side in (("who", "left"), ("people", "right"), ("granted ε", "right"), ("spent", "right"), ("left", "right")):
        table.add_column(head, justify=side)  # type: ignore[arg-type]
    for row in balance_rows(data):
        table.add_row(*row)
    console.print(table)
    if not history:
        return
    told = "releases" if balance.releases.older is None else f"the newest {len(balance.releases):,} releases"
    if balance.releases.newer is not None:
        told = f"{len(balance.releases):,} releases up to number {balance.releases.newer}"
    lines = Table(title=told, title_justify="left", show_edge=False, pad_edge=False)
    for head in ("#", "release", "asked", "for", "by", "ε", "state", "when"):
        lines.add_column(head, overflow="fold")
    for entry in data["releases"]:
        lines.add_row(*map(escape, _release_cells(entry)))
    console.print(lines)


def _release_cells(entry: dict[str, Any]) -> tuple[str, ...]:
    who, by = entry["recipient"] or "everybody", entry["by"] or ""
    when = str(entry["reserved_at"]).replace("T", " ")[:16]
    return str(entry["id"]), entry["name"] or "", asked(entry), who, by, entry["total"], entry["state"], when


def release_line(entry: dict[str, Any]) -> str:
    """A release on one line: for lists that are too long for a table."""
    number, name, question, who, by, total, state, when = map(printable, _release_cells(entry))
    named = f"  {name}" if name else ""
    return (
        f"{number:>7}  {when}  {state:<9}  ε {total:<11}  for {who}{f' by {by}' if by else ''}{named}  {question}".rstrip()
    )


def balance_rows(data: dict[str, Any]) -> list[list[str]]:
    """The rows of a balance: total, recipients, attributes, people, allowances."""
    rows: list[list[str]] = []

    def limit(name: str, part: dict[str, Any] | None) -> None:
        if part and part.get("cap") is not None:
            rows.append([name, "", part["cap"], part["spent"], part["left"]])

    limit("all releases", data.get("total"))
    limit("all recipients together", data.get("together"))
    for kind in ("recipients", "attributes"):
        parts = {name: part for name, part in (data.get(kind) or {}).items() if part.get("cap") is not None}
        shown = sorted(parts, key=lambda name: Fraction(parts[name]["left"]) / Fraction(parts[name]["cap"]))[:_MOST_ROWS]
        for name in parts if len(parts) <= _MOST_ROWS else shown:
            limit(name, parts[name])
        if len(parts) > _MOST_ROWS:
            rows.append([f"... {len(parts) - _MOST_ROWS:,} more {kind} with as much or more left (--json)", "", "", "", ""])
    for part in data.get("people") or []:
        name = part["name"] or "people"
        heads = "private" if part["people"] is None else f"{part['people']:,}"
        rows.append([name, heads, _span(part["budget"]), _span(part["spent"]), _span(part["left"])])
    allowances = sorted(data.get("allowances") or [], key=lambda part: Fraction(part["left_today"]))
    for part in allowances[:_MOST_ROWS]:
        rate = "" if part["per_day"] is None else f" ({part['left_today']} today)"
        name = f"{part['analyst']} for {part['purpose']}"
        rows.append([escape(name), "", part["cap"], part["spent"], part["left"] + rate])
    if len(allowances) > _MOST_ROWS:
        rows.append([f"... {len(allowances) - _MOST_ROWS:,} more allowances (--json)", "", "", "", ""])
    return rows


def show_bench(console: Console, name: str, found: dict[str, Any]) -> None:
    """Figures, then the claims."""
    import json

    # Not as markup: rich would take the extra out of "sfumato[bench]".
    console.print(json.dumps(found["figures"], indent=1, default=str, ensure_ascii=False), style="dim", markup=False)
    if found.get("tables"):
        console.print(found["tables"], markup=False, soft_wrap=True)
    table = Table(title=f"claims of bench {name}", title_justify="left", show_edge=False, pad_edge=False)
    for head, side in (("claim", "left"), ("measured", "right"), ("limit", "right"), ("holds", "left")):
        table.add_column(head, justify=side)  # type: ignore[arg-type]
    for claim in found["claims"]:
        holds = "[green]yes[/green]" if claim["holds"] else "[red]NO[/red]"
        table.add_row(claim["name"], escape(_number(claim["figure"])), _number(claim["limit"]), holds)
    console.print(table)


def show_audit(console: Console, results: Any) -> None:
    """Claimed ε and the lower bound found."""
    table = Table(show_edge=False, pad_edge=False)
    for head in ("mechanism", "claimed ε", "at least", "smallest deficit caught", "verdict"):
        table.add_column(head, justify="left" if head in ("mechanism", "verdict") else "right")
    for result in results:
        verdict = "[red]caught[/red]" if result.caught else "[green]not refuted[/green]"
        if result.control:
            verdict += ", as a control must be" if result.caught else ": the audit is too weak, raise --trials"
        deficit = "" if result.deficit is None else f"{result.deficit:.1%}"
        table.add_row(result.name, str(result.claimed), f"{result.lower:.4g}", deficit, verdict)
    console.print(table)


def asked(entry: dict[str, Any]) -> str:
    """What was asked: mean of age, where ward = 'A'."""
    of = " x ".join(entry["columns"])
    text = (entry["kind"] or "") + (f" of {of}" if of else "")
    return text + (f", where {entry['where']}" if entry["where"] else "")


def _span(ends: list[str]) -> str:
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _number(value: Any) -> str:
    if value is None:
        return "not known beforehand"
    return f"{value:,.4g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
