"""Automatic settings: number of grids, pool and split, from public facts only (ε, a public number of records, the
schema).

The rules were chosen by trials on the two data sets of the bench (so its figures flatter them) and are written as what
they rest on, the *signal* Nε: the number of records times the budget, which is how many units of noise fit into the
table.

- Nε below `TWO_GRIDS`: one grid. Above it a second grid can find more than halving the budget costs, if the first, as
  published, leaves at least `MIXED` of the records on the wrong side ("adaptive": published counts are public).
- The choice gets a smaller share as Nε grows: it is then certain anyway, and the counts can use the rest.
- Grids of more than four attributes hardly win; leaving them out lets the pool hold more of the others. Below `FAINT`
  the choice is noisy, and a smaller pool of at most three attributes does better.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.errors import InputError
from sfumato.grids.levels import Levels
from sfumato.grids.settings import PAPER_SPLIT, Settings

TWO_GRIDS = 15_000
FAINT = 2_500
MIXED = 0.125
FIRST_SHARE = 0.5
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

    >>> taxonomies = (Levels.flat("sex", ["F", "M"]),)
    >>> automatic(epsilon=0.1, rows=40_000, taxonomies=taxonomies, classes=2, options={}).grids
    1
    >>> automatic(epsilon=1, rows=40_000, taxonomies=taxonomies, classes=2, options={"grids": 1}).grids
    1
    """
    signal = (rows if rows is not None else _ASSUMED_ROWS) * epsilon
    grids = "adaptive" if signal >= TWO_GRIDS else 1
    select = 0.37 if signal < 4_000 else 0.25
    found: dict[str, Any] = {
        "grids": grids,
        "most": 20_000 if signal < FAINT else 40_000 if signal < TWO_GRIDS else 60_000,
        "order": "balanced",
        "widest": 3 if signal < FAINT else 4,
        "split": (0.03, select, 0.97 - select),
        "calibration": "spread",
        "cells": 0.2,
    }
    for name, value in options.items():
        if name not in found:
            raise InputError(f"unknown option {name!r}; known: {', '.join(found)}")
        if isinstance(value, str) and value == "auto":
            continue
        found[name] = PAPER_SPLIT if name == "split" and value == "paper" else value
    if isinstance(found["split"], str):
        raise InputError(f"split must be 'auto', 'paper' or three shares, got {found['split']!r}")
    return Settings(**{**found, "split": tuple(found["split"])})
