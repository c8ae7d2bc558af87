"""Quantiles of diffprivlib, run by an interpreter that has it: ``python quantile_peer.py JOB.npz JOB.json OUT.json``.

This file stands alone: it needs numpy and the peer, nothing of this package. The job holds columns and questions; the answer
holds the values that were drawn for each.
"""

from __future__ import annotations

import json
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any


def answers(job: list[dict[str, Any]], columns: Any) -> list[list[list[float]]]:
    """For each question the values of every repetition."""
    quantile = import_module("diffprivlib.tools").quantile
    found = []
    for asked in job:
        values = columns[asked["column"]].astype(float)
        given = {"epsilon": asked["epsilon"], "bounds": (asked["low"], asked["high"])}
        drawn = []
        for number in range(asked["repeats"]):
            made = quantile(values, asked["quantiles"], random_state=number, **given)
            drawn.append([float(v) for v in (made if asked["quantiles"][1:] else [made])])
        found.append(drawn)
    return found


def main(data: str, job: str, out: str) -> None:
    """Read the job, run it, write the answers."""
    import numpy as np

    warnings.simplefilter("ignore")
    described = json.loads(Path(job).read_text(encoding="utf-8"))
    with np.load(data) as stored:
        made = answers(described, {name: stored[name] for name in stored.files})
    Path(out).write_text(json.dumps(made), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
