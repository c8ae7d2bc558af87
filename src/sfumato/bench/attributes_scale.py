"""Fig. 4 and beyond: time against the number of items, a million people, a device, a long stream, a conic solver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes import AttributeStream, Catalogue, ItemSums, Policy, allocate, release_batch
from sfumato.attributes.utility import named_utility
from sfumato.bench.attributes_data import Shop, flat_budgets
from sfumato.errors import NotInstalledError
from sfumato.extras import need
from sfumato.privacy import NANO, Meter, Seeded

_DEVICE = """
import json, sys, time
start = time.perf_counter()
import numpy
loaded, cpu = time.perf_counter(), time.process_time()
from sfumato.attributes import Policy, Profile
policy = Policy.load(sys.argv[1])
profile = Profile(None, budgets=dict.fromkeys(policy.attributes, 1), policies=policy)
profile.release([policy.attributes[:2], policy.attributes[2:3]] * 20, to="shop", epsilon=policy.epsilon)
done, cpu = time.perf_counter(), time.process_time() - cpu
print(json.dumps({"numpy": loaded - start, "release": done - loaded, "cpu": cpu}))
"""


def made_matrix(rng: np.random.Generator, items: int, attributes: int, *, weighted: bool) -> NDArray[Any]:
    """Items that repeat a smaller number of patterns (0/1), or have weights of their own (tenths)."""
    if weighted:
        return np.asarray(np.ceil(rng.dirichlet(np.full(attributes, 0.3), items) * rng.uniform(40, 60, (items, 1))) / 10)
    patterns = max(50, items // 40)
    base = (rng.random((patterns, attributes)) < rng.uniform(0.1, 0.6, (patterns, 1))).astype(np.int64)
    return np.asarray(base[rng.integers(0, patterns, items)])


def allocation_times(*, items: int, progress: Callable[[str], None], seed: int = 0) -> dict[str, Any]:
    """Ours from the raw matrix to a verified policy, and a modelling layer with a conic solver on the unreduced matrix."""
    rng = np.random.default_rng(seed)
    out: dict[str, Any] = {"items": items, "attributes": 20}
    for kind in ("0/1", "weighted"):
        progress(f"allocating for {items:,} items ({kind}), ours and the conic solver")
        matrix = made_matrix(rng, items, 20, weighted=kind == "weighted")
        budgets = flat_budgets(rng, 20)
        names = [f"a{j}" for j in range(20)]

        def ours(matrix: NDArray[Any] = matrix, kind: str = kind, budgets: Any = budgets, names: Any = names) -> Policy:
            catalogue = Catalogue.from_matrix(matrix, names, step="0.1" if kind == "weighted" else 1)
            return allocate(catalogue, budgets=budgets, epsilon=0.1)

        seconds, policy = min((_timed(ours) for _ in range(3)), key=lambda pair: pair[0])
        out[kind] = {"seconds": seconds, "gap": policy.gap, "distinct_rows": len(policy.rows)}
        try:
            theirs, value, violation = _conic(matrix, budgets, 0.1)
        except NotInstalledError as missing:
            out["conic_missing"] = str(missing)
            continue
        rates = policy.rates / NANO / float(policy.unit)
        out[kind] |= {
            "conic_seconds": theirs,
            "times_faster": theirs / seconds,
            "conic_value_over_ours": value / float(np.sum(1 / rates)),
            "conic_infeasibility": violation,
        }
    return out


def _conic(matrix: NDArray[Any], budgets: NDArray[Any], epsilon: float) -> tuple[float, float, float]:
    cp = need("cvxpy", "the comparison with a conic solver")
    top = budgets / matrix.max(axis=0)
    weights = 1 / top / (1 / top).max()
    start = perf_counter()
    z = cp.Variable(top.size)
    goal = cp.Minimize(cp.sum(cp.multiply(weights, cp.inv_pos(z))))
    problem = cp.Problem(goal, [(matrix * top / epsilon) @ z <= 1, z <= 1])
    problem.solve(solver="CLARABEL")
    seconds = perf_counter() - start
    x = top * z.value
    return seconds, float(np.sum(1 / x)), float((matrix @ x).max() / epsilon - 1)


def random_gaps(*, cases: int, seed: int = 0) -> float:
    """The largest optimality gap over random catalogues, each certified by its own dual bound."""
    rng = np.random.default_rng(seed)
    worst = 0.0
    for case in range(cases):
        matrix = made_matrix(rng, int(rng.integers(5, 500)), int(rng.integers(2, 21)), weighted=False)
        catalogue = Catalogue.from_matrix(matrix, [f"a{j}" for j in range(matrix.shape[1])])
        budgets = np.maximum(flat_budgets(rng, matrix.shape[1]), 0.002)
        utility = ("mae", "mse", "mael")[case % 3]
        policy = allocate(catalogue, budgets=budgets, epsilon=round(float(rng.uniform(0.05, 0.4)), 3), utility=utility)
        assert named_utility(utility, np.ones(1)).name == policy.utility
        worst = max(worst, policy.gap)
    return worst


def growth(*, most: int, seed: int = 0) -> list[dict[str, Any]]:
    """Seconds from the raw matrix to the policy against the number of items (Fig. 4)."""
    rng = np.random.default_rng(seed)
    out, items = [], 1000
    while items <= most:
        matrix = made_matrix(rng, items, 20, weighted=False)
        budgets = flat_budgets(rng, 20)
        names = [f"a{j}" for j in range(20)]
        seconds, _ = min(
            (_timed(lambda: allocate(Catalogue.from_matrix(matrix, names), budgets=budgets, epsilon=0.1)) for _ in range(2)),  # noqa: B023
            key=lambda pair: pair[0],
        )
        out.append({"items": items, "seconds": seconds})
        items *= 10
    return out


def batch_seconds(shop: Shop, *, people: int, seed: int = 0) -> float:
    """Noise for many people's histograms, from the secure source."""
    rng = np.random.default_rng(seed)
    m = len(shop.catalogue.attributes)
    policy = allocate(shop.catalogue, budgets=flat_budgets(rng, m), epsilon=0.1)
    return _timed(lambda: release_batch(ItemSums.as_stated(rng.integers(0, 100, (people, m)), policy), policy))[0]


def device_seconds(policy: Policy, *, rounds: int = 8) -> dict[str, float]:
    """Import and release in fresh processes with bytecode in place: the fastest round, NumPy's own import apart."""
    with tempfile.TemporaryDirectory() as folder:
        policy.save(Path(folder) / "policy.json")
        setting = os.environ | {"PYTHONPYCACHEPREFIX": str(Path(folder) / "bytecode")}
        setting.pop("PYTHONDONTWRITEBYTECODE", None)
        runs = []
        for _ in range(rounds + 1):
            command = [sys.executable, "-c", _DEVICE, str(Path(folder) / "policy.json")]
            done = subprocess.run(command, env=setting, capture_output=True, text=True, check=True)
            runs.append(json.loads(done.stdout))
    best = min(runs[1:], key=lambda run: float(run["release"]))
    return {
        "numpy_import": best["numpy"],
        "import_and_release": best["release"],
        "import_and_release_processor_time": min(float(run["cpu"]) for run in runs[1:]),
    }


def stream_figures(policy: Policy, *, steps: int, seed: int = 0) -> dict[str, Any]:
    """A long stream in blocks with a question after each: numbers kept, noise against a single release, throughput."""
    rng = np.random.default_rng(seed)
    meter = Meter(limit=policy.charge, attributes=policy.attributes, neighbours="item", source=Seeded(seed))
    stream = AttributeStream(policy, meter)
    rows = policy.rows.astype(np.int64)
    kept, worst, start = {}, 0.0, perf_counter()
    exact = np.zeros(rows.shape[1], dtype=np.int64)
    for done in range(0, steps, 1000):
        block = rows[rng.integers(0, len(rows), min(1000, steps - done))]
        stream.extend(ItemSums.as_stated(block, policy))
        exact += block.sum(axis=0)
        release = stream.release()
        worst = max(worst, float(np.max(np.abs(release.counts - exact) * policy.rates / NANO)))
        kept[stream.time] = stream.size
    return {
        "steps": stream.time,
        "seconds": perf_counter() - start,
        "levels": stream.levels,
        "numbers_kept_per_attribute": stream.size / rows.shape[1],
        "numbers_kept_at": {str(t): kept[t] / rows.shape[1] for t in list(kept)[:: max(1, len(kept) // 8)]},
        "largest_error_in_single_release_scales": worst,
        "deviation_in_single_release_deviations": float(release.deviations[0] / (np.sqrt(2) * policy.scales[0])),
    }


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = perf_counter()
    result = work()
    return perf_counter() - start, result
