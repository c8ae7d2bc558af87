"""A receipt as one page that the person themselves can read: plain words, no scripts, wide enough for a phone."""

from __future__ import annotations

import html
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.ledger import Receipt

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2433; --soft: #5b6478; --line: #d9dee8; --back: #fff; --card: #f5f7fb; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9f0; --soft: #a3abbd; --line: #3a4254; --back: #151922; --card: #1e2430; } }
body { font: 17px/1.6 system-ui, sans-serif; color: var(--ink); background: var(--back);
  max-width: 40rem; margin: 1.5rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.soft { color: var(--soft); } .big { font-size: 1.6rem; font-weight: 600; }
.card { background: var(--card); border-left: 4px solid #0072b2; padding: .7rem 1rem; margin: .8rem 0; }
.stop { border-left-color: #d55e00; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .3rem 0; }
dt { color: var(--soft); } dd { margin: 0; text-align: right; font-variant-numeric: tabular-nums; }
.bar { height: .7rem; background: var(--line); border-radius: .35rem; overflow: hidden; }
.bar i { display: block; height: 100%; background: #0072b2; }
"""
WHAT_EPSILON_IS = (
    "The amounts are in ε (epsilon), which measures how much a published figure can tell about one person. At 0 it tells "
    "nothing; at 0.1 no publication became more than about a tenth likelier or unlikelier because your record was used, and "
    "the odds of a guess about you change by about a fifth at most; and every use adds up."
)
CANNOT_BE_UNDONE = (
    "What was published stays published. You can lower your grant or withdraw at any time; from the next release on this "
    "holds, but it takes nothing back of what is listed here, and nothing that was spent is given back."
)
NOT_ALL = "There were earlier uses, which are not on this page; what they cost is in the sum above. Ask for them."
TITLE = "How your record was used"
ROUNDED = "Amounts are rounded to three digits; whoever gave you this page has the exact figures. Times are in UTC."
_QUESTIONS = {
    "count": "How many records there are",
    "sum": "The sum of {columns}",
    "mean": "The average of {columns}",
    "variance": "How far {columns} is spread",
    "proportion": "The share of records for which a condition holds",
    "histogram": "How many records there are by {columns}",
    "synthesize": "A made-up table that resembles the real one in {columns}",
    "model": "A rule that guesses {columns}",
    "head counts": "How many people chose each tier",
}


def receipt_page(receipt: Receipt) -> str:
    """The page for one person.

    Parameters
    ----------
    receipt : Receipt
        What `Life.receipt` gave.

    Returns
    -------
    str
        HTML, complete in itself.
    """
    made = receipt.to_dict()
    parts = [
        f"<h1>{TITLE}</h1>",
        f"<p class=soft>{_text(made['dataset'])} · for {_text(made['person'])}</p>",
        _now(made),
        f"<p>{_text(WHAT_EPSILON_IS)}</p>",
        f"<p class=soft>{_text(ROUNDED)}</p>",
        "<h2>What your record was used for</h2>",
        *(_line(line) for line in made["lines"]),
        "" if made["lines"] else "<p>Nothing yet.</p>",
        f"<p class=soft>{_text(NOT_ALL)}</p>" if made["older"] is not None else "",
        "<h2>What cannot be undone</h2>",
        f"<p class='card stop'>{_text(CANNOT_BE_UNDONE)}</p>",
    ]
    body = "\n".join(p for p in parts if p)
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{TITLE}: {_text(made['dataset'])}</title><style>{_STYLE}</style></head>"
        f"<body>\n{body}\n</body></html>\n"
    )


def _now(made: Mapping[str, Any]) -> str:
    """What holds now, first in a line and then in figures."""
    if made["withdrawn"]:
        line = f"You have withdrawn: since {_when(made['withdrawn_at'])} no release uses your record."
    elif not float(made["grant"]):
        line = "You are not taking part yet."
    else:
        tier = f" ({_text(made['tier'])})" if made["tier"] else ""
        line = f"You grant {_amount(made['grant'])}{tier} in all."
    rows = {"used so far": _amount(made["spent"]), "left for life": _amount(made["left_for_life"])}
    if made["per_period"] is not None:
        rows |= {
            f"you grant in one period (now: {made['period']})": _amount(made["per_period"]),
            "used in this period": _amount(made["spent_in_period"]),
            "left in this period": _amount(made["left_in_period"]),
        }
    waits = f"<p>You have chosen <b>{_text(made['waiting'])}</b>; {_from(made)}.</p>" if made["waiting"] else ""
    return f"<div class=card><p class=big>{line}</p>{_bar(made)}{_pairs(rows)}{waits}</div>"


def _from(made: Mapping[str, Any]) -> str:
    soon = "it holds from the next release on"
    return (
        soon if made["waiting"] == "withdraw" else "it holds from the next epoch on, and at the next release if it is less"
    )


def _bar(made: Mapping[str, Any]) -> str:
    """What was used of what they grant now, in words and as a bar; whoever grants nothing has no bar to be misread."""
    grant, spent = Decimal(made["grant"]), Decimal(made["spent"])
    if not grant:
        return ""
    said = f"{_amount(made['spent'])} of {_amount(made['grant'])} used"
    if spent > grant:
        said = f"{_amount(made['spent'])} used, more than the {_amount(made['grant'])} you grant now: nothing more is used"
    part = min(100.0, 100 * float(spent / grant))
    return f"<p>{said}</p><div class=bar role=img aria-label='{said}'><i style='width:{part:.1f}%'></i></div>"


def _line(line: Mapping[str, Any]) -> str:
    failed = {
        "failed": "It failed; what it cost stays used.",
        "reserved": "It was not finished, or its end is not told yet; what it cost stays used.",
    }
    rows = {
        "used": _amount(line["charged"]),
        "for": line["recipient"] or "everybody",
        **{word: line[key] for word, key in (("asked by", "by"), ("purpose", "purpose")) if line[key]},
        "when": _when(line["at"]),
        "you granted then": _amount(line["grant"]) + (f" ({line['tier']})" if line["tier"] else ""),
        "number in the books": line["release"],
    }
    note = f"<p class=soft>{failed[line['state']]}</p>" if line["state"] in failed else ""
    name = _text(line["name"] or "a release without a name")
    return f"<div class=card><b>{name}</b><p>{_text(question_in_words(line))}</p>{_pairs(rows)}{note}</div>"


def question_in_words(line: Mapping[str, Any]) -> str:
    """What a release asked, for somebody who reads no queries.

    >>> question_in_words({"kind": "mean", "columns": ["age"], "where": "ward = 3"})
    'The average of age, among the records where ward = 3.'
    >>> question_in_words({"kind": None, "columns": [], "where": None})
    'The ledger does not say what was asked.'
    """
    if line["kind"] is None:
        return "The ledger does not say what was asked."
    columns = " and ".join(line["columns"]) or "all columns"
    asked = _QUESTIONS.get(line["kind"], f"{line['kind']} of {{columns}}").replace("{columns}", columns)
    return asked + (f", among the records where {line['where']}." if line["where"] else ".")


def _amount(text: str) -> str:
    """An exact decimal with three significant digits."""
    exact = Decimal(text)
    digits = max(0, 2 - exact.adjusted()) if exact else 0
    short = f"{exact:.{digits}f}"
    return short.rstrip("0").rstrip(".") if "." in short else short


def _when(at: str) -> str:
    return at.replace("T", ", ").removesuffix("Z") + " UTC"


def _pairs(rows: Mapping[str, Any]) -> str:
    return "<dl>" + "".join(f"<dt>{_text(k)}</dt><dd>{_text(v)}</dd>" for k, v in rows.items()) + "</dl>"


def _text(value: Any) -> str:
    return html.escape(str(value), quote=True)
