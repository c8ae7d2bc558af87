"""The record of a dataset as a page of Markdown, for whoever files it."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from typing import Any

_SIGNS = re.compile(r"([\\`*_{}\[\]<>()#+!|~-])")


def page(record: Mapping[str, Any]) -> str:
    """The record as Markdown. Texts of people are escaped: none of them can make a heading, a link or a row."""
    return "\n".join(_lines(record)) + "\n"


def plain(text: Any) -> str:
    """A text that Markdown shows as it is, on one line.

    >>> plain("a | b\\n# c")
    'a \\\\| b \\\\# c'
    """
    return _SIGNS.sub(r"\\\1", " ".join(str(text).split()))


def _lines(record: Mapping[str, Any]) -> Iterator[str]:
    dataset = record["dataset"]
    yield f"# Record of {plain(dataset['name'])}"
    yield ""
    yield f"Made {_moment(record['made_at'])}. All amounts are ε."
    yield ""
    yield f"- Source: {plain(dataset['source'])}"
    yield f"- Registered {_moment(dataset['registered_at'])} by {plain(dataset['registered_by'])}"
    yield f"- Schema: SHA-256 {dataset['schema_sha256']}"
    unit = dataset["unit"]
    one = "one row is one person" if unit["person"] is None else f"{unit['rows_per_person']} rows of each {unit['person']}"
    yield f"- Whom it protects: {plain(one)}"
    yield f"- Purposes: {plain(', '.join(record['purposes']) or 'none granted')}"
    checkpoint = record["checkpoint"]
    if checkpoint is not None:
        yield f"- Log: {checkpoint['size']} entries, root {checkpoint['root']}"
    yield from _columns(dataset["columns"])
    yield from _people(record)
    yield from _caps(record["spent"])
    yield from _plans(record["plans"])
    yield from _allowances(record["allowances"])
    yield from _entries(record["entries"])


def _columns(columns: Mapping[str, str]) -> Iterator[str]:
    yield from ("", "## Columns", "")
    for sentence in columns.values():
        yield f"- {plain(sentence)}"


def _people(record: Mapping[str, Any]) -> Iterator[str]:
    people = record["people"]
    yield from ("", "## People", "")
    if people is None:
        yield "One budget holds for all."
        return
    kind = "private" if people.get("roster") == "private" else "public"
    yield f"Who granted which budget is {kind}; people {'may change it' if people.get('living') else 'granted it once'}."
    yield ""
    counts = people.get("counts") or {}
    for tier, epsilon in (people.get("tiers") or {}).items():
        heads = f", {counts[tier]} people" if tier in counts else ""
        yield f"- {plain(tier)}: {plain(epsilon)}{heads}"


def _caps(spent: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", "## Budgets", "", "| of | cap | spent | left |", "|---|---|---|---|")
    rows = [("all releases", spent["total"]), ("all recipients together", spent["together"])]
    rows += [(f"attribute {name}", limit) for name, limit in spent["attributes"].items()]
    rows += [(f"recipient {name}", limit) for name, limit in spent["recipients"].items()]
    for name, limit in rows:
        if limit is not None:
            yield _row(name, limit["cap"] or "none", limit["spent"], limit["left"] or "")
    for group in spent["people"] or []:
        name = f"people {group['name'] or ''}".strip()
        yield _row(name, *(" to ".join(dict.fromkeys(group[key])) for key in ("budget", "spent", "left")))


def _plans(plans: list[dict[str, Any]]) -> Iterator[str]:
    yield from ("", "## Plans", "")
    if not plans:
        yield "None was submitted."
    for plan in plans:
        yield f"### {plain(plan['name'])}"
        yield ""
        yield f"{plain(plan['author'])}, {_moment(plan['submitted_at'])}; {plan['state']}; price {plan['price']}"
        yield f"(plan {plain(plan['id'])}, SHA-256 {plan['digest']})."
        yield ""
        yield plain(plan["guarantee"] or "")
        yield ""
        for release in plan["releases"]:
            where = f" where {release['where']}" if release["where"] else ""
            to = release["recipient"] or "everybody"
            yield f"- {plain(release['name'])}: {plain(release['kind'] + where)}, to {plain(to)}, at most "
            yield f"  {release['price']['epsilon']}. {plain(release['guarantee'])}"
        decision = plan["decision"]
        yield ""
        if decision is None:
            yield "Nobody has decided on it."
        else:
            yield f"{decision['decision'].capitalize()} by {plain(decision['officer'])}, {_moment(decision['decided_at'])}:"
            yield plain(decision["reason"])
        yield ""


def _allowances(allowances: list[dict[str, Any]]) -> Iterator[str]:
    yield from ("## Allowances", "", "| analyst | purpose | cap | spent | a day |", "|---|---|---|---|---|")
    for given in allowances:
        yield _row(given["analyst"], given["purpose"], given["cap"], given["spent"], given["per_day"] or "")


def _entries(entries: list[dict[str, Any]]) -> Iterator[str]:
    yield from ("", "## Releases", "", "| entry | name | kind | to | ε | state |", "|---|---|---|---|---|---|")
    for entry in entries:
        to = entry["recipient"] or "everybody"
        yield _row(entry["id"], entry["name"] or "", entry["kind"] or "", to, entry["total"], entry["state"])


def _row(*cells: Any) -> str:
    return "| " + " | ".join(plain(cell) for cell in cells) + " |"


def _moment(seconds: int) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
