"""The service that `service_kills` kills: its processes, its people, and what they do over HTTP."""

from __future__ import annotations

import base64
import hmac
import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import httpx

from sfumato.client import Client, connect
from sfumato.errors import SfumatoError

SCHEMA: Final = '[columns.age]\ntype = "numeric"\nlow = 0\nhigh = 100\ninteger = true\nbins = 10\n'
CONFIG: Final = """\
[service]
state = "state"
database = {database}
ledger = {ledger}
host = "127.0.0.1"
port = {port}
base_url = "http://127.0.0.1:{port}"
secure_cookies = false
slot = 1
longest = {longest}
password_time = 1
password_memory = 8192

[limits]
requests = 100000

[sources.people]
location = "people.csv"
"""
_STEP: Final = 30  # seconds of a one-time code


class World:
    """A service in a folder. Use it in a ``with`` block.

    Parameters
    ----------
    folder : Path
        A new one.
    longest : int
        Seconds that a release may run.
    """

    DATASET: Final = "people"
    PURPOSE: Final = "research"

    def __init__(self, folder: Path, *, longest: int) -> None:
        self.folder, self.number, self._step = folder, 0, 0
        self.server = os.environ.get("SFUMATO_BENCH_POSTGRES")
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self._database = self._made() if self.server else None
        (folder / "people.csv").write_text("age\n" + "".join(f"{i % 100}\n" for i in range(500)), encoding="utf-8")
        place = {name: json.dumps(self._database or f"state/{name}.db") for name in ("database", "ledger")}
        self.config = folder / "sfumato.toml"
        self.config.write_text(CONFIG.format(port=self.port, longest=longest, **place), encoding="utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
        if self.server is not None:
            self._sql(f"DROP DATABASE IF EXISTS {str(self._database).rpartition('/')[2].partition('?')[0]} WITH (FORCE)")

    # --- people ------------------------------------------------------------------------------------------------------

    def furnish(self) -> None:
        """Accounts, a dataset, an allowance, and requests that are approved beforehand."""
        code = self._cli("service", "code", "--config", str(self.config)).split()[-1]
        self.start()
        self._wait_for_the_web()
        root = self._joined("administrator", code)
        made = {}
        for role in ("custodian", "officer", "analyst"):
            made[role] = self._joined(role, self.post(root, "/accounts", {"name": role, "role": role})["code"])
        self.custodian, self.officer, self.analyst = (made[role] for role in ("custodian", "officer", "analyst"))
        shown = self.post(self.officer, "/account/second-factor", {"password": _password("officer")})
        self._secret = base64.b32decode(shown["secret"] + "=" * (-len(shown["secret"]) % 8))
        self.post(self.officer, "/account/second-factor/confirm", {"code": self._wait_for_a_code()})
        about = {"name": self.DATASET, "source": "people", "schema": SCHEMA, "caps": {"epsilon": "100", "rows": 500}}
        self.post(self.custodian, "/datasets", about)
        allowed = {"analyst": "analyst", "purpose": self.PURPOSE, "epsilon": "50"}
        self.officer.approvals.allow(self.DATASET, **allowed, code=self._wait_for_a_code())
        given: dict[str, Any] = {"purpose": self.PURPOSE, "kinds": ["count"], "most": "0.01"}
        self.officer.approvals.preapprove(self.DATASET, **given, code=self._wait_for_a_code())

    def post(self, client: Client, path: str, body: Any) -> Any:
        """What the service answers to a body."""
        return client._connection.post(path, body)

    def asked(self) -> str:
        """The job of a new request of the analyst's, each of them another question."""
        self.number += 1
        release = {"name": f"r{self.number}", "kind": "count", "where": f"age >= {self.number % 100}"}
        release["epsilon"] = f"0.001{self.number:06d}"
        body = {"purpose": self.PURPOSE, "release": release}
        return str(self.post(self.analyst, f"/datasets/{self.DATASET}/requests", body)["job"])

    def history(self) -> list[dict[str, Any]]:
        """What the ledger says of the dataset, to its custodian."""
        return list(self.custodian._connection.pages(f"/datasets/{self.DATASET}/history"))

    def officers_code(self) -> str | None:
        """A one-time code that was not used yet, if there is one now."""
        step = int(time.time()) // _STEP
        if step + 1 <= self._step:
            return None
        self._step = max(self._step + 1, step - 1)
        digest = hmac.digest(self._secret, self._step.to_bytes(8, "big"), "sha1")
        at = digest[-1] & 15
        return f"{(int.from_bytes(digest[at : at + 4], 'big') & 0x7FFFFFFF) % 10**6:06d}"

    def _wait_for_a_code(self) -> str:
        while (code := self.officers_code()) is None:
            time.sleep(1)
        return code

    def _joined(self, name: str, code: str) -> Client:
        address, password = f"http://127.0.0.1:{self.port}", _password(name)
        httpx.post(f"{address}/v1/set-password", json={"code": code, "password": password}).raise_for_status()
        return connect(address, name=name, password=password)

    # --- processes ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start whatever does not run."""
        commands = {
            "web": ["sfumato.cli", "serve", "--web-only", "--config", str(self.config)],
            "runner": ["sfumato.service.runner", "--lease", "2", "--config", str(self.config)],
        }
        with (self.folder / "log.txt").open("ab") as log:
            for name, command in commands.items():
                running = self._processes.get(name)
                if running is None or running.poll() is not None:
                    self._processes[name] = subprocess.Popen(
                        [sys.executable, "-m", *command], stdout=log, stderr=log, stdin=subprocess.DEVNULL
                    )

    keep_alive = start

    def kill(self, name: str) -> None:
        """``kill -9`` of the web, the runner or a process of the database, and a new one."""
        if name == "database":
            with suppress(Exception):  # it may be recovering from the one before
                pid = self._sql("SELECT pid FROM pg_stat_activity ORDER BY random() LIMIT 1", new=True)
                os.kill(int(pid), signal.SIGKILL)
        else:
            with suppress(ProcessLookupError):
                self._processes[name].kill()
            self._processes[name].wait()
        self.start()
        if name == "web":
            self._wait_for_the_web()

    def stop(self) -> None:
        """End all processes."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def checked(self) -> dict[str, Any]:
        """What ``sfumato service check`` finds."""
        found: dict[str, Any] = json.loads(self._cli("service", "check", "--json", "--config", str(self.config), fails=True))
        return found

    def _wait_for_the_web(self, seconds: int = 120) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with suppress(httpx.HTTPError):
                if httpx.get(f"http://127.0.0.1:{self.port}/healthz").is_success:
                    return
            time.sleep(0.1)
        raise SfumatoError(f"the web does not answer; its last words are in {self.folder / 'log.txt'}")

    def _cli(self, *arguments: str, fails: bool = False) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "sfumato.cli", *arguments], capture_output=True, text=True, check=not fails
        )
        return done.stdout

    # --- PostgreSQL --------------------------------------------------------------------------------------------------

    def _made(self) -> str:
        """A new database on the server, as an address."""
        name = f"kills_{uuid.uuid4().hex}"
        self._sql(f"CREATE DATABASE {name}")
        head, _, query = str(self.server).partition("?")
        return f"{head.rpartition('/')[0]}/{name}" + (f"?{query}" if query else "")

    def _sql(self, statement: str, *, new: bool = False) -> Any:
        import psycopg

        with psycopg.connect(str(self.server), autocommit=True) as connection:
            cursor = connection.execute(statement)
            row = cursor.fetchone() if new else None
            return None if row is None else row[0]


def _password(name: str) -> str:
    return f"a long password of {name}"
