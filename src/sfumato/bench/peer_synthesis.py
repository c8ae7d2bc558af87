"""Tables by another library, run by an interpreter that has it: ``python peer_synthesis.py IN.npz JOB.json OUT.npz``.

This file stands alone: it needs numpy, pandas and the peer, nothing of this package. The table comes as codes with the
public size of every column; the answer is a table of codes and the seconds that it took.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np


def capped(kind: Any, most: int) -> Any:
    """The class with no more iterations than that, where its caller fixed more.

    >>> capped(lambda domain, iters: iters, 500)("domain", iters=2500)
    500
    """

    def make(*given: Any, iters: int, **more: Any) -> Any:
        return kind(*given, iters=min(iters, most), **more)

    return make


def with_last_fit(generator: Any, iterations: int) -> None:
    """Let the last fit of a model, from which its table is drawn, take so many iterations, whatever those before it took."""
    fit = generator._fit

    def then_longer(*given: Any, **more: Any) -> Any:
        found = fit(*given, **more)
        generator.n_iters = iterations
        return found

    generator._fit = then_longer


def synthesize(job: dict[str, Any], codes: Any, sizes: Any) -> Any:
    """A table as long as the given one, drawn from dpmm's MST or AIM."""
    import pandas as pd

    mst: Any = import_module("dpmm.models.mst")
    aim: Any = import_module("dpmm.models.aim")
    mst.FactoredInference = capped(mst.FactoredInference, int(job["options"]["n_iters"]))
    frame = pd.DataFrame({f"c{j}": codes[:, j].astype(np.int64) for j in range(len(sizes))})
    model = {"MST": mst.MSTGM, "AIM": aim.AIMGM}[job["method"]](
        epsilon=job["epsilon"],
        delta=job["delta"],
        domain={f"c{j}": int(size) for j, size in enumerate(sizes)},
        random_state=np.random.RandomState(job["seed"]),
        n_jobs=1,
        **job["options"],
    )
    with_last_fit(model.generator, int(job["last"]))
    model.fit(frame)
    return model.generate(n_records=len(frame))[list(frame.columns)].to_numpy(dtype=np.int64)


def main(data: str, job: str, out: str) -> None:
    """Read the table and the job, make a table, write it."""
    warnings.simplefilter("ignore")
    described = json.loads(Path(job).read_text(encoding="utf-8"))
    with np.load(data) as stored:
        codes, sizes = stored["codes"], stored["sizes"]
    start = time.perf_counter()
    drawn = synthesize(described, codes, sizes)
    np.savez_compressed(out, codes=drawn, seconds=time.perf_counter() - start)


if __name__ == "__main__":
    main(*sys.argv[1:])
