"""The distribution sfumato-device: built, installed in an environment of its own with nothing else, and used there."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sfumato"
DEVICE = ROOT / "device"
PROJECT = tomllib.loads((DEVICE / "pyproject.toml").read_text(encoding="utf-8"))
PARTS = PROJECT["tool"]["hatch"]["build"]["hooks"]["custom"]["parts"]
FILES = sorted(
    [
        *(DEVICE / "sfumato").glob("*.py"),
        *(SOURCE / part for part in PARTS if part.endswith(".py")),
        *(file for part in PARTS for file in (SOURCE / part).rglob("*.py")),
    ]
)
HEAVY = ["pandas", "scipy", "sklearn", "matplotlib", "ibis", "duckdb", "pyarrow", "sqlalchemy", "typer", "rich", "polars"]

USE = """
import json, sys
import numpy as np
import sfumato as sf
import sfumato.attributes as sa

films = {"Heat": ["action", "crime"], "Alien": ["horror"], "Ghost": ["romance", "comedy"], "Brazil": ["comedy", "horror"]}
budgets = {"action": 0.5, "crime": 0.5, "horror": 0.1, "romance": 0.05, "comedy": 0.5}
shop = sa.Catalogue.of(films)
sa.allocate(shop, budgets=budgets, epsilon=0.1, utility="mse").save("policy.json", key=b"the provider's key")
policy = sa.Policy.load("policy.json", key=b"the provider's key")
rule = sa.Recipients({"cinema": 8, "adnet": 2}, rule={0: 0.1, 5: 0.4}, together=0.45, stranger=0)
mine = dict.fromkeys(budgets, 1)
me = sa.Profile(None, budgets=mine, policies=policy, recipients=rule, ledger=sa.DeviceLedger("me.json"))
first = me.release([["action", "crime"], ["romance"]] * 30, to="cinema", epsilon=0.1)
out = {"private": first.guarantee.private, "epsilon": str(first.guarantee.epsilon), "rows": len(first.rows())}
out["interval"] = bool((first.interval(0.95)[:, 0] < first.interval(0.95)[:, 1]).all())

again = sa.Profile(None, budgets=mine, policies=policy, recipients=rule, ledger=sa.DeviceLedger("me.json"))
out["asked"] = []
for to, epsilon in (("adnet", 0.1), ("adnet", 0.1), ("cinema", 0.1), ("cinema", 0.1), ("stranger", 0.1)):
    try:
        out["asked"].append(str(again.release([["action"]], to=to, epsilon=epsilon).guarantee.epsilon))
    except sf.SfumatoError as error:
        out["asked"].append(type(error).__name__)
out["repeated"] = again.release([], to="adnet", epsilon=0.1, exhausted="repeat").repeated

here = sa.Profile(shop, budgets=budgets, recipients=rule)
out["options"] = len(here.preview(to="cinema"))
stream = here.stream(to="cinema", epsilon=0.2)
stream.add(["Heat"])
stream.skip(10_000)
out["stream"] = len(stream.release().values)
out["leaks"] = len(sa.catalogue_leaks(shop, ["romance"]))

# Enough noise at once to need the cipher and not only the operating system's bits.
nobody = sa.ItemSums.as_stated(np.zeros((5000, len(policy.attributes)), dtype=np.int64), policy)
noisy, promise = sa.release_batch(nobody, policy)
out["batch"] = [bool(noisy.any()), promise.private, "cryptography" in sys.modules]

def said(work):
    try:
        work()
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def run(line):
    return said(lambda: exec(line, {}))

out["missing"] = {line: run(line) for line in json.loads(sys.argv[1])}
out["optional"] = {"pandas": said(first.to_frame), "matplotlib": said(first.plot)}
out["heavy"] = sorted(set(json.loads(sys.argv[2])) & {name.split(".")[0] for name in sys.modules})
out["version"] = sf.__version__
print(json.dumps(out))
"""
BRIEFLY = ("--quiet", "--timeout", "30", "--retries", "1")
MISSING = (
    "import sfumato.people",
    "from sfumato import histograms",
    "from sfumato.tables import Schema",
    "from sfumato import open",
    "import sfumato; sfumato.open('clinic.parquet')",
    "import sfumato; sfumato.grids",
)


def imported(path: Path) -> set[str]:
    """First parts of the `sfumato` modules that a file imports when it runs; what only a type checker sees is left out."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sfumato":
            inner = node.module.split(".")[1:]
            found.update(inner[:1] or [alias.name for alias in node.names])
        if isinstance(node, ast.Import):
            found.update(a.name.split(".")[1] for a in node.names if a.name.startswith("sfumato."))
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_device_has_all_that_its_parts_import(path):
    there = {part.removesuffix(".py") for part in PARTS} | {"on_device"}
    assert imported(path) <= there, f"{path.name} imports what is not in `parts` of device/pyproject.toml"


def test_the_two_projects_agree():
    full = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(PROJECT["project"]["dependencies"]) <= set(full["project"]["dependencies"])
    assert len(PROJECT["project"]["dependencies"]) == 2
    assert PROJECT["project"]["requires-python"] == full["project"]["requires-python"]
    homes = (ROOT / full["tool"]["hatch"]["version"]["path"], DEVICE / PROJECT["tool"]["hatch"]["version"]["path"])
    assert homes[0].resolve() == homes[1].resolve()
    assert (DEVICE / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def run(*command, **more):
    """Run a command of the build or the installation; what it says last is the test's message if it fails."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300, env=environment, **more)
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        why = "pip could not get a package from its registry, which this test needs" if "pip" in command else "it failed"
        pytest.fail(f"{why}: {' '.join(map(str, command))}\n" + "\n".join(lines[-5:]), pytrace=False)
    return done.stdout


def python_of(home: Path) -> Path:
    return home / ("Scripts" if os.name == "nt" else "bin") / "python"


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """An interpreter with pip and hatchling."""
    home = tmp_path_factory.mktemp("tools")
    run(sys.executable, "-m", "venv", home)
    run(python_of(home), "-m", "pip", "install", *BRIEFLY, "hatchling>=1.25")
    return python_of(home)


@pytest.fixture(scope="module")
def built(tools, tmp_path_factory):
    """The wheel and the sdist of the device, and the wheel of the full distribution."""
    out = tmp_path_factory.mktemp("dist")
    run(tools, "-m", "hatchling", "build", "-d", out, "-t", "sdist", "-t", "wheel", cwd=DEVICE)
    run(tools, "-m", "hatchling", "build", "-d", out, "-t", "wheel", cwd=ROOT)
    return {
        "wheel": next(out.glob("sfumato_device-*.whl")),
        "sdist": next(out.glob("sfumato_device-*.tar.gz")),
        "full": next(out.glob("sfumato-*.whl")),
    }


@pytest.fixture(scope="module")
def device(tools, built, tmp_path_factory):
    """An environment with sfumato-device and what pip brings for it, without even pip."""
    home = tmp_path_factory.mktemp("device")
    run(sys.executable, "-m", "venv", "--without-pip", home)
    run(tools, "-m", "pip", "--python", python_of(home), "install", *BRIEFLY, built["wheel"])
    return python_of(home)


@pytest.mark.slow
def test_nothing_but_numpy_and_cryptography_is_installed(tools, device):
    listed = json.loads(run(tools, "-m", "pip", "--python", device, "list", "--format", "json"))
    # cffi and pycparser are cryptography's own; newer ones of its releases may do without.
    names = {package["name"].lower() for package in listed}
    assert {"sfumato-device", "numpy", "cryptography"} <= names
    assert names <= {"sfumato-device", "numpy", "cryptography", "cffi", "pycparser", "typing-extensions"}


@pytest.mark.slow
def test_a_device_does_its_work_and_names_what_it_lacks(device, tmp_path):
    out = json.loads(run(device, "-I", "-c", USE, json.dumps(MISSING), json.dumps(HEAVY), cwd=tmp_path))
    assert out["private"]
    assert out["epsilon"] == "0.1"
    assert out["rows"] == out["stream"] == 5
    assert out["interval"]
    # adnet may learn 0.1 in all, and all recipients together 0.45; the first 0.1 was found in the ledger's file.
    assert out["asked"] == ["0.1", "BudgetError", "0.1", "0.1", "BudgetError"]
    assert out["repeated"]
    assert out["options"] == 4
    assert out["leaks"] == 1
    assert out["batch"] == [True, True, True]
    assert out["heavy"] == []
    for line, said in out["missing"].items():
        assert said is not None, line
        assert "is not in sfumato-device" in said, line
        assert "pip uninstall sfumato-device, then pip install sfumato" in said, line
    for package, said in out["optional"].items():
        assert said.startswith("NotInstalledError")
        assert f"pip install {package}" in said


@pytest.mark.slow
def test_versions_are_one(device, built):
    import sfumato

    said = run(
        device,
        "-I",
        "-c",
        "import sfumato, importlib.metadata as m; print(sfumato.__version__, m.version('sfumato-device'))",
    )
    assert said.split() == [sfumato.__version__] * 2
    assert all(f"-{sfumato.__version__}" in built[name].name for name in ("wheel", "sdist", "full"))


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        # RECORD lists the others in the order in which they were written.
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("RECORD")}


@pytest.mark.slow
def test_the_sdist_stands_alone(tools, built, tmp_path):
    with tarfile.open(built["sdist"]) as archive:
        archive.extractall(tmp_path, filter="data")
    (home,) = tmp_path.iterdir()
    run(tools, "-m", "hatchling", "build", "-d", tmp_path / "again", "-t", "wheel", cwd=home)
    assert contents(next((tmp_path / "again").glob("*.whl"))) == contents(built["wheel"])
    assert "sfumato/attributes/profile.py" in contents(built["wheel"])


@pytest.mark.slow
def test_the_device_has_the_very_files_of_the_full_distribution(built):
    small, full = contents(built["wheel"]), contents(built["full"])
    own = {"sfumato/__init__.py", "sfumato/on_device.py"}
    shared = {name for name in small if name.startswith("sfumato/")} - own
    assert {"sfumato/attributes/profile.py", "sfumato/privacy/meter.py", "sfumato/py.typed"} <= shared
    assert all(small[name] == full[name] for name in shared)
    assert "sfumato/on_device.py" not in full


@pytest.mark.slow
@pytest.mark.parametrize("order", [("wheel", "full"), ("full", "wheel")], ids=["device first", "full first"])
def test_both_at_once_are_refused(device, built, order, tmp_path):
    for name in order:  # what an installer does: it writes one over the other
        with zipfile.ZipFile(built[name]) as archive:
            archive.extractall(tmp_path)
    work = "try:\n  import sfumato.privacy\nexcept ImportError as error:\n  print(error)"
    found = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{work}"
    said = run(device, "-I", "-c", found)
    assert "sfumato and sfumato-device are both installed" in said
    assert "pip uninstall sfumato sfumato-device" in said
