"""report.html: one self-contained page that a data-protection officer and a reader of the figures can both use."""

from __future__ import annotations

import base64
import html
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sfumato.offers import GAPS, gap_name
from sfumato.people.headline import ANY_DATA, IF_INDEPENDENT, Headline
from sfumato.privacy.group_losses import GroupLosses
from sfumato.results import Result

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2433; --soft: #5b6478; --line: #d9dee8; --back: #fff; --card: #f5f7fb; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9f0; --soft: #a3abbd; --line: #3a4254; --back: #151922; --card: #1e2430; } }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--back);
  max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h1, p { overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.soft { color: var(--soft); } .big { font-size: 2.2rem; font-weight: 600; }
.promise { background: var(--card); border-left: 4px solid #0072b2; padding: .8rem 1rem; }
.warn { border-left-color: #e69f00; } .stop { border-left-color: #d55e00; font-weight: 600; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
td, th { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); }
figure { margin: 1rem 0; background: #fff; border-radius: 6px; } img { max-width: 100%; display: block; }
pre { background: var(--card); padding: 1rem; overflow-x: auto; font-size: .8rem; }
"""
_MOST_ROWS = 40


def report(result: Result, made: Mapping[str, Any]) -> str:
    """The page. `made` is the certificate."""
    guarantee, asked = made["guarantee"], made["asked"]
    name, software = str(made["release"]), f"sfumato {made['software']['version']}"
    parts = [
        f"<h1>{_text(name)}</h1>",
        f"<p class=soft>{_text(_question(made))} · {_text(made['created'])} · {_text(software)}</p>",
        _about(made["schema"]),
        _headline(result),
        _figure(result, f"Plot of {name}"),
        "<h2>What is promised</h2>",
        f"<p class='promise{'' if guarantee['private'] else ' stop'}'>{_text(guarantee['sentence'])}</p>",
        f"<p class='promise warn'>{_text(made['assumption'])}</p>" if made.get("assumption") else "",
        *(f"<p class='promise warn'>{_text(w)}</p>" for w in made["warnings"]),
        _people(guarantee),
        _attributes(guarantee),
        _sections(result),
        "<h2>The figures</h2>",
        _frame(result.to_frame()),
        "<h2>How it was made</h2>",
        _rows(
            {
                **{f"column {column}": words for column, words in made["schema"]["columns"].items()},
                "where": asked.get("where") or "everybody",
                "mechanism": made["mechanism"],
                **{f"{what} (root mean square)": _number(error) for what, error in expected_errors(made).items()},
                **{f"parameter: {k}": _brief(v) for k, v in _flat(made["parameters"])},
                "charged ε": made["charged"]["epsilon"],
                **{f"charged ε to attribute {name}": nano for name, nano in made["charged"].get("attributes", {}).items()},
                "recipient": made.get("recipient") or "everybody",
                "ledger entry": made["reservation"],
                "schema (SHA-256)": made["schema"]["digest"],
            }
        ),
        "<h3>Steps</h3>",
        _table(["step", "kind of noise", "ε"], [[s["label"], s["mechanism"], s["epsilon"]] for s in guarantee["steps"]]),
        "<h3>Mechanisms, as previewed</h3>",
        _previewed(made["previewed"], made["mechanism"]),
        "<details><summary>Certificate</summary><pre>"
        + _text(json.dumps(made, indent=1, ensure_ascii=False, default=str))
        + "</pre></details>",
    ]
    body = "\n".join(p for p in parts if p)
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{_text(name)}: private release</title><style>{_STYLE}</style></head>"
        f"<body>\n{body}\n</body></html>\n"
    )


def _about(schema: Mapping[str, Any]) -> str:
    """The table in its custodian's words, if there are any."""
    said = [f"<b>{_text(schema['title'])}</b>"] if schema.get("title") else []
    said += [_text(schema["description"])] if schema.get("description") else []
    return f"<p>{'. '.join(said)}</p>" if said else ""


def _question(made: Mapping[str, Any]) -> str:
    """What was asked, in a line: mean of age in clinic, where ward = 'A'."""
    asked = made["asked"]
    of = asked.get("column") or " x ".join(asked.get("columns") or ()) or asked.get("target")
    subject = f"{made['kind']} of {of} in {made['dataset']}" if of else f"{made['kind']} in {made['dataset']}"
    by = f", by {' x '.join(asked['by'])}" if asked.get("by") else ""
    base = f", of those with {asked['of']}" if asked.get("of") else ""
    return subject + by + (f", where {asked['where']}" if asked.get("where") else "") + base


def _flat(parameters: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Nested parameters as lines, lists as words: nobody reads a dictionary."""
    for key, value in parameters.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}: ")
        elif isinstance(value, list | tuple):
            yield f"{above}{key}", ", ".join(_brief(v) for v in value)
        else:
            yield f"{above}{key}", value


def picture(result: Result) -> bytes:
    """The result's plot as PNG."""
    return drawn(result.plot)


def drawn(draw: Callable[[Any], Any]) -> bytes:
    """What `draw` makes of a pair of axes, as PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    draw(figure.add_subplot())
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=140, facecolor="white")
    return out.getvalue()


def _headline(result: Result) -> str:
    value = getattr(result, "value", None)
    if not isinstance(value, int | float):
        alarm = getattr(result, "alarm", None)
        return f"<p class='promise stop'>{_text(alarm)}</p>" if alarm else ""
    first: Headline = result.headline()  # type: ignore[attr-defined]
    words = result.words
    low, high = first.interval
    alarm = f"<p class='promise stop'>{_text(first.alarm)}</p>" if first.alarm else ""
    narrow = first.interval_if_independent
    band = f"95% interval {words(low)} to {words(high)}" + (f" {ANY_DATA}" if narrow else "")
    second = f"95% interval {words(narrow[0])} to {words(narrow[1])} {IF_INDEPENDENT}" if narrow else ""
    second = f"<p class=soft>{second}</p>" if second and not first.alarm else ""
    return f"{alarm}<p><span class=big>{words(first.value)}</span> <span class=soft>{band}</span></p>{second}"


def expected_errors(made: Mapping[str, Any]) -> dict[str, float | None]:
    """The expected error by what it assumes: where budgets differ, that of independence is not the only one."""
    errors = next((o.get("errors") for o in made["previewed"] if o["mechanism"] == made["mechanism"]), None)
    if not errors:
        return {"expected error": made["expected_rmse"]}
    return {"expected error if independent": made["expected_rmse"], "expected error in the worst case": errors["worst"]}


def _previewed(offers: Sequence[Mapping[str, Any]], chosen: str) -> str:
    """The mechanisms that were to choose from; where budgets differ, with their errors at every gap and a picture."""
    known = [o for o in offers if o.get("errors")]
    if not known:
        rows = [[o["mechanism"], _number(o["expected_rmse"]), o["note"]] for o in offers]
        return _table(["mechanism", "expected error", "note"], rows)
    names = ["independent", *(gap_name(gap) for gap in GAPS), "worst"]
    heads = ["mechanism", "error if independent", *(f"gap of {100 * g:.0f} points" for g in GAPS), "worst case", "note"]
    rows = [[o["mechanism"], *(_number(o["errors"][name]) for name in names), o["note"]] for o in known]

    def draw(ax: Any) -> None:
        from sfumato.people.plots import plot_gaps

        plot_gaps({o["mechanism"]: [o["errors"][name] for name in names] for o in known}, ax, chosen=chosen)

    said = (
        "The error by how far what people granted and their values go together: a gap is the difference between the mean of "
        "the stricter people and of the rest, in percentage points of the range, cut where it hurts the mechanism most."
    )
    return f"<p class=soft>{said}</p>" + _table(heads, rows) + _picture(draw, "Error of each mechanism against the gap")


def _figure(result: Result, caption: str) -> str:
    return _picture(result.plot, caption)


def _picture(draw: Callable[[Any], Any], caption: str) -> str:
    try:
        data = base64.b64encode(drawn(draw)).decode()
    except Exception as error:  # the release is paid for: a picture that cannot be drawn must not cost it
        return f"<p class=soft>No picture could be drawn ({_text(type(error).__name__)}); the figures are below.</p>"
    return f"<figure><img alt='{_text(caption)}' src='data:image/png;base64,{data}'></figure>"


def _sections(result: Result) -> str:
    """What a result wants to add to its own report: (heading, text or data frame) pairs."""
    extra = getattr(result, "report_sections", None)
    out = []
    for heading, content in extra() if callable(extra) else ():
        out.append(f"<h2>{_text(heading)}</h2>")
        out.append(f"<p>{_text(content)}</p>" if isinstance(content, str) else _frame(content))
    return "\n".join(out)


def _people(guarantee: Mapping[str, Any]) -> str:
    if not guarantee.get("people"):
        return ""
    rows = GroupLosses.from_list(guarantee["people"])
    shown = rows.merged(_MOST_ROWS)
    groups = int(rows.groups.sum())
    merged = "" if groups == shown.rows else f"<p class=soft>{groups:,} groups in {shown.rows} rows, as ranges</p>"
    table = _table(
        ["group", "people", "granted ε", "share for this release", "used ε"],
        [
            [r.get("group", ""), f"{r['people']:,}" if rows.people.any() else "", r["granted"], r["share"], r["used"]]
            for r in shown.to_list()
        ],
    )
    return "<h3>What each group of people loses</h3>" + table + merged


def _attributes(guarantee: dict[str, Any]) -> str:
    rows = guarantee.get("attributes")
    if not rows:
        return ""
    return "<h3>What each attribute loses</h3>" + _table(
        ["attribute", "used ε", "all attributes together"], [[k, v, guarantee["epsilon"]] for k, v in rows.items()]
    )


def _frame(frame: Any) -> str:
    shown = frame.head(_MOST_ROWS)
    more = "" if len(frame) <= _MOST_ROWS else f"<p class=soft>{len(frame) - _MOST_ROWS:,} more rows in data.parquet</p>"
    return (
        _table([str(c) for c in frame.columns], [[_brief(v) for v in row] for row in shown.itertuples(index=False)]) + more
    )


def _rows(pairs: dict[str, Any]) -> str:
    return _table(["", ""], [[k, v] for k, v in pairs.items()])


def _table(head: list[str], rows: list[list[Any]]) -> str:
    top = "".join(f"<th>{_text(h)}</th>" for h in head)
    body = "".join("<tr>" + "".join(f"<td>{_text(c)}</td>" for c in row) + "</tr>" for row in rows)
    return f"<div class=wide><table><tr>{top}</tr>{body}</table></div>"  # on a phone the table scrolls, not the page


def _brief(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}"
    text = str(value)
    return text if len(text) <= 120 else text[:117] + "..."


def _number(value: float | None) -> str:
    return "not known beforehand" if value is None else f"{value:,.4g}"


def _text(value: Any) -> str:
    return html.escape(str(value), quote=True)
