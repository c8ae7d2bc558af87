"""How fast grids are scored: against one pass per grid, for large pools, for many rows. Ratios within one run."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from sfumato.bench.grids_data import Case
from sfumato.grids.search.pool import Pool, enumerate_grids
from sfumato.grids.search.quality import Quality
from sfumato.grids.search.scoring import score_pool, score_seconds
from sfumato.records.levels import Levels
from sfumato.records.records import Records

RATE = 335_000_000
CELLS = 2_400


def pass_per_grid(records: Records, pool: Pool, quality: Quality, *, every: int) -> float:
    """Seconds for one bincount pass per grid, estimated from every n-th grid.

    Level columns are prepared beforehand, codes are 32-bit: twice as fast as the same in 64 bits.
    """
    columns = {
        (j, level): t.maps[level][records.leaves[:, j]].astype(np.int32)
        for j, t in enumerate(records.taxonomies)
        for level in range(t.height)
    }
    classes = records.classes.astype(np.int32)
    k = len(records.class_labels)
    done = 0
    start = time.process_time()
    for family in pool.families:
        for levels in family.levels[::every].tolist():
            code, size = classes, k
            for j, level in zip(family.attributes, levels, strict=True):
                n = records.taxonomies[j].sizes[level]
                code = code * np.int32(n)
                code += columns[j, level]
                size *= n
            quality.score(np.bincount(code, minlength=size).reshape(k, -1))
            done += 1
    return (time.process_time() - start) * pool.size / max(done, 1)


def scored(records: Records, pool: Pool) -> float:
    """Processor seconds to score a pool."""
    start = time.process_time()
    score_pool(records, pool, Quality.of(RATE))
    return time.process_time() - start


def speed(case: Case, *, quick: bool) -> dict[str, Any]:
    """Figures for a real data set."""
    records = case.records
    small = enumerate_grids(records.taxonomies, most=10_000, cells=CELLS, order="paper")
    turns = 3 if quick else 9
    # Taken in turns, so that a busy machine slows down both.
    rounds = [(scored(records, small), pass_per_grid(records, small, Quality.of(RATE), every=20)) for _ in range(turns)]
    fast, slow = np.median(rounds, axis=0).tolist()
    figures = {
        "seconds_10k_grids": round(fast, 3),
        "seconds_pass_per_grid": round(slow, 3),
        "times_faster": round(slow / fast, 1),
    }
    if not quick:
        large = enumerate_grids(records.taxonomies, most=200_000, cells=CELLS)
        figures["seconds_200k_grids"] = round(scored(records, large), 1)
        figures["grids_in_the_large_pool"] = large.size
    return figures


def synthetic(rows: int, *, seed: int = 0, attributes: int = 20) -> Records:
    """Numbers in 16 bins, four of which decide the class: the Synthe-binary setting of the paper."""
    rng = np.random.default_rng(seed)
    taxonomies = tuple(Levels.numeric(f"x{j}", np.arange(17.0)) for j in range(attributes))
    leaves = np.asfortranarray(rng.integers(16, size=(rows, attributes), dtype=np.uint8))
    signal = leaves[:, :4].astype(np.float32).sum(axis=1) - 30
    classes = (rng.random(rows) < 1 / (1 + np.exp(-signal / 6))).astype(np.int64)
    return Records(taxonomies, leaves, classes, ("0", "1"))


def rows_against_grids(*, rows: tuple[int, int], most: int, attributes: int) -> dict[str, Any]:
    """A pool at few and at many rows: counting passes over the rows, rolling up should not depend on them."""
    pool = enumerate_grids(synthetic(10, attributes=attributes).taxonomies, most=most, cells=CELLS, widest=4)
    found = [score_seconds(synthetic(n, attributes=attributes), pool, Quality.of(RATE)) for n in rows]
    return {
        "rows": list(rows),
        "grids": pool.size,
        "sets_of_attributes": len(pool.families),
        "counting_seconds": [round(c, 2) for c, _ in found],
        "rolling_up_seconds": [round(r, 2) for _, r in found],
        "ratio": round(found[1][1] / found[0][1], 2),
    }
