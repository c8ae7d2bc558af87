"""``sfumato serve`` as a process of its own, on a configuration made for the purpose, and people who call it over HTTP."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PASSWORD = "a long walk by the river"
_START = 120.0
_CONFIG = """\
[service]
state = "state"
base_url = "http://127.0.0.1:{port}"
port = {port}
secure_cookies = false
password_time = 1
password_memory = 1024

[limits]
requests = 1000000
sign_ins = 1000000
body = 8388608

[sources.nation]
location = "nation.parquet"
"""


@dataclass
class Person:
    """Somebody with a session, over one connection that is kept."""

    port: int
    headers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The answer as JSON; a refusal is an error of the bench."""
        sent = None if body is None else json.dumps(body)
        try:
            self._line.request(method, path, sent, {**self.headers, "Content-Type": "application/json"})
            answer = self._line.getresponse()
        except (ConnectionError, http.client.BadStatusLine):  # the server let go of a line that was not used for a while
            self._line.close()
            self._line.request(method, path, sent, {**self.headers, "Content-Type": "application/json"})
            answer = self._line.getresponse()
        told = answer.read()
        if answer.status >= 400:
            raise AssertionError(f"{method} {path}: {answer.status} {told.decode(errors='replace')[:300]}")
        if answer.headers.get("Set-Cookie"):
            self.headers["Cookie"] = answer.headers["Set-Cookie"].partition(";")[0]
        found = json.loads(told) if told else {}
        if isinstance(found, dict) and "csrf_token" in found:
            self.headers["X-CSRF-Token"] = found["csrf_token"]
        return found

    def timed(self, method: str, path: str, body: Any = None) -> float:
        """Seconds of a call."""
        begun = time.perf_counter()
        self.call(method, path, body)
        return time.perf_counter() - begun


@dataclass
class Served:
    """A service that runs, its folder, and the administrator."""

    port: int
    folder: Path
    root: Person

    def account(self, name: str, role: str) -> Person:
        """A new account, signed in."""
        made = self.root.call("POST", "/v1/accounts", {"name": name, "role": role})
        person = Person(self.port)
        person.call("POST", "/v1/set-password", {"code": made["code"], "password": PASSWORD})
        person.call("POST", "/v1/sign-in", {"name": name, "password": PASSWORD})
        return person

    def joined(self, code: str, name: str) -> Person:
        """Somebody who was invited, signed in."""
        person = Person(self.port)
        person.call("POST", "/v1/join", {"code": code, "name": name, "password": PASSWORD})
        return person


@contextmanager
def serving() -> Iterator[Served]:
    """A service without a runner, stopped and removed afterwards."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "service"
        command = [sys.executable, "-m", "sfumato.cli"]
        done = subprocess.run([*command, "service", "init", str(folder)], capture_output=True, text=True, check=True)
        code = next(line for line in done.stdout.splitlines() if line.count("-") >= 2 and " " not in line.strip()).strip()
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        config = folder / "sfumato.toml"
        config.write_text(_CONFIG.format(port=port), encoding="utf-8")
        (folder / "nation.parquet").touch()
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [*command, "serve", "--config", str(config), "--web-only"], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        try:
            _wait(process, port, folder / "log")
            root = Person(port)
            root.call("POST", "/v1/set-password", {"code": code, "password": PASSWORD})
            root.call("POST", "/v1/sign-in", {"name": "administrator", "password": PASSWORD})
            yield Served(port, folder, root)
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    late = time.monotonic() + _START
    while time.monotonic() < late and process.poll() is None:
        try:
            Person(port).call("GET", "/healthz")
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"the service did not start: {log.read_text(encoding='utf-8', errors='replace')[-2000:]}")
