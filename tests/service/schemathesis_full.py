"""More than ten thousand made-up requests, as every role and as nobody: `python tests/service/schemathesis_full.py`.

Takes some minutes. Ends with how often each status was answered; a request that breaks something is shown with how to send
it again, and the run goes on with the next address.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import pytest

from support.service_fuzz import Tally, fuzz, operations
from support.service_world import World


def main(examples: int) -> int:
    """Send `examples` requests to each address as each kind of people; 0 if nothing was found."""
    whole, found = Tally(), 0
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sfumato.service.accounts.second_factor.confirm_code", lambda *_: None)
        world = World.made(Path(folder))
        for operation in operations(world):
            tally = Tally()
            try:
                fuzz(world, operation, examples, tally)
            except (Exception, BaseExceptionGroup) as trouble:
                found += 1
                print(f"--- {operation.label}\n{trouble}", *getattr(trouble, "exceptions", ()), sep="\n", flush=True)
            whole.statuses.update(tally.statuses)
            print(f"{operation.label}: {dict(sorted(tally.statuses.items()))}", flush=True)
    print(f"{whole.cases} requests: {dict(sorted(whole.statuses.items()))}; {found} addresses with something found")
    return 1 if found or any(status >= 500 for status in whole.statuses) else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 25))
