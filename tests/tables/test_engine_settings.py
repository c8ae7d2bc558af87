"""Memory, threads and spill folder of DuckDB: where they are said, what is refused, and what is left on disk: nothing."""

from __future__ import annotations

import gc
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import sfumato as sf
import sfumato.tables as tables
from sfumato.errors import InputError
from sfumato.releases.plan import read_plan
from sfumato.tables import EngineSettings, Numeric, Schema, spill
from sfumato.tables.duckdb_engine import duckdb_file, fresh_duckdb
from sfumato.testing import reveal

SCHEMA = Schema({"x": Numeric(0, 9, bins=2, integer=True)})
TABLE = pa.table({"x": [1, 2, 7]})


def setting(backend, name: str) -> str:
    return str(backend.con.execute(f"SELECT current_setting('{name}')").fetchone()[0])


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("SFUMATO_DUCKDB_MEMORY", "SFUMATO_DUCKDB_THREADS", "SFUMATO_SPILL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"memory": "4GB"}, "unknown key 'memory'; did you mean 'memory_limit'"),
        ({"memory_limit": "4"}, "a size such as '4GB'"),
        ({"memory_limit": "80%"}, "a size such as '4GB'"),
        ({"memory_limit": "1GB'; ATTACH 'x"}, "a size such as '4GB'"),
        ({"memory_limit": 4}, "a size such as '4GB'"),
        ({"memory_limit": "10MB"}, "at least 64MB"),
        ({"threads": 0}, "between 1 and 1024"),
        ({"threads": True}, "between 1 and 1024"),
        ({"threads": "2"}, "between 1 and 1024"),
        ({"spill": ""}, "the path of a folder"),
        (["4GB"], "holds memory_limit, threads and spill"),
    ],
)
def test_what_is_no_setting_is_refused_before_anything_is_opened(given, said):
    with pytest.raises(InputError, match=said):
        tables.open("nowhere.parquet", schema=SCHEMA, engine=given)


def test_settings_reach_duckdb_from_a_call_or_the_environment(tmp_path, monkeypatch):
    data = tables.open(TABLE, schema=SCHEMA, engine={"memory_limit": "256MiB", "threads": 1, "spill": tmp_path})
    assert reveal(data.count()) == 3
    backend = data.engine.backend
    assert (setting(backend, "memory_limit"), setting(backend, "threads")) == ("256.0 MiB", "1")
    assert Path(setting(backend, "temp_directory")).parent.parent == tmp_path
    monkeypatch.setenv("SFUMATO_DUCKDB_MEMORY", "300MiB")
    monkeypatch.setenv("SFUMATO_DUCKDB_THREADS", "2")
    backend = fresh_duckdb(EngineSettings(threads=1))
    assert (setting(backend, "memory_limit"), setting(backend, "threads")) == ("300.0 MiB", "1")  # the call goes first
    for name, wrong in (("SFUMATO_DUCKDB_THREADS", "many"), ("SFUMATO_DUCKDB_MEMORY", "lots")):
        with monkeypatch.context() as patch:
            patch.setenv(name, wrong)
            with pytest.raises(InputError, match=name):
                fresh_duckdb()


PLAN = """
[dataset]
name = "clinic"
source = "t.parquet"
schema = "schema.toml"
rows = 100
{engine}
[ledger]
location = "l"
epsilon = 1
[[release]]
name = "all"
kind = "count"
epsilon = 0.1
"""


def test_a_plan_has_them_and_they_are_no_part_of_a_request(tmp_path):
    import pyarrow.parquet as pq

    pq.write_table(TABLE, tmp_path / "t.parquet")
    (tmp_path / "spilled").mkdir()
    (tmp_path / "schema.toml").write_text('[columns.x]\ntype = "numeric"\nlow = 0\nhigh = 9\nbins = 2\ninteger = true\n')
    plain, limited = tmp_path / "plain.toml", tmp_path / "limited.toml"
    plain.write_text(PLAN.format(engine=""))
    limited.write_text(PLAN.format(engine='[dataset.engine]\nmemory_limit = "200MB"\nthreads = 1\nspill = "spilled"'))
    plan = read_plan(limited)
    assert plan.engine == EngineSettings("200MB", 1, tmp_path / "spilled")
    from sfumato.releases.batch import release

    (first,) = release(plan)
    assert not first.repeated
    (again,) = release(read_plan(plain))
    assert again.repeated  # the same request, so nothing is charged
    gc.collect()
    assert list((tmp_path / "spilled").iterdir()) == []
    assert "200MB" not in str(first.certificate)
    limited.write_text(PLAN.format(engine="[dataset.engine]\nmemory = 1"))
    with pytest.raises(InputError, match=r"\[dataset.engine\] has an unknown key 'memory'"):
        read_plan(limited)


def test_a_table_in_python_takes_them_too(tmp_path):
    table = sf.open(TABLE, schema=SCHEMA, epsilon=1, ledger=":memory:", rows=3, engine={"threads": 1, "spill": tmp_path})
    table.count(epsilon=0.5)
    assert setting(table.dataset.engine.backend, "threads") == "1"


def test_connections_to_one_file_agree_on_them(tmp_path):
    path = str(tmp_path / "clinic.db")
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS x")
    url = f"duckdb:///{path}"
    first = tables.open(url, table="t", schema=SCHEMA, engine={"threads": 1})
    second = tables.open(url, table="t", schema=SCHEMA)
    assert [reveal(d.count()) for d in (first, second)] == [1, 1]
    assert setting(second.engine.backend, "threads") == "1"
    with pytest.raises(InputError, match=r"open in this process with other engine settings.*threads '1'"):
        tables.open(url, table="t", schema=SCHEMA, engine={"threads": 2}).count()
    del first, second
    gc.collect()
    assert setting(duckdb_file(path, EngineSettings(threads=2)), "threads") == "2"


# --------------------------------------------------------------------------------------------------------- the folder


def test_a_grouped_count_beyond_the_memory_limit_spills_and_leaves_nothing(tmp_path):
    """Two million cells of text do not fit into 100 MB; the answer is the same as with plenty."""
    limited = fresh_duckdb(EngineSettings(memory_limit="100MB", threads=2, spill=tmp_path))
    query = (
        "SELECT count(*), sum(n) FROM (SELECT k, count(*) AS n FROM (SELECT i % 1200000 || repeat('x', 40) AS k "
        "FROM range(2000000) t(i)) GROUP BY k)"
    )
    seen: set[Path] = set()
    limited.con.execute("SET enable_progress_bar = false")
    import threading

    done = threading.Event()

    def look() -> None:
        while not done.wait(0.01):
            seen.update(p for p in tmp_path.rglob("*") if "in-use" not in p.name and p.is_file())

    watching = threading.Thread(target=look)
    watching.start()
    try:
        assert limited.con.execute(query).fetchone() == (1_200_000, 2_000_000)
    finally:
        done.set()
        watching.join()
    assert seen  # it did not fit
    (folder,) = tmp_path.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(path.is_relative_to(folder) for path in seen)
    del limited
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_it_goes_after_an_error_too(tmp_path):
    data = tables.open(TABLE, schema=SCHEMA, engine={"spill": tmp_path})
    with pytest.raises(InputError, match="could not compute"):
        data.engine.fetch(data.engine.table.mutate(y=data.engine.table["x"].cast("string").cast("date")))
    assert len(list(tmp_path.iterdir())) == 1
    del data
    gc.collect()
    assert list(tmp_path.iterdir()) == []


HOLD = """
import os, sys
from sfumato.tables.duckdb_engine import fresh_duckdb
from sfumato.tables.engine_settings import EngineSettings
held = fresh_duckdb(EngineSettings(spill=sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
raise SystemExit(3)
"""


def holding(folder: Path) -> subprocess.Popen:
    child = subprocess.Popen([sys.executable, "-c", HOLD, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    return child


def test_what_a_killed_process_left_is_removed_by_the_next_and_a_living_one_keeps_its_own(tmp_path):
    living, killed = holding(tmp_path), holding(tmp_path)
    try:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        left = {p for p in tmp_path.iterdir() if f"-{killed.pid}-" in p.name}
        assert len(left) == 1
        (next(iter(left)) / "rows").mkdir()
        ours = fresh_duckdb(EngineSettings(spill=tmp_path))
        names = {int(p.name.removeprefix(spill.PREFIX).partition("-")[0]) for p in tmp_path.iterdir()}
        assert names == {living.pid, os.getpid()}
        del ours
    finally:
        living.communicate("\n")  # it ends by an exception
        killed.stdin.close()
        killed.stdout.close()
    gc.collect()
    assert living.returncode == 3
    assert list(tmp_path.iterdir()) == []


def test_a_forked_child_takes_nothing_with_it(tmp_path):
    held = fresh_duckdb(EngineSettings(spill=tmp_path))
    child = os.fork()
    if child == 0:
        spill_of = next(iter(tmp_path.iterdir()))
        spill.Spill(str(spill_of), None, os.getppid()).remove()
        os._exit(0)
    os.waitpid(child, 0)
    assert len(list(tmp_path.iterdir())) == 1
    del held


def test_a_folder_in_which_others_may_rename_is_refused(tmp_path):
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    with pytest.raises(InputError, match=r"anybody may rename.*chmod \+t"):
        fresh_duckdb(EngineSettings(spill=open_to_all))
    open_to_all.chmod(0o1777)
    fresh_duckdb(EngineSettings(spill=open_to_all))
    with pytest.raises(InputError, match="not a folder that can be written to"):
        fresh_duckdb(EngineSettings(spill=tmp_path / "none"))


def test_what_looks_like_a_folder_of_ours_and_is_not_stays(tmp_path):
    (tmp_path / f"{spill.PREFIX}1-being-made").mkdir()  # no lock yet
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "in-use").write_text("")
    (tmp_path / f"{spill.PREFIX}1-link").symlink_to(elsewhere)
    spill.sweep(tmp_path)
    left = sorted(p.name for p in tmp_path.iterdir())
    assert left == ["elsewhere", f"{spill.PREFIX}1-being-made", f"{spill.PREFIX}1-link"]
    assert (elsewhere / "in-use").exists()
