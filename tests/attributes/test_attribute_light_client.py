"""What a device loads: NumPy and nothing heavier, in a fresh process, and how long that takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from sfumato.attributes import Catalogue, allocate

SCRIPT = """
import json, sys, time
start = time.perf_counter()
import numpy
loaded = time.perf_counter()
from sfumato.attributes import Policy, Profile
policy = Policy.load(sys.argv[1])
profile = Profile(None, budgets=dict.fromkeys(policy.attributes, 1), policies=policy)
release = profile.release([["a1", "a2"], ["a0"]] * 20, to="shop", epsilon=0.1)
done = time.perf_counter()
heavy = {"scipy", "sklearn", "pandas", "ibis", "duckdb", "pyarrow", "sqlalchemy", "matplotlib", "cryptography", "cvxpy"}
print(json.dumps({
    "numpy": loaded - start,
    "ours": done - loaded,
    "heavy": sorted(heavy & {name.split(".")[0] for name in sys.modules}),
    "solver": "sfumato.attributes.solver" in sys.modules,
    "private": release.guarantee.private,
    "epsilon": str(release.guarantee.epsilon),
}))
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("device")
    matrix = [[int(i % (j + 2) == 0) for j in range(18)] for i in range(500)]
    catalogue = Catalogue.from_matrix(matrix, [f"a{j}" for j in range(18)])
    allocate(catalogue, budgets={f"a{j}": 0.1 for j in range(18)}, epsilon=0.1).save(folder / "policy.json")
    # An installed package has its bytecode; the first run makes it, outside the source tree.
    setting = os.environ | {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    setting.pop("PYTHONDONTWRITEBYTECODE", None)
    found = []
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(folder / "policy.json")],
            env=setting,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    return found


def test_a_release_needs_numpy_alone(runs):
    for run in runs:
        assert run["heavy"] == []
        assert not run["solver"]
        assert run["private"]
        assert run["epsilon"] == "0.1"


def test_a_release_takes_less_than_importing_numpy(runs):
    # 50 ms where NumPy takes 100 ms to import; a ratio, because test machines are busy.
    assert min(run["ours"] / run["numpy"] for run in runs[1:]) < 0.75
