"""`sfumato mechanisms`: every mechanism by name, with its parameters; the page of the documentation is made by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.app import Json, app, console, print_json

if TYPE_CHECKING:
    from sfumato.registry import Mechanism


@app.command()
def mechanisms(
    kind: Annotated[
        str | None, typer.Argument(help="A kind of release (count, histogram, ...); all if left out.", show_default=False)
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the page of the documentation.")] = False,
    as_json: Json = False,
) -> None:
    """List the mechanisms a release may ask for by name, and the parameters of each."""
    from sfumato.releases.kinds import all_kinds, kind_of

    kinds = list(all_kinds()) if kind is None else [kind_of(kind, "the command").name]
    if as_json:
        print_json({"kinds": {k: kind_record(k) for k in kinds}})
    elif markdown:
        typer.echo(page(kinds))
    else:
        _show(kinds)


def kind_record(kind: str) -> dict[str, Any]:
    """A kind with its own keys and its mechanisms, as JSON."""
    from sfumato.registry import mechanisms as registered
    from sfumato.releases.kinds import all_kinds

    entry = all_kinds()[kind]
    return {
        "summary": entry.summary,
        "parameters": [_parameter_record(p) for p in entry.parameters],
        "mechanisms": [_mechanism_record(m) for m in registered(kind)],
    }


def _parameter_record(parameter: Any) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "values": parameter.describe(),
        "help": parameter.help,
        "required": parameter.required,
    }


def _mechanism_record(mechanism: Mechanism) -> dict[str, Any]:
    return {
        "name": mechanism.name,
        "summary": mechanism.summary,
        "needs": list(mechanism.needs),
        "paper": mechanism.paper,
        "parameters": [_parameter_record(p) for p in mechanism.parameters],
    }


def page(kinds: list[str]) -> str:
    """docs/mechanisms.md, or some of its sections."""
    top = [
        "# Mechanisms",
        "",
        "Made by `sfumato mechanisms --markdown` from the registry; see [extending](extending.md).",
        "",
    ]
    return "\n".join([*top, *(line for kind in kinds for line in markdown_lines(kind))]).rstrip()


def markdown_lines(kind: str) -> list[str]:
    """The section of one kind in docs/mechanisms.md."""
    record = kind_record(kind)
    lines = [f"## {kind}", "", f"{record['summary'].capitalize()}.", ""]
    if record["parameters"]:
        lines += ["| key | values | meaning |", "|---|---|---|"]
        lines += [_row(f"`{p['name']}`", p["values"], p["help"]) for p in record["parameters"]] + [""]
    lines += ["| mechanism | what it does | needs | parameters | from |", "|---|---|---|---|---|"]
    for m in record["mechanisms"]:
        given = "; ".join(f"`{p['name']}`: {p['values']}, {p['help']}" for p in m["parameters"])
        lines.append(_row(f"`{m['name']}`", m["summary"], ", ".join(m["needs"]), given, m["paper"]))
    return [*lines, ""]


def _row(*cells: str) -> str:
    return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"


def _show(kinds: list[str]) -> None:
    from rich.table import Table

    for kind in kinds:
        record = kind_record(kind)
        table = Table(title=f"{kind}: {record['summary']}", title_justify="left", show_edge=False, pad_edge=False)
        for head in ("mechanism", "what it does", "parameters"):
            table.add_column(head, overflow="fold")
        for p in record["parameters"]:
            table.add_row("", f"{p['help']}", f"{p['name']}: {p['values']}", style="dim")
        for m in record["mechanisms"]:
            needs = f" (needs {', '.join(m['needs'])})" if m["needs"] else ""
            table.add_row(m["name"], m["summary"] + needs, "; ".join(f"{p['name']}: {p['values']}" for p in m["parameters"]))
        console().print(table)
        console().print()
