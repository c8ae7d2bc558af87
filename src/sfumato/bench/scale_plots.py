"""Pictures of `sfumato bench scale`: seconds and memory against rows, ours as lines, queries by hand dashed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sfumato.bench.scale_tables import ASKED, WORDS
from sfumato.palette import CYCLE

SHOWN = (
    "tiers/count",
    "one/histogram",
    "tiers/table",
    "million/count",
    "million/histogram",
    "persons/count",
    "tiers/quantile",
)
MARKS = "osD^vPX"


def draw(folder: Path, works: Sequence[dict[str, Any]]) -> list[Path]:
    """Write the picture to `folder` and say where."""
    import matplotlib.pyplot as plt

    figure, (time, memory) = plt.subplots(1, 2, figsize=(11, 5.2), layout="constrained")
    on_duckdb = [line for line in works if line["engine"] == "duckdb"]
    shown = [work for work in SHOWN if sum(line["work"] == work for line in on_duckdb) > 1]
    for work, colour, mark in zip(shown, (c for c in CYCLE if c != "#F0E442"), MARKS, strict=False):
        kind, _, asked = work.partition("/")
        lines = sorted((line for line in on_duckdb if line["work"] == work), key=lambda line: int(line["rows"]))
        rows = [line["rows"] for line in lines]
        look = {"color": colour, "marker": mark, "ms": 5}
        time.plot(rows, [line["seconds"] for line in lines], label=f"{WORDS[kind]}, {ASKED[asked].replace('`', '')}", **look)
        time.plot(rows, [line["hand_seconds"] for line in lines], ls="--", **{**look, "ms": 3}, alpha=0.7)
        for name, style in (("megabytes", "-"), ("hand_megabytes", "--")):
            known = [(line["rows"], line[name]) for line in lines if line.get(name)]
            if known:
                memory.plot(*zip(*known, strict=True), ls=style, **look, alpha=1 if style == "-" else 0.7)
    for ax, what in ((time, "processor seconds of the aggregate"), (memory, "peak memory of a release, MB")):
        ax.set(xscale="log", yscale="log", xlabel="rows", ylabel=what)
        ax.grid(visible=True, which="major", alpha=0.3)
    time.plot([], [], color="black", label="ours")
    time.plot([], [], color="black", ls="--", label="the query by hand")
    handles, names = time.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncol=3, frameon=False, fontsize=9)
    path = folder / "tables-scale.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return [path]
