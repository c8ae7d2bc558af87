"""Experiments on the questions of every day, one part for each module `sfumato.bench.statistics_PART`.

sfumato bench statistics [--json] [--quick] [--part PART] [--data FOLDER] [--peers] [--plots FOLDER]
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

PARTS: tuple[str, ...] = ("quantiles", "groups", "crosstabs")


def _silent(_: str) -> None:
    """No progress."""


def run(
    *,
    quick: bool = False,
    data: Path | None = None,
    peers: bool = False,
    part: str | None = None,
    progress: Callable[[str], None] = _silent,
) -> dict[str, Any]:
    """Every part, or one; each has ``run(quick, data, peers, progress)``, its figures and its claims."""
    figures: dict[str, Any] = {}
    claims: list[dict[str, Any]] = []
    for name in PARTS if part is None else (part,):
        figures[name], made = _module(name).run(quick=quick, data=data, peers=peers, progress=progress)
        claims += made
    return {"figures": figures, "claims": claims}


def plots(folder: Path, figures: dict[str, Any]) -> list[Path]:
    """The pictures of the parts that were run and have one, for the documentation."""
    made: list[Path] = []
    for name, measured in figures.items():
        draw = getattr(_module(name), "plots", None)
        made += [] if draw is None else draw(folder, measured)
    return made


def _module(part: str) -> Any:
    return import_module(f"sfumato.bench.statistics_{part}")
