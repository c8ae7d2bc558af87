"""``python -m sfumato.bench.service_kills``: web, runner and database are killed at random moments, and nothing is lost.

A service of its own is set up and called over HTTP, as people would. While an analyst's requests wait and run, and a
custodian's plans are approved, one of the processes is ended by ``kill -9`` and started again, `--kills` times. Afterwards
every job must have ended, every approval that was answered must be there, no request may be charged twice, and
``sfumato service check`` must find nothing wrong: ledger, log, every release with its charge and its files.

On SQLite web and runner are killed. With ``SFUMATO_BENCH_POSTGRES``, the address of a server on this machine, also one of
the server's processes: PostgreSQL then ends all of them and recovers from its log, as after a crash.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from sfumato.bench.service_kills_world import World
from sfumato.errors import SfumatoError

KILLS: Final = 200
WAITING: Final = 6
"""Requests that are always under way."""

OVER: Final = ("finished", "failed", "cancelled")


def run(kills: int, *, longest: int = 10, progress: Callable[[str], None] = print) -> dict[str, Any]:
    """Kill so often, and say what was found.

    Parameters
    ----------
    kills : int
        How often.
    longest : int
        Seconds that a release may run: more on a slow machine, or every one is stopped before it is made.
    progress : callable
        Hears a line now and then.

    Returns
    -------
    dict
        Counts, and `faults`, which is empty if all is well.
    """
    chance = random.Random()
    with tempfile.TemporaryDirectory(prefix="sfumato-kills-") as folder, World(Path(folder), longest=longest) as world:
        world.furnish()
        victims = ["web", "runner", *(["database"] if world.server else [])]
        asked = [world.asked()]
        approved: list[str] = []
        killed: Counter[str] = Counter()
        for number in range(kills):
            _ask(world, asked)
            _approve(world, approved)
            time.sleep(chance.choice((chance.uniform(0, 0.3), chance.uniform(0, 6))))
            victim = chance.choice(victims)
            world.kill(victim)
            killed[victim] += 1
            if (number + 1) % 20 == 0:
                progress(f"{number + 1} of {kills} killed, {len(asked)} requests, {len(approved)} approvals")
        progress("all killed; waiting for the jobs that are left")
        states = _ended(world, asked)
        faults = _faults(world, states, approved)
        return {
            "database": "PostgreSQL" if world.server else "SQLite",
            "killed": dict(killed),
            "requests": len(asked),
            "ended": dict(Counter(states.values())),
            "approvals": len(approved),
            "faults": faults,
        }


def _ask(world: World, asked: list[str]) -> None:
    """Keep some requests under way; one that got no answer may have been taken all the same, and counts once it is seen."""
    with suppress(SfumatoError):
        seen = {job["id"]: job["state"] for job in world.analyst.jobs}
        asked += [job for job in seen if job not in asked]
        for _ in range(WAITING - sum(state not in OVER for state in seen.values())):
            asked.append(world.asked())


def _approve(world: World, approved: list[str]) -> None:
    """Have a plan approved whenever there is a new one-time code; what is answered counts."""
    code = world.officers_code()
    if code is None:
        return
    with suppress(SfumatoError):
        release = {"name": "old", "kind": "count", "where": "age >= 50", "epsilon": "0.001"}
        plan = world.custodian.plans.create(world.DATASET, f"plan {len(approved)}", [release])
        plan = world.custodian.plans.submit(str(plan["id"]))
        world.officer.approvals.approve(plan, "a small price", code=code)
        approved.append(str(plan["id"]))


def _ended(world: World, asked: list[str], seconds: int = 600) -> dict[str, str]:
    """The states of all jobs, once each is over; those that are not by then keep their state."""
    until = time.monotonic() + seconds
    states: dict[str, str] = {}
    while time.monotonic() < until:
        world.keep_alive()
        with suppress(SfumatoError):
            states = {job["id"]: job["state"] for job in world.analyst.jobs}
            if all(state in OVER for state in states.values()):
                break
        time.sleep(0.5)
    return states | {job: "lost" for job in asked if job not in states}


def _faults(world: World, states: dict[str, str], approved: list[str]) -> list[str]:
    """What should not be, in sentences."""
    faults = [f"job {job} is {state}" for job, state in states.items() if state not in OVER]
    if "finished" not in states.values():
        faults.append("no job was finished: say a longer --longest")
    delivered = Counter(release["job"] for release in world.analyst.releases)
    faults += [
        f"job {job} is {state} and has {delivered[job]} releases"
        for job, state in states.items()
        if delivered[job] != (state == "finished")
    ]
    for plan in approved:
        state = world.custodian.plans[plan]["state"]
        faults += [] if state == "approved" else [f"plan {plan} was approved and is {state}"]
    charged = Counter(entry["job"] for entry in world.history())
    faults += [f"job {job} was charged {times} times" for job, times in charged.items() if times > 1]
    world.stop()
    told = world.checked()
    return faults + [str(fault) for fault in told["wrong"]]


def main(arguments: list[str] | None = None) -> int:
    """Kill, and print what was found as JSON; the exit code is 1 if anything is wrong.

    Parameters
    ----------
    arguments : list of str, optional
        Those of the command line if it is not given.
    """
    parser = argparse.ArgumentParser(prog="python -m sfumato.bench.service_kills")
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--longest", type=int, default=10, help="seconds that a release may run; more on a slow machine")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that nothing is left running
    given = parser.parse_args(arguments)
    found = run(given.kills, longest=given.longest, progress=lambda line: print(line, file=sys.stderr, flush=True))
    print(json.dumps(found, indent=1))
    return 1 if found["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
