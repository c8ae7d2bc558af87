"""`sfumato profile FILE ...`: preview, release, left, policy, stream, statement; and `sfumato bridge STATEMENT`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.app import Json, app, console, print_json
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.attributes import AttributeRelease, Profile

profile = typer.Typer(
    help="A person's own history, noised on their device: preview, release, left, policy, stream, statement.",
    no_args_is_help=True,
)
app.add_typer(profile, name="profile")

To = Annotated[str, typer.Option("--to", help="The recipient.")]
Epsilon = Annotated[
    str | None, typer.Option("--epsilon", help="Overall ε of the release; the recipient's share if left out.")
]
Out = Annotated[Path, typer.Option("--out", help="The file to write.")]
Key = Annotated[Path | None, typer.Option("--key", help="A file with the key that both sides have: seals the statement.")]


@profile.callback()
def _file(context: typer.Context, file: Annotated[Path, typer.Argument(help="The profile, a TOML or JSON file.")]) -> None:
    context.obj = file


def _profile(context: typer.Context) -> Profile:
    from sfumato.attributes.profile_file import read_profile

    return read_profile(context.obj)


@profile.command()
def preview(context: typer.Context, to: To, epsilon: Epsilon = None, as_json: Json = False) -> None:
    """Price and expected error of every allocation. No history is read, nothing is spent."""
    from sfumato.releases.certificate import charge_record

    found = _profile(context).preview(to=to, epsilon=epsilon)
    if as_json:
        rows = [{"how": o.plan.utility, "expected_rmse": o.expected_rmse, "charge": charge_record(o.charge)} for o in found]
        print_json({"recipient": to, "offers": rows})
        return
    for offer in found:
        console().print(f"{offer.note}; ε {charge_record(offer.charge)['epsilon']}", markup=False)


@profile.command()
def release(
    context: typer.Context,
    history: Annotated[Path, typer.Argument(help="The items: CSV, JSON, JSON lines or plain lines.")],
    to: To,
    epsilon: Epsilon = None,
    out: Annotated[Path | None, typer.Option("--out", help="The file for the recipient.")] = None,
    again: Annotated[bool, typer.Option("--again", help="When a budget is used up, the last release once more.")] = False,
    as_json: Json = False,
) -> None:
    """Charge the device's ledger, read the history, and release noisy totals of its attributes."""
    from sfumato.attributes.profile_file import check_history, read_history

    check_history(history)
    if out is not None:
        _free(out)
    mine = _profile(context)
    made = mine.release(
        lambda: list(read_history(history)), to=to, epsilon=epsilon, exhausted="repeat" if again else "refuse"
    )
    _tell(made, out, as_json)


@profile.command()
def left(
    context: typer.Context,
    to: Annotated[str | None, typer.Option("--to", help="One recipient; all of them if left out.")] = None,
    as_json: Json = False,
) -> None:
    """What each recipient may still learn, altogether and through each attribute."""
    from sfumato.privacy.units import epsilon_text

    mine = _profile(context)
    known = [] if mine.recipients is None else list(mine.recipients.reputations)
    names = [to] if to is not None else list(dict.fromkeys([*known, *mine.ledger.recipients]))
    found = {name: mine.ledger.left(name, mine.limits(name)) for name in names}
    if as_json:
        print_json({name: {part: epsilon_text(nano) for part, nano in one.items()} for name, one in found.items()})
        return
    if not found:
        console().print("nobody has learnt anything yet")
    for name, one in found.items():
        console().print(f"{name}: " + ", ".join(f"{part} {epsilon_text(nano)}" for part, nano in one.items()), markup=False)


@profile.command()
def policy(context: typer.Context, to: To, out: Out, epsilon: Epsilon = None) -> None:
    """Write the noise of a release to a recipient as a policy file, which a device without the catalogue can use."""
    _free(out)
    made = _profile(context).policy(to=to, epsilon=epsilon)
    made.save(out)
    console().print(f"{out}: {len(made.attributes)} attributes, ε {made.epsilon}", markup=False)


@profile.command()
def stream(
    context: typer.Context,
    state: Annotated[Path, typer.Argument(help="The file that the stream is kept in; made if it is not there.")],
    history: Annotated[Path | None, typer.Argument(help="New items, one step each.", show_default=False)] = None,
    to: Annotated[str | None, typer.Option("--to", help="The recipient, for a new stream.")] = None,
    epsilon: Epsilon = None,
    skip: Annotated[int, typer.Option("--skip", help="Steps without items, after the new ones.", min=0)] = 0,
    out: Annotated[Path | None, typer.Option("--out", help="The file for the recipient.")] = None,
    as_json: Json = False,
) -> None:
    """Open a stream, or go on with one: add items, and release the totals so far. It is charged once, when it opens."""
    from sfumato.attributes.profile_file import check_history, read_history

    if history is not None:
        check_history(history)
    if out is not None:
        _free(out)
    mine = _profile(context)
    if state.exists():
        if to is not None or epsilon is not None:
            raise InputError(f"{state} is a stream that was opened and paid for: leave out --to and --epsilon")
        opened = mine.resume_stream(state)
    else:
        if to is None:
            raise InputError(f"there is no stream {state} yet: say --to RECIPIENT to open one")
        _free(state)
        opened = mine.stream(to=to, epsilon=epsilon)
        opened.save(state)
    for item in () if history is None else read_history(history):
        opened.add([item])
    opened.skip(skip)
    _tell(opened.release(), out, as_json)


@profile.command()
def statement(context: typer.Context, out: Out, key: Key = None) -> None:
    """Write what every recipient has learnt from this device, for a custodian's ledger (`sfumato bridge`)."""
    made = _profile(context).ledger.statement()
    out.write_text(made.to_json(key=_key(key)), encoding="utf-8")
    console().print(f"{out}: statement {made.number}, {len(made.spent)} recipients", markup=False)


@app.command()
def bridge(
    statement: Annotated[Path, typer.Argument(help="What `sfumato profile FILE statement` wrote.")],
    plan: Annotated[Path, typer.Option(help="The plan whose ledger and dataset count it.")],
    person: Annotated[str, typer.Option(help="Whose device it is, as the table names them.")],
    items: Annotated[
        int, typer.Option(help="Items that are protected together: the rows per person, where rows are items.")
    ],
    key: Key = None,
    as_json: Json = False,
) -> None:
    """Count what somebody's own device has told recipients in the custodian's ledger; the same statement only once."""
    from sfumato.ledger import Ledger
    from sfumato.privacy.statement import Statement
    from sfumato.privacy.units import epsilon_text
    from sfumato.releases.batch import load

    loaded = load(plan)
    try:
        read = Statement.from_json(statement.read_text(encoding="utf-8"), key=_key(key))
    except (OSError, UnicodeDecodeError):
        raise InputError(f"cannot read the statement {statement}") from None
    done = Ledger.open(loaded.ledger, create=False).bridge(loaded.dataset, read, person=person, items=items)
    charged = {" ".join(cap).strip(): epsilon_text(nano) for cap, nano in done.charged.items()}
    passed = {" ".join(cap).strip(): epsilon_text(nano) for cap, nano in done.passed.items()}
    if as_json:
        print_json({"known": done.known, "charged": charged, "passed": passed})
        return
    words = ", ".join(f"{cap} ε {nano}" for cap, nano in charged.items())
    said = "counted before: nothing was charged" if done.known else f"charged: {words or 'nothing, somebody has spent more'}"
    console().print(said, markup=False)
    for cap, nano in passed.items():
        console().print(f"note: the cap of {cap} is passed by ε {nano}: it is used up", markup=False)


def _tell(made: AttributeRelease, out: Path | None, as_json: bool) -> None:
    if out is not None:
        out.write_text(json.dumps(made.to_dict(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    if as_json:
        print_json({**made.to_dict(), "file": None if out is None else str(out)})
        return
    ends = made.interval(0.95)
    for row, (low, high) in zip(made.rows(), ends, strict=True):
        line = f"{row['attribute']}: {row['value']:,.6g} ({low:,.6g} to {high:,.6g}), ε {row['given']}"
        console().print(line, markup=False)
    for warning in made.warnings:
        console().print(f"note: {warning}", markup=False)
    console().print(str(made.guarantee), markup=False)
    if out is not None:
        console().print(f"→ {out}", markup=False)


def _free(out: Path) -> None:
    if out.exists():
        raise InputError(f"{out} exists; choose another name. Nothing was spent")
    if not out.parent.is_dir():
        raise InputError(f"there is no folder {out.parent}; nothing was spent")


def _key(path: Path | None) -> Any:
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the key {path}: {error.strerror}") from None
