"""How the command line shows people: where they stand by tier, and what was spent on one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table

from sfumato.cli.app import escape
from sfumato.cli.show import asked
from sfumato.privacy.units import epsilon_text

if TYPE_CHECKING:
    from sfumato.ledger import Life


def standing_record(life: Life) -> dict[str, Any]:
    """Where people stand, as JSON: one entry per tier, amounts as smallest and largest."""
    standing, pending = life.standing(), life.pending()
    tiers = np.array([name or "" for name in standing.tiers], dtype=object)
    heads = np.asarray(standing.heads)
    caps = np.array([-1 if cap is None else cap for cap in standing.per_period], dtype=np.int64)
    for_life = np.maximum(np.asarray(standing.grants) - np.asarray(standing.spent), 0)
    in_period = np.where(caps < 0, -1, np.maximum(caps - np.asarray(standing.in_period), 0))
    rows = []
    for name in sorted(set(tiers.tolist())):
        mine = (tiers == name) & (heads > 0)
        if not mine.any():
            continue
        row: dict[str, Any] = {"tier": name or None, "people": int(heads[mine].sum())}
        amounts = {"granted": standing.grants, "spent": standing.spent, "left_for_life": for_life, "left_now": standing.left}
        row |= {what: _ends(np.asarray(values)[mine]) for what, values in amounts.items()}
        row["left_in_period"] = _ends(in_period[mine & (caps >= 0)])
        rows.append(row)
    return {
        "epoch": int(standing.epoch),
        "period": standing.period,
        "people": int(heads.sum()),
        "tiers": rows,
        "pending": pending.to_dict(),
    }


def _ends(nano: Any) -> list[str] | None:
    return None if not len(nano) else [epsilon_text(int(nano.min())), epsilon_text(int(nano.max()))]


def _range(ends: list[str] | None) -> str:
    return "no cap" if ends is None else ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def show_standing(console: Console, record: dict[str, Any]) -> None:
    """A row per tier, then what waits."""
    if not record["epoch"]:
        console.print("No epoch was closed yet: nobody takes part. `sfumato people PLAN epoch` closes one.")
    else:
        now = f", {record['period']}" if record["period"] else ""
        title = f"epoch {record['epoch']}{now}: {record['people']:,} people"
        table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
        table.add_column("tier")
        heads = ["people", "granted ε", "spent", "left for life", *(["left this period"] if record["period"] else [])]
        for head in heads:
            table.add_column(head, justify="right")
        for row in record["tiers"]:
            cells = [_range(row[what]) for what in ("granted", "spent", "left_for_life")]
            period = [_range(row["left_in_period"])] if record["period"] else []
            table.add_row(escape(row["tier"] or "an ε of their own"), f"{row['people']:,}", *cells, *period)
        console.print(table)
    waits = ", ".join(f"{n:,} {kind}" for kind, n in record["pending"].items() if n and kind != "total")
    console.print(f"Choices that wait: {waits or 'none'}.", markup=False)


def menu_record(life: Life, noisy: list[int] | None) -> dict[str, Any]:
    """What is public of a private roster, as JSON: the menu, and noisy head counts if there are any."""
    standing = life.standing()
    counts: list[int | None] = [None] * len(standing.tiers) if noisy is None else [*noisy]
    tiers = [
        {
            "tier": name,
            "granted": epsilon_text(grant),
            "per_period": None if cap is None else epsilon_text(cap),
            "people_with_noise": people,
        }
        for name, grant, cap, people in zip(
            standing.tiers, standing.grants.tolist(), standing.per_period, counts, strict=True
        )
    ]
    return {"epoch": int(standing.epoch), "period": standing.period, "private": True, "tiers": tiers}


def show_menu(console: Console, record: dict[str, Any]) -> None:
    """A row per tier of a private roster, with noisy head counts once there are any."""
    now = f", {record['period']}" if record["period"] else ""
    table = Table(title=f"epoch {record['epoch']}{now}: private", title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("tier")
    for head in ("granted ε", *(["ε per period"] if record["period"] else []), "people, with noise"):
        table.add_column(head, justify="right")
    for row in record["tiers"]:
        heads = "not counted yet" if row["people_with_noise"] is None else f"{row['people_with_noise']:,}"
        cap = [row["per_period"] or "no cap"] if record["period"] else []
        table.add_row(escape(row["tier"] or ""), row["granted"], *cap, heads)
    console.print(table)
    console.print("Who chose what, and how many wait, is private. A person's own receipt tells them.", markup=False)


def show_receipt(console: Console, made: dict[str, Any]) -> None:
    """What was spent on one person, line by line, and what is left."""
    held = (
        f"withdrew, {made['withdrawn_at']}"
        if made["withdrawn"]
        else f"grants ε {made['grant']}" + (f" ({made['tier']})" if made["tier"] else "")
    )
    console.print(f"{made['person']} in {made['dataset']}: {held}; spent {made['spent']}.", markup=False)
    if made["lines"]:
        table = Table(show_edge=False, pad_edge=False)
        for head, side in (
            *(
                ("no.", "right"),
                ("release", "left"),
                ("asked", "left"),
                ("for", "left"),
                ("when", "left"),
                ("epoch", "right"),
            ),
            *(("grant then", "right"), ("charged ε", "right")),
        ):
            table.add_column(head, justify=side, overflow="fold")  # type: ignore[arg-type]
        for line in made["lines"]:
            grant = line["grant"] + (f" ({line['tier']})" if line["tier"] else "")
            name = (line["name"] or "") + ("" if line["state"] == "committed" else f" ({line['state']})")
            cells = (
                line["release"],
                name,
                asked(line),
                line["recipient"] or "everybody",
                line["at"],
                line["epoch"],
                grant,
                line["charged"],
            )
            table.add_row(*(escape(str(cell)) for cell in cells))
        console.print(table)
    if made["older"] is not None:
        console.print(f"These are not all: --before {made['older']} shows those before them.", markup=False)
    console.print(f"Left for life: {made['left_for_life']}.", markup=False)
    if made["per_period"] is not None:
        said = (
            f"Left in {made['period']}: {made['left_in_period']} of {made['per_period']} (spent {made['spent_in_period']})."
        )
        console.print(said, markup=False)
    if made["waiting"]:
        console.print(f"Chosen, and not in force yet: {made['waiting']}.", markup=False)
    console.print("What was spent cannot be undone.", markup=False)
