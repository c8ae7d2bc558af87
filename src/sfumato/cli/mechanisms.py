"""`sfumato mechanisms`: every mechanism by name, with its parameters; the page of the documentation is made by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.app import Json, app, console, print_json

if TYPE_CHECKING:
    from sfumato.registry import Mechanism


@app.command()
def mechanisms(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A kind of release (count, histogram, ...) or a mechanism; every kind if left out.",
            autocompletion=known_names,
            show_default=False,
        ),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the page of the documentation.")] = False,
    as_json: Json = False,
) -> None:
    """List the mechanisms a release may ask for by name, and the parameters of each."""
    from sfumato.releases.kinds import all_kinds

    if name is not None and name not in all_kinds():
        _one(name, markdown=markdown, as_json=as_json)
        return
    kinds = list(all_kinds()) if name is None else [name]
    if as_json:
        print_json({"kinds": {k: kind_record(k) for k in kinds}})
    elif markdown:
        typer.echo(page(kinds))
    else:
        _show(kinds)


def known_names() -> list[str]:
    """Kinds and mechanisms, for shell completion and for hints."""
    from sfumato.registry import mechanisms as registered
    from sfumato.releases.kinds import all_kinds

    return [*all_kinds(), *dict.fromkeys(m.name for m in registered())]


def _one(name: str, *, markdown: bool, as_json: bool) -> None:
    """One mechanism, for every kind of release that it answers: a sentence for each of its parameters."""
    from rich.markup import escape
    from rich.table import Table

    from sfumato.errors import InputError
    from sfumato.registry import mechanisms as registered
    from sfumato.registry import nearest

    found = [m for m in registered() if m.name == name]
    if not found:
        raise InputError(f"there is no kind and no mechanism {name!r}; {nearest(name, known_names())}")
    if markdown:
        raise InputError("--markdown prints the page of whole kinds: leave the mechanism out")
    if as_json:
        print_json({"mechanisms": [{"kinds": list(m.kinds), **_mechanism_record(m)} for m in found]})
        return
    for entry in found:
        needs = f" Needs {', '.join(entry.needs)}." if entry.needs else ""
        paper = f" From {entry.paper}." if entry.paper else ""
        console().print(
            f"[bold]{entry.name}[/bold] ({', '.join(entry.kinds)}): {escape(entry.summary)}.{needs}{escape(paper)}"
        )
        table = Table(show_edge=False, pad_edge=False)
        for head in ("parameter", "values", "meaning"):
            table.add_column(head, overflow="fold")
        for parameter in entry.parameters:
            table.add_row(*map(escape, (parameter.name, parameter.describe(), parameter.help)))
        console().print(table if entry.parameters else "It has no parameters.")


def kind_record(kind: str) -> dict[str, Any]:
    """A kind with its own keys and its mechanisms, as JSON."""
    from sfumato.registry import mechanisms as registered
    from sfumato.releases.kinds import all_kinds

    entry = all_kinds()[kind]
    return {
        "summary": entry.summary,
        "parameters": [_parameter_record(p) for p in entry.parameters],
        "mechanisms": [_mechanism_record(m) for m in (*registered(kind), *registered(f"{kind} by"))],
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
