"""`python -m sfumato.testing`: the price fuzz for as long as there is time."""

from __future__ import annotations

import argparse
from collections import Counter

from sfumato.testing.price_plans import KINDS
from sfumato.testing.prices import price_fuzz


def main(arguments: list[str] | None = None) -> None:
    """The command line: ``--seconds``, ``--seed``, ``--kind``."""
    parser = argparse.ArgumentParser(
        prog="python -m sfumato.testing", description="Random releases, priced and replayed to a neighbour."
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=KINDS)
    given = parser.parse_args(arguments)
    found = price_fuzz(seconds=given.seconds, seed=given.seed, kind=given.kind)
    for (kind, mechanism), times in sorted(Counter((f.plan.kind, f.mechanism) for f in found).items()):
        print(f"{kind:12} {mechanism:16} {times:6}")
    print(f"{len(found)} releases cost nobody more than was charged, promised and granted")


if __name__ == "__main__":
    main()
