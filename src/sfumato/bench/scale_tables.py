"""The figures of `sfumato bench scale` as tables in Markdown, the ones that the documentation shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

WORDS = {
    "one": "one ε",
    "tiers": "three tiers",
    "million": "a million budgets",
    "capped": "capped persons, one ε",
    "persons": "capped persons, tiers",
}
ASKED = {
    "count": "count with `where`",
    "sum": "sum",
    "histogram": "histogram of text",
    "bins": "histogram of numbers",
    "table": "two columns",
    "quantile": "quantile",
    "grid": "five columns",
}


def tables(works: Sequence[dict[str, Any]], models: Sequence[dict[str, Any]]) -> str:
    """Every work with its seconds, ratios and memory at every size; then the cost model."""
    written = []
    for engine in dict.fromkeys(line["engine"] for line in works):
        written.append(_times([line for line in works if line["engine"] == engine], engine))
    if models:
        written.append(_model(models))
    return "\n\n".join(written)


def _times(works: Sequence[dict[str, Any]], engine: str) -> str:
    lines = [
        f"| {engine}: budgets | question | rows | by hand, s | aggregate, times | release, times | its MB | by hand, MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for line in works:
        kind, _, asked = line["work"].partition("/")
        release = f"{line['release_times']:.2f}" if "release_times" in line else "refused"
        memory = [str(line.get(name) or "") for name in ("megabytes", "hand_megabytes")]
        said = [WORDS[kind], ASKED[asked], f"{line['rows']:,}", f"{line['hand_seconds']:.2f}", f"{line['times']:.2f}"]
        lines.append("| " + " | ".join([*said, release, *memory]) + " |")
    return "\n".join(lines)


def _model(models: Sequence[dict[str, Any]]) -> str:
    lines = [
        "| work | constant, s | ns per row | MB read per s | foretold, s | measured, s | off | a billion rows, s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for line in models:
        told = (
            [f"{line['foretold_seconds']:.2f}", f"{line['measured_seconds']:.2f}", f"{line['foretold_off']:+.0%}"]
            if "foretold_off" in line
            else ["", "", ""]
        )
        rate = "" if line["megabytes_per_second"] is None else f"{line['megabytes_per_second']:.0f}"
        billion = " to ".join(f"{seconds:.0f}" for seconds in line["billion_seconds"])
        name = f"{line['work']}" + ("" if line["engine"] == "duckdb" else f", {line['engine']}")
        first = [name, f"{line['constant_seconds']:.2f}", f"{line['nanoseconds_per_row']:.1f}", rate]
        lines.append("| " + " | ".join([*first, *told, billion]) + " |")
    return "\n".join(lines)
