"""`sfumato people PLAN ...`: join, change, withdraw, import, epoch, show, count; and `sfumato receipt PERSON`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sfumato.cli.app import Json, app, console, print_json
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.ledger import Life

people = typer.Typer(
    help="People who change their minds: join, change, withdraw, import, epoch, show, count. For `living = true`.",
    no_args_is_help=True,
)
app.add_typer(people, name="people")

Person = Annotated[str, typer.Argument(help="The person's identifier, as the table has it.")]
Grant = Annotated[str, typer.Argument(help="A tier of the menu, or an ε of their own.")]

FINAL = (
    "From now on no release uses this person's record, and this cannot be taken back for what was spent: what was released "
    "before stays released, with what it told about them (their receipt lists it). They may join again later; what was "
    "spent on them stays spent."
)


@people.callback()
def _plan(context: typer.Context, plan: Annotated[Path, typer.Argument(help="The plan, a TOML file.")]) -> None:
    context.obj = plan


def _life(context: typer.Context, *, create: bool = False) -> Life:
    """The people of the plan; where they may be the first, it is said what is started afresh."""
    from sfumato.releases import load
    from sfumato.releases import people as people_of
    from sfumato.releases.keeping import fresh_budgets

    plan = load(context.obj)
    for sentence in fresh_budgets(plan.ledger, plan.dataset, [plan.home, plan.folder]) if create else ():
        console(stderr=True).print(f"note: {sentence}", markup=False)
    return people_of(plan, create=create)


def grant_of(text: str, tiers: Any) -> Any:
    """A tier of the menu, or a number; anything else is refused with a hint."""
    from decimal import Decimal, InvalidOperation

    from sfumato.tables.words import did_you_mean

    if text in tiers:
        return text
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal(0)
    if not number.is_finite() or number <= 0:
        raise InputError(f"{text!r} is neither a tier of the menu nor an ε above 0; {did_you_mean(text, tiers)}")
    return number


def _choose(context: typer.Context, person: str, grant: str | None, kind: str, as_json: bool) -> None:
    from sfumato.privacy.units import positive_nano
    from sfumato.releases import load

    life = _life(context, create=kind == "join")
    roster = load(context.obj).roster()
    assert roster is not None
    note: str | None = None
    if kind == "withdraw":
        life.withdraw(person)
    else:
        tiers = dict(roster.tiers_nano)
        chosen = grant_of(str(grant), tiers)
        (life.join if kind == "join" else life.change)(person, chosen)
        if not roster.private:  # whoever keeps a private roster learns nothing of a person in passing
            note = spent_already(life, person, tiers.get(chosen) or positive_nano(chosen), str(grant))
    if as_json:
        print_json({"person": person, "choice": kind, "grant": grant, "holds_from": HOLDS[kind], "note": note})
        return
    console().print(f"Written down: {person} {WORDS[kind].format(grant=grant)}. {HOLDS[kind]}", markup=False)
    if note is not None:
        console().print(f"note: {note}", markup=False)


def spent_already(life: Life, person: str, allowed: int, grant: str) -> str | None:
    """That nothing is left of a new grant, where as much or more was spent on the person before; amounts are nano-ε."""
    from sfumato.privacy.units import epsilon_text

    spent = life.receipt(person, limit=1).spent
    if spent < allowed:
        return None
    much = "more than" if spent > allowed else "all that"
    return (
        f"{epsilon_text(spent)} is spent already, {much} {grant} allows: once that holds, this person takes no part "
        "until they grant more"
    )


WORDS = {"join": "joins with {grant}", "change": "now grants {grant}", "withdraw": "withdraws"}
HOLDS = {
    "join": "It holds from the next epoch on (`sfumato people PLAN epoch` closes this one).",
    "change": "A lower grant holds from the next release on, a higher one from the next epoch.",
    "withdraw": "It holds from the next release on. What was released before stays released.",
}


@people.command()
def join(context: typer.Context, person: Person, grant: Grant, as_json: Json = False) -> None:
    """A person joins; from the next epoch on."""
    _choose(context, person, grant, "join", as_json)


@people.command()
def change(context: typer.Context, person: Person, grant: Grant, as_json: Json = False) -> None:
    """A person changes their grant: lower from the next release on, higher from the next epoch. Nothing spent is reset."""
    _choose(context, person, grant, "change", as_json)


@people.command()
def withdraw(
    context: typer.Context,
    person: Person,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """A person withdraws: no later release uses their record. What was released before cannot be taken back."""
    if not yes:
        typer.echo(FINAL, err=True)
        if not typer.confirm(f"Withdraw {person}?", err=True):
            raise typer.Exit(1)
    _choose(context, person, None, "withdraw", as_json)


@people.command("import")
def bring(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="CSV or Parquet: a person per row, with a column tier or epsilon.")],
    missing: Annotated[
        Literal["stay", "withdraw"], typer.Option(help="What becomes of people who are not in the file.")
    ] = "stay",
    as_json: Json = False,
) -> None:
    """Bring people from a file: new ones join, others change to what it says."""
    from sfumato.releases import load
    from sfumato.releases.plan_people import person_column
    from sfumato.releases.roster_file import read_roster
    from sfumato.tables.living import LivingRoster

    life = _life(context, create=True)
    plan = load(context.obj)
    roster = plan.roster()
    assert isinstance(roster, LivingRoster)
    with console(stderr=True).status(f"reading {file.name}") as status:
        found = read_roster(file, roster, person=person_column(plan, roster))
        status.update("writing down choices" if roster.private else f"writing down {len(found.grants):,} choices")
        pending = life.bring(found.persons, found.grants, missing=missing)
    if roster.private:  # what is shown may be kept in a log: of a private roster no head is told
        if as_json:
            print_json({"people": None, "notes": [], "pending": None})
        else:
            console().print("The file was read; what it says is written down and holds from the next epoch on.")
        return
    if as_json:
        print_json({"people": len(found.grants), "notes": list(found.notes), "pending": pending.to_dict()})
        return
    for note in found.notes:
        console(stderr=True).print(f"note: {note}", markup=False)
    console().print(f"{len(found.grants):,} people read; {_words(pending)}.", markup=False)


@people.command()
def epoch(context: typer.Context, as_json: Json = False) -> None:
    """Close an epoch: everything that people have chosen holds from now on."""
    life = _life(context)
    pending = life.pending()
    with console(stderr=True).status("closing the epoch"):
        closed = life.epoch()
    if life.standing().private:
        if as_json:
            print_json({"number": closed.number, "at": closed.at, "people": None, "applied": None})
        else:
            console().print(f"Epoch {closed.number} begins; what people had chosen before holds now.")
        return
    if as_json:
        print_json({**closed.to_dict(), "applied": pending.to_dict()})
        return
    applied = f"{_words(pending)} before it, which holds now" if pending.total else "nothing was pending: nobody changed"
    console().print(f"Epoch {closed.number} begins; {applied}.", markup=False)


@people.command()
def show(context: typer.Context, as_json: Json = False) -> None:
    """Show where people stand, by tier: how many, what they granted, spent and have left; and which choices wait."""
    from sfumato.cli.standing import menu_record, show_menu, show_standing, standing_record

    life = _life(context)
    private = life.standing().private
    record = menu_record(life, _noisy_counts(context)) if private else standing_record(life)
    if as_json:
        print_json(record)
        return
    (show_menu if private else show_standing)(console(), record)


@people.command()
def count(context: typer.Context, as_json: Json = False) -> None:
    """Count the people of a private roster with noise, once more: charged again; later releases use the new counts."""
    from sfumato.cli.standing import menu_record, show_menu
    from sfumato.releases import load
    from sfumato.releases.recount import count_heads

    life = _life(context)
    made = count_heads(load(context.obj))
    record = menu_record(life, _noisy_counts(context))
    if as_json:
        print_json({**record, "folder": str(made.folder), "charged": made.certificate["charged"]})
        return
    low, high = made.certificate["charged"]["people"]
    console().print(f"Counted with noise, for ε {low} to {high} by tier of whoever has it left: {made.folder}", markup=False)
    show_menu(console(), record)


def _noisy_counts(context: typer.Context) -> list[int] | None:
    """The newest noisy head counts of a private roster, if they were made."""
    from sfumato.privacy.source import SECURE
    from sfumato.releases import load
    from sfumato.releases.plan_facts import facts_of

    plan = load(context.obj)
    facts, _ = facts_of(plan, plan.roster(), SECURE)
    return None if facts.budgets is None else facts.budgets.counts.tolist()


def _words(pending: Any) -> str:
    return ", ".join(f"{n:,} {kind}" for kind, n in pending.to_dict().items() if n) or "nothing pending"


@app.command()
def receipt(
    person: Person,
    plan: Annotated[Path | None, typer.Option(help="Take ledger and dataset from this plan.")] = None,
    location: Annotated[
        str | None, typer.Option("--ledger", help="Ledger file or postgresql:// URL; found in this folder if left out.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Name of the dataset in the ledger.")] = None,
    page: Annotated[Path | None, typer.Option("--html", help="Write a page that the person can read.")] = None,
    limit: Annotated[int | None, typer.Option(help="How many releases to show, the newest ones; 1,000 if left out.")] = None,
    before: Annotated[
        int | None, typer.Option(help="Show releases before the one of this number.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what was spent on one person: by which release, for whom, under which grant, and what is left."""
    from sfumato.cli.ledgers import find_ledger
    from sfumato.cli.standing import show_receipt
    from sfumato.ledger import Ledger
    from sfumato.releases import people as people_of
    from sfumato.releases.receipts import receipt_page

    if plan is not None:
        life = people_of(plan, create=False)
    else:
        book = Ledger.open(location or find_ledger(dataset), create=False)
        known = book.datasets()
        if dataset is None and len(known) != 1:
            raise InputError(f"say which --dataset: the ledger holds {', '.join(known) or 'none'}")
        life = book.people(dataset or known[0])
    found = life.receipt(person, limit=limit, before=before)
    if page is not None:
        try:
            page.write_text(receipt_page(found), encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot write {page}: {error.strerror}") from None
    if as_json:
        print_json(found.to_dict())
        return
    show_receipt(console(), found.to_dict())
    if page is not None:
        console().print(f"Page for the person: {page}", markup=False)
