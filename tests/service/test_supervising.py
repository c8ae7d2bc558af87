"""The supervisor: a runner that dies is started again, both stop in peace, and the web listens where it may."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import InputError
from sfumato.service.operations import web
from sfumato.service.operations.supervising import Supervised, runner_command
from sfumato.service.settings import Settings

QUICK = [sys.executable, "-S", "-E", "-c"]


def until(holds: Callable[[], Any], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def test_a_runner_that_dies_is_started_again_after_pauses_that_grow() -> None:
    runner = Supervised([*QUICK, "raise SystemExit(3)"], pause=0.05)
    began = time.monotonic()
    runner.start()
    until(lambda: runner.starts >= 4)
    assert time.monotonic() - began >= 0.05 + 0.1 + 0.2
    runner.ask_to_stop()
    assert runner.wait(10)
    starts = runner.starts
    time.sleep(0.1)
    assert runner.starts == starts


def test_a_runner_that_was_killed_is_started_again() -> None:
    runner = Supervised([*QUICK, "import time; time.sleep(60)"], pause=0.01)
    runner.start()
    until(lambda: runner.pid)
    first = runner.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    until(lambda: runner.starts == 2 and runner.pid not in (None, first))
    runner.ask_to_stop()
    assert runner.wait(10)


def test_a_runner_may_finish_and_one_that_does_not_is_killed(tmp_path: Path) -> None:
    done = tmp_path / "done"
    code = f"""
    import signal, sys, time
    def finish(*_):
        time.sleep(0.2); open({str(done)!r}, "w").close(); sys.exit(0)
    signal.signal(signal.SIGTERM, finish)
    print("x", flush=True) or time.sleep(60)
    """
    runner = Supervised([*QUICK, textwrap.dedent(code)])
    runner.start()
    until(lambda: runner.pid)
    time.sleep(0.3)
    runner.ask_to_stop()
    assert runner.wait(10)
    assert done.exists()
    deaf = Supervised([*QUICK, "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"])
    deaf.start()
    until(lambda: deaf.pid)
    time.sleep(0.3)
    deaf.ask_to_stop()
    assert not deaf.wait(60, lambda: True)  # somebody is in a hurry
    assert deaf.pid is None


@pytest.mark.parametrize(
    ("given", "may"),
    [
        ({}, True),
        ({"host": "::1", "base_url": "http://[::1]:8000"}, True),
        ({"secure_cookies": False}, True),
        ({"host": "0.0.0.0"}, False),
        ({"host": "0.0.0.0", "base_url": "https://x.example.org"}, True),
        ({"host": "0.0.0.0", "base_url": "https://x.example.org", "secure_cookies": False}, False),
        ({"host": "192.0.2.7", "base_url": "http://192.0.2.7:8000"}, False),
        ({"base_url": "https://x.example.org"}, True),
        ({"base_url": "https://x.example.org", "secure_cookies": False}, False),
        ({"base_url": "http://x.example.org"}, False),
    ],
)
def test_other_machines_are_let_in_by_https_only(tmp_path: Path, given: dict[str, Any], may: bool) -> None:
    settings = Settings.in_folder(tmp_path, **given)
    if may:
        web.check_place(settings)
    else:
        with pytest.raises(InputError):
            web.check_place(settings)


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(InputError, match="choose another port"):
            web.listening(Settings.in_folder(tmp_path, port=other.getsockname()[1]))


def test_the_server_has_limits(tmp_path: Path) -> None:
    config = web.server_for(lambda: None, Settings.in_folder(tmp_path, proxies=("192.0.2.1",))).config
    assert config.http.patience == Settings.in_folder(tmp_path).limits.body_seconds  # type: ignore[union-attr]
    assert (config.limit_concurrency, config.timeout_keep_alive, config.timeout_graceful_shutdown) == (512, 5, 20)
    assert (config.server_header, config.access_log, config.forwarded_allow_ips) == (False, False, ["192.0.2.1"])
    assert not web.server_for(lambda: None, Settings.in_folder(tmp_path)).config.proxy_headers


@pytest.mark.slow
def test_serving_answers_and_stops_in_peace(tmp_path: Path) -> None:
    """The real thing: web and runner as processes, SIGTERM."""
    (tmp_path / "sfumato.toml").write_text('[service]\nstate = "state"\n')
    command = [sys.executable, "-m", "sfumato.cli", "serve", "--config", str(tmp_path / "sfumato.toml"), "--port", "0"]
    with (tmp_path / "said").open("w") as said:
        serving = subprocess.Popen(command, stderr=said, stdout=said)
    try:
        until(lambda: "listens on" in (tmp_path / "said").read_text(), 60)
        port = int((tmp_path / "said").read_text().partition("127.0.0.1:")[2].partition(",")[0])
        until(lambda: _asked(port, "/readyz").startswith("HTTP/1.1 200"), 60)
        assert json.loads(_asked(port, "/healthz").splitlines()[-1]) == {"alive": True}
        serving.send_signal(signal.SIGTERM)
        assert serving.wait(60) == 0
    finally:
        serving.kill()
    text = (tmp_path / "said").read_text()
    assert text.rstrip().endswith("Stopped.")
    assert "Traceback" not in text
    assert "Fatal" not in text


def _asked(port: int, path: str) -> str:
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


def test_the_runner_is_a_process_of_its_own(tmp_path: Path) -> None:
    command = runner_command(tmp_path / "x.toml")
    assert command[1:3] == ["-m", "sfumato.service.runner"]
    assert command[-2:] == ["--config", str(tmp_path / "x.toml")]
