"""Automatic settings: number of grids, pool and split, from public facts (ε, a public number of records, the schema) and,
where a second grid is in question, from noisy class counts that are paid for.

What decides is the *signal* Nε, the number of records times the budget: how many units of noise fit into the table. The
constants were set on Adult and Bank: the pools and the larger signals' split partly on splits that the bench reports, the
others on splits that it does not.

- A second grid finds what the first gets wrong, so what it can win grows with the records outside the most frequent
  class, and what it costs (half the budget) with the noise: it pays once those records times ε reach `SECOND`. Where
  even evenly spread classes could not reach that, nothing is spent on finding out.
- The choice gets a smaller share as Nε grows: it is then certain anyway, and the counts can use the rest.
- Below `FAINT` the choice is what costs most: it gets over half.
- Grids of four attributes are many times those of three. Below `STRONG` the choice among so many is too noisy for what
  they win; grids of more than four attributes hardly ever win.
- The pool holds every grid of up to three attributes in tables of up to some forty columns, so it need not follow Nε.
- Cells hold at least `CROWD` records on average, however small the noise: the choice sees the records, not those to
  come, and would take grids that are finer than the records can tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.errors import InputError
from sfumato.grids.publishers.settings import PAPER_SPLIT, Settings
from sfumato.records.levels import Levels

SECOND = 4_000
FAINT = 2_500
STRONG = 15_000
CROWD = 20
CANDIDATES = 100_000
_ASSUMED_ROWS = 40_000  # only where no number of records is public: a choice of settings, not an estimate


def automatic(
    *,
    epsilon: float,
    rows: int | None,
    taxonomies: tuple[Levels, ...],
    classes: int,
    options: Mapping[str, Any],
) -> Settings:
    """The settings: what the options say, and public rules where they say "auto".

    Where a second grid may pay, `grids` stays "auto": class counts decide, see `stacking`.

    >>> taxonomies = (Levels.flat("sex", ["F", "M"]),)
    >>> automatic(epsilon=0.1, rows=40_000, taxonomies=taxonomies, classes=2, options={}).grids
    1
    >>> automatic(epsilon=1, rows=40_000, taxonomies=taxonomies, classes=2, options={"grids": 1}).grids
    1
    >>> automatic(epsilon=1, rows=40_000, taxonomies=taxonomies, classes=2, options={}).grids
    'auto'
    """
    signal = (rows if rows is not None else _ASSUMED_ROWS) * epsilon
    select = 0.55 if signal < FAINT else 0.37 if signal < 4_000 else 0.25
    found: dict[str, Any] = {
        "grids": "auto" if signal * (1 - 1 / classes) >= SECOND else 1,
        "most": CANDIDATES,
        "order": "balanced",
        "widest": 3 if signal < STRONG else 4,
        "split": (0.03, select, 0.97 - select),
        "calibration": "spread",
        "cells": 0.28 if signal < FAINT else 0.2,
    }
    for name, value in options.items():
        if name not in found:
            raise InputError(f"unknown option {name!r}; known: {', '.join(found)}")
        if isinstance(value, str) and value == "auto":
            continue
        found[name] = PAPER_SPLIT if name == "split" and value == "paper" else value
    if found["widest"] == "all":
        found["widest"] = None
    if not isinstance(found["split"], list | tuple):
        raise InputError(f"split must be 'auto', 'paper' or three shares, got {found['split']!r}")
    crowd = CROWD if options.get("cells", "auto") == "auto" else 0  # whoever says how many cells means it
    return Settings(**{**found, "split": tuple(found["split"]), "crowd": crowd})
