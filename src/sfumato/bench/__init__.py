"""The papers' experiments and our own claims, as commands: `sfumato bench NAME`.

Each bench module has ``run(quick=, data=, progress=)`` and returns figures and *claims*: what was promised, what was
measured, whether it holds. A claim's limit is written down once and never follows the measurement.
"""

from __future__ import annotations

import inspect
import platform
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sfumato.errors import InputError

__all__ = ["NAMES", "run_bench"]

NAMES = (
    "noise",
    "tables",
    "scale",
    "ledger",
    "service",
    "people",
    "histograms",
    "statistics",
    "attributes",
    "grids",
    "classify",
)
"""The experiments, one module each."""


def not_measured(name: str, limit: str, why: object) -> dict[str, Any]:
    """A claim that could not be tried, for want of the library it compares with: it is shown and does not hold."""
    return {"name": name, "figure": f"not measured: {why}", "limit": limit, "holds": False}


def run_bench(
    name: str,
    *,
    quick: bool = False,
    data: Path | None = None,
    plots: Path | None = None,
    peers: bool = False,
    part: str | None = None,
    draws: int | None = None,
    rows: str | None = None,
    engine: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Run one bench by name.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    quick : bool
        A small honest version, in under a minute.
    data : Path, optional
        A folder with the public datasets of the papers; made data are used where it is missing.
    plots : Path, optional
        Where pictures go, if the bench draws any.
    peers : bool
        Run other libraries too, where they are installed.
    part : str, optional
        One part of a long bench.
    draws : int, optional
        How many splits or draws every figure is the mean of, where the bench lets one say: fewer take less time, and the
        tables say how many there were.
    rows, engine : str, optional
        Sizes (``1e6,1e7``) and engines (``duckdb,postgres``) to measure, where the bench lets one choose them.
    progress : callable
        Is told in words what is being done.

    Returns
    -------
    dict
        Its name, the machine, the figures, the claims with what was measured and whether each holds, and the figures as
        tables in Markdown where the bench writes some.
    """
    if name not in NAMES or find_spec(f"sfumato.bench.{name}") is None:
        raise InputError(f"there is no bench {name!r}; there are {', '.join(NAMES)}")
    if data is not None and not data.is_dir():
        raise InputError(f"--data must be a folder, and {data} is not one")
    module = import_module(f"sfumato.bench.{name}")
    parts = getattr(module, "PARTS", ())
    if part is not None and part not in parts:
        raise InputError(
            f"bench {name!r} has no part {part!r}; it has {', '.join(parts) or 'one part only: leave --part out'}"
        )
    wanted = {"quick": quick, "data": data, "progress": progress, "peers": peers, "part": part, "draws": draws}
    known = inspect.signature(module.run).parameters
    if draws is not None and ("draws" not in known or draws < 1):
        raise InputError(
            f"bench {name!r} has its own number of draws; leave --draws out" if draws > 0 else "--draws is 1 or more"
        )
    chosen: dict[str, Any] = {"rows": rows, "engine": engine}
    for key, value in chosen.items():
        if value is not None and key not in known:
            raise InputError(f"bench {name!r} has its own {key}; leave --{key} out")
    if data is not None and "data" not in known:
        raise InputError(f"bench {name!r} makes its own data; leave --data out")
    found: dict[str, Any] = module.run(**{k: v for k, v in (wanted | chosen).items() if k in known})
    if plots is not None:
        if not hasattr(module, "plots"):
            raise InputError(f"bench {name!r} draws no pictures")
        plots.mkdir(parents=True, exist_ok=True)
        arguments = inspect.signature(module.plots).parameters
        given = {"figures": found["figures"], "data": data, "quick": quick}
        module.plots(plots, **{k: v for k, v in given.items() if k in arguments})
    return {
        "bench": name,
        "quick": quick,
        "machine": {"python": platform.python_version(), "system": platform.system(), "cpu": platform.machine()},
        "figures": found["figures"],
        "claims": found["claims"],
        "tables": found.get("tables", ""),
    }
