"""``python -m sfumato.service.runner --config FILE``: run jobs until told to stop.

The first SIGTERM or Ctrl-C takes no more jobs, waits for the releases that were charged, and leaves the rest for the next
runner; the second one stops at once.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Any

from sfumato.errors import SfumatoError
from sfumato.service.context import Service
from sfumato.service.jobs.queue import LEASE
from sfumato.service.runner.loop import PLACES, Runner
from sfumato.service.settings import Settings


def main(arguments: list[str] | None = None) -> int:
    """Run jobs until told to stop.

    Parameters
    ----------
    arguments : list of str, optional
        Those of the command line if it is not given.
    """
    parser = argparse.ArgumentParser(prog="python -m sfumato.service.runner", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="the service's TOML file")
    parser.add_argument("--places", type=int, default=PLACES, help="jobs at the same time")
    parser.add_argument("--lease", type=int, default=LEASE, help="seconds after which a silent runner has lost its jobs")
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s", stream=sys.stderr)
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
    runner.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
