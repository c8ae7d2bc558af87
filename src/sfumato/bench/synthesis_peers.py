"""Synthesizers of another library: MST and AIM of dpmm, in an environment of their own.

Both measure marginals with Gaussian noise and fit a graphical model to them; they are (ε, δ)-private, here with δ = 1e-6.
They get the same rows, as codes of the same public schema. Not theirs are the iterations of the fit and the size of AIM's
model: at its defaults MST takes five minutes of processor time for Adult at ε = 1 and comes to a 3-way distance of .0919,
where 600 come to .0929 in one minute; AIM takes hours. AIM's rounds continue each other's fit, so a few iterations
do for them.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.bench import peer_synthesis
from sfumato.bench.peer_environments import Library, interpreter
from sfumato.errors import InputError

DPMM = Library("dpmm", "dpmm.models", ("dpmm==0.1.9",))
DELTA = 1e-6


@dataclass(frozen=True)
class Synthesizer:
    """One mechanism of the library with its settings, and the iterations of its last fit."""

    library: Library
    method: str
    options: dict[str, Any]
    last: int = 600

    def draw(
        self, codes: NDArray[np.int64], sizes: list[int], epsilon: float, *, seed: int, folder: Path | None = None
    ) -> tuple[NDArray[np.int64], float]:
        """A table as long as the given one, and the seconds of fit and draw."""
        python = interpreter(self.library, folder=folder)
        job = {"method": self.method, "epsilon": epsilon, "delta": DELTA, "seed": seed, "options": self.options}
        job["last"] = self.last
        with tempfile.TemporaryDirectory() as temporary:
            here = Path(temporary)
            np.savez(here / "data.npz", codes=codes, sizes=np.asarray(sizes))
            (here / "job.json").write_text(json.dumps(job), encoding="utf-8")
            command = [python, Path(peer_synthesis.__file__), *(here / n for n in ("data.npz", "job.json", "out.npz"))]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                why = (done.stderr.strip().splitlines() or ["no message"])[-1]
                raise InputError(f"{self.library.name}'s {self.method} could not be run: {why}")
            with np.load(here / "out.npz") as found:
                return found["codes"], float(found["seconds"])


SYNTHESIZERS: dict[str, Synthesizer] = {
    "MST": Synthesizer(DPMM, "MST", {"n_iters": 600}),
    "AIM": Synthesizer(DPMM, "AIM", {"n_iters": 50, "max_model_size": 2}),
}


def reachable(name: str) -> bool:
    """Whether the peer can be run, after making its environment if there is none; says why not in a warning."""
    try:
        interpreter(SYNTHESIZERS[name].library)
    except InputError as why:
        warnings.warn(str(why), stacklevel=2)
        return False
    return True
