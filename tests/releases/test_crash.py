"""`kill -9` at random moments of a real release: never an artefact without a durable charge, and the ledger works on."""

import gc
import importlib
import json
import os
import signal
import sys
import time
import traceback
from contextlib import suppress

import numpy as np
import pytest

from sfumato.ledger import Ledger
from sfumato.releases.batch import load, release
from support import clinic

KILLS = 30

PLAN = """
[dataset]
name = "clinic"
source = "clinic.parquet"
schema = "clinic.toml"
rows = 2000

[ledger]
location = "clinic.ledger"
epsilon = 1000

[[release]]
name = "r{number}"
kind = "count"
where = "age >= {age}"
epsilon = 0.{number:06d}1
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kills_leave_no_uncharged_artefact(tmp_path, monkeypatch):
    # The picture is left out: it takes longer than all the rest.
    monkeypatch.setattr("sfumato.releases.folder.report", lambda *_: "<p>no picture</p>")
    clinic.make(tmp_path)
    number, loaded = 0, tmp_path / "modules.txt"

    def start():
        """A child that makes one release."""
        nonlocal number
        number += 1
        path = tmp_path / f"plan{number}.toml"
        path.write_text(PLAN.format(number=number, age=number % 90))
        child = os.fork()
        if child == 0:
            # Garbage that other tests left here may be a DuckDB connection: its threads do not exist in the child, and
            # collecting it would wait for them for ever.
            gc.disable()
            try:
                release(load(path))
                if number == 1:
                    loaded.write_text("\n".join(sorted(sys.modules)))
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        return child

    # Children are forked from this process: what the first of them loaded is loaded here, so that kills hit releases and no
    # imports. All that runs is forked, so that the engine's threads never exist in this process.
    assert os.waitpid(start(), 0)[1] == 0
    for module in loaded.read_text().splitlines():
        with suppress(ImportError):  # some only exist inside their package's own loading
            importlib.import_module(module)

    # A full run from a warm process tells over which span the kills must fall.
    begin = time.perf_counter()
    for _ in range(3):
        assert os.waitpid(start(), 0)[1] == 0
    span = (time.perf_counter() - begin) / 3

    rng = np.random.default_rng()
    killed = finished = 0
    while killed < KILLS:
        child = start()
        time.sleep(rng.uniform(0, 1.1 * span))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            killed += 1
        else:
            finished += 1
            assert os.waitstatus_to_exitcode(status) == 0

    ledger = Ledger.open(tmp_path / "clinic.ledger")
    ledger.verify("clinic")
    entries = {entry.id: entry for entry in ledger.history("clinic")}
    assert ledger.balance("clinic").total.spent == sum(entry.total for entry in entries.values())
    folders = [p for p in (tmp_path / "releases").iterdir() if not p.name.startswith(".")]
    for folder in folders:
        made = json.loads((folder / "certificate.json").read_text())
        entry = entries[made["reservation"]]
        assert entry.state in ("reserved", "committed")
        assert entry.total / 1e9 == float(made["charged"]["epsilon"])
    committed = [e for e in entries.values() if e.state == "committed"]
    assert len(committed) >= 4 + finished
    assert {e.artefact["folder"] for e in committed} <= {str(f) for f in folders}
    # Kills must have hit before, between and after the steps, or this test proves nothing.
    assert len(entries) < number
    assert len(committed) < len(entries)
    assert os.waitpid(start(), 0)[1] == 0
