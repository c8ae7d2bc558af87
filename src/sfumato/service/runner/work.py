"""One release, in a process that can be killed: it charges, reads the table, writes the folder, and ends.

It never tells the ledger how the release ended. A release that succeeded ends with its folder written whole, and one that
failed without; the process ends at the same place in both cases, and `settling` looks at the folder when the time of the
release is over. So the ledger, and whatever is computed from it, learns of the end at a moment that was fixed beforehand.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, insert

from sfumato.errors import BudgetError, PrivacyError, SfumatoError
from sfumato.ledger.signing import Keys
from sfumato.privacy.source import SECURE
from sfumato.releases.batch import PlanPreview, preview, release
from sfumato.releases.folder import CERTIFICATE, write
from sfumato.releases.outcomes import Outcome
from sfumato.releases.plan import Plan
from sfumato.releases.plan_facts import draws_on_people, facts_of
from sfumato.service.context import Service
from sfumato.service.fresh import fresh_id
from sfumato.service.jobs import queue
from sfumato.service.planning.assembling import assembled
from sfumato.service.requesting import preapprovals
from sfumato.service.runner.checking import Approved, approved, job_row
from sfumato.service.settings import Settings
from sfumato.service.store import schema
from sfumato.service.store.database import Store

ARTEFACTS: Final = "artefacts"
_log = logging.getLogger("sfumato.service.runner")


def folder_of(settings: Settings, job_id: str) -> Path:
    """Where the releases of a job are written."""
    return settings.state / ARTEFACTS / job_id


def started(service: Service, runner: str, job_id: str, name: str | None, until: int) -> int | None:
    """Begin one release of a job in a process of its own, which is gone at `until` at the latest. Returns its number."""
    parent = os.getpid()
    child = os.fork()
    if child:
        return child
    try:  # from here on nothing returns: the rest of the runner belongs to the parent
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, max(0.001, until - time.time()))  # also when the runner is gone by then
        _first_to_go()
        if os.getppid() == parent:
            make(service, runner, job_id, name)
    except BaseException:
        pass
    finally:
        os._exit(0)


def make(service: Service, runner: str, job_id: str, name: str | None, *, over: Any = None) -> None:
    """Make one release of a job, or count the heads of its private roster (`name` is ``None``).

    `over` is called at its end; by default the process ends there.
    """
    try:
        found = approved(service, job_id)
        plan = _plan(service, found, job_id)
        only = _only(plan, name)
        if only is None:
            return
        _payable(service, plan, job_id, found)
        page = service.ledger.history(plan.dataset, limit=1)
        if not queue.begin_charging(service.store, runner, job_id, page[-1].id if page else 0):
            return
    except SfumatoError as error:  # made of public facts: nothing was charged and nothing opened
        _log.warning("job %s was not begun: %s", job_id, error)
        return
    whose: dict[str, Any] = {"by": found.by, "analyst": found.analyst, "purpose": found.purpose}
    with _unheard():
        outcomes = release(plan, only=only, notice=lambda _: None, ending=over or _gone, ledger=service.ledger, **whose)
    for outcome in outcomes:  # it comes back only with what was paid for before
        near = _within(service.settings, job_id, outcome, service.ledger.keys)
        keep(service.store, service.settings, job_id, found.dataset.id, near, entry=near.certificate["reservation"])


def keep(
    store: Store,
    settings: Settings,
    job_id: str,
    dataset_id: str,
    outcome: Outcome,
    *,
    entry: int,
) -> None:
    """Note what a job has released, once; it is told when the job is."""
    table = schema.artefacts
    home = outcome.folder.resolve().relative_to(settings.state.resolve())
    with store.write() as connection:
        known = table.select().where(table.c.job_id == job_id, table.c.name == outcome.name)
        if connection.execute(known).first() is not None:
            return
        row = {
            "id": fresh_id("release"),
            "job_id": job_id,
            "dataset_id": dataset_id,
            "name": outcome.name,
            "recipient": outcome.certificate.get("recipient"),
            "entry": entry,
            "folder": home.as_posix(),
            "digest": hashlib.sha256((outcome.folder / CERTIFICATE).read_bytes()).hexdigest(),
            "deliver_at": job_row(connection, job_id).deliver_at,
        }
        connection.execute(insert(table).values(row))


def _plan(service: Service, found: Approved, job_id: str) -> Plan:
    place = service.settings.sources.get(found.dataset.source)
    if place is None:
        raise PrivacyError("the configuration has no source of this name any more; nothing was spent")
    folder = folder_of(service.settings, job_id)
    return assembled(service, found.dataset, found.releases, location=place, folder=folder)


def _payable(service: Service, plan: Plan, job_id: str, found: Approved) -> None:
    """Refuse a plan that cannot be paid as a whole before its first release is charged; and what is not pre-approved."""
    with service.store.read() as connection:
        if job_row(connection, job_id).charging_at is not None:
            return
        seen = preview(plan, analyst=found.analyst, purpose=found.purpose)
        if found.purpose is not None:
            _preapproved(connection, found, seen)
    refused = seen.refused
    if refused is not None and refused.foreseen is not None:
        raise BudgetError(f"release {refused.request.name!r} would be refused: {refused.foreseen.refusal}")


def _preapproved(connection: Connection, found: Approved, seen: PlanPreview) -> None:
    """What an analyst asks is of a kind and at a price that an officer approved for this purpose, and still does."""
    assert found.purpose is not None
    (item,) = (priced for priced in seen if priced.request.name == found.releases[0]["name"])
    paid = item.foreseen is not None and item.foreseen.paid
    nano = 0 if paid else int(item.chosen.charge.total)
    preapprovals.check(connection, dataset_id=found.dataset.id, purpose=found.purpose, kind=item.request.kind, nano=nano)


def _only(plan: Plan, name: str | None) -> str | None:
    """The release to make now; ``None`` if there is none, or if it would count heads whose counting has failed."""
    counting = facts_of(plan, plan.roster(), SECURE)[1] is not None
    if name is not None:
        return None if counting and draws_on_people(plan, name) else name
    return next((r.name for r in plan.releases if r.epsilon is None), None) if counting else None


def _within(settings: Settings, job_id: str, outcome: Outcome, keys: Keys | None) -> Outcome:
    """A release that was paid for before, in a folder of the service: one made from the command line lies elsewhere."""
    if outcome.folder.resolve().is_relative_to(settings.state.resolve()):
        return outcome
    folder = folder_of(settings, job_id) / outcome.name
    made = write(folder, outcome.result, outcome.certificate, keys=keys)
    return replace(outcome, folder=folder, certificate=made)


def _gone() -> None:
    os._exit(0)


@contextlib.contextmanager
def _unheard() -> Any:
    """Whatever is written to the terminal while a table is open is written nowhere: it could quote the table."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    kept = [(number, os.dup(number)) for number in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number, _ in kept:
            os.dup2(nowhere, number)
        yield
    finally:
        for number, saved in kept:
            os.dup2(saved, number)
            os.close(saved)
        os.close(nowhere)
        logging.disable(before)


def _first_to_go() -> None:
    """When memory runs out, this process goes and not the runner, whose end would be seen."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
