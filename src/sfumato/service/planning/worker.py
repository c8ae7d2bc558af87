"""The process in which previews run: ``python -m sfumato.service.planning.worker``, over its standard input and output.

Messages are JSON, each after four bytes with its length. The process has its imports ready, says so, and then answers one
message after the other until its input ends. What a message takes above what the process needs by itself is bounded by the
operating system (``RLIMIT_AS``, a gigabyte unless the settings say otherwise); how long an answer may take is watched by
whoever asks, who ends the process.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import struct
import sys
from typing import Any, BinaryIO, Final

LENGTH: Final = struct.Struct(">I")
ALONE: Final = 5
"""Seconds beyond its time after which a process ends itself."""


def read(stream: BinaryIO) -> Any | None:
    """The next message; ``None`` at the end."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    return json.loads(stream.read(LENGTH.unpack(head)[0]))


def packed(message: Any) -> bytes:
    """A message as it crosses the pipe."""
    body = json.dumps(message, allow_nan=False).encode()
    return LENGTH.pack(len(body)) + body


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """What is done for a message: ``{"ok": ...}``, or what kind of error it was, in words."""
    from sfumato.errors import SfumatoError
    from sfumato.service.planning import trying

    known = {"dataset": trying.dataset, "releases": trying.releases, "toml": trying.toml, "preview": trying.preview}
    try:
        return {"ok": known[message["do"]](trying.settings_of(message["settings"]), **message["with"])}  # type: ignore[operator]
    except SfumatoError as error:
        return {"error": type(error).__name__, "why": str(error)}
    except MemoryError:
        return {"error": "memory"}
    except RecursionError:
        return {"error": "InputError", "why": "it nests too deeply to be read; make it flat"}
    except Exception as error:  # nothing private is here, but what an error quotes is for nobody's log
        return {"error": "failed", "why": type(error).__name__}


def warm() -> None:
    """Load what previews need, by making one."""
    import tempfile

    from sfumato.releases.batch import preview
    from sfumato.releases.kinds import all_kinds
    from sfumato.service.planning import previews, trying
    from sfumato.service.planning.assembling import assembled_with
    from sfumato.service.settings import Settings

    for kind in all_kinds():
        all_kinds()[kind]
    people = '{"column": "c", "tiers": {"a": "0.1", "b": "1"}, "counts": {"a": 10, "b": 20}}'
    row = trying.Row("warm", "warm", '[columns.x]\ntype = "numeric"\nlow = 0\nhigh = 9\nbins = 3\n', people, "{}")
    asked = [{"name": "n", "kind": "count", "share": "0.5"}, {"name": "h", "kind": "histogram", "columns": ["x"]}]
    with tempfile.TemporaryDirectory() as folder:
        from pathlib import Path

        plan = assembled_with(Settings.in_folder(Path(folder)), row, asked, location=None)
        previews.finite([o.expected_rmse for p in preview(plan) for o in p.offers])
    import sfumato.ledger.queries  # noqa: F401


def size() -> int:
    """The address space of this process now, in bytes; 0 where the system does not tell."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def limit(most: int) -> None:
    """From here on, refuse what would make this process larger than that."""
    import resource

    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def main() -> None:
    """Answer until the input ends."""
    source, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # whatever else writes to standard output must not be taken for an answer
    warm()
    baseline = size()
    out.write(packed({"ok": "ready"}))
    while (message := read(source)) is not None:
        if baseline:
            limit(baseline + message["bytes"])
        signal.alarm(message["seconds"] + ALONE)  # ends the process, where whoever asked is gone
        try:
            made = packed(answer(message))
        except (MemoryError, ValueError):
            made = packed({"error": "memory"})
        signal.alarm(0)
        view = memoryview(made)
        while view:
            view = view[out.write(view) :]


if __name__ == "__main__":
    main()
