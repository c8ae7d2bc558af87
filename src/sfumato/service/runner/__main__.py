"""``python -m sfumato.service.runner --config FILE``: run jobs until told to stop.

The first SIGTERM or Ctrl-C takes no more jobs, waits for the releases that were charged, and leaves the rest for the next
runner; the second one stops at once.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from sfumato.errors import SfumatoError
from sfumato.releases.kinds import all_kinds
from sfumato.service.context import Service
from sfumato.service.jobs.queue import LEASE
from sfumato.service.operations.logs import log_json
from sfumato.service.runner.loop import PLACES, Runner
from sfumato.service.settings import Settings

READY: Final = ("pandas", "ibis.backends.duckdb", "matplotlib.figure", "sfumato.people.plots", "sfumato.releases.report")
"""What every release needs: imported once, here, and not by each process that makes one."""


def main(arguments: list[str] | None = None) -> int:
    """Run jobs until told to stop.

    Parameters
    ----------
    arguments : list of str, optional
        Those of the command line if it is not given.
    """
    parser = argparse.ArgumentParser(prog="python -m sfumato.service.runner", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="the service's TOML file")
    parser.add_argument("--with-parent", action="store_true", help="stop when the standard input ends")
    parser.add_argument("--places", type=int, default=PLACES, help="jobs at the same time")
    parser.add_argument("--lease", type=int, default=LEASE, help="seconds after which a silent runner has lost its jobs")
    given = parser.parse_args(arguments)
    log_json()
    try:
        service = Service.opened(Settings.read(given.config, os.environ))
    except SfumatoError as error:
        print(error, file=sys.stderr)
        return 2
    runner = Runner(service, places=given.places, lease=given.lease)

    def stop(_number: int, _frame: Any) -> None:
        if runner.stopping:
            runner.kill()
            os._exit(1)
        runner.stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    for module in READY:
        import_module(module)
    all_kinds()
    if given.with_parent:
        threading.Thread(target=_until_alone, daemon=True).start()
    runner.run()
    return 0


def _until_alone() -> None:
    """Stop as at a signal once whoever started this process is gone, however it went."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
