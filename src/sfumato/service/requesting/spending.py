"""The ledger as custodians and officers read it: balances, and the history without what is not told yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato.ledger.allowance import OWN, whose
from sfumato.privacy.units import epsilon_text
from sfumato.service.http.paging import Asked, packed
from sfumato.service.http.problems import ProblemError
from sfumato.service.jobs.slots import account_of, job_of, untold
from sfumato.service.planning.datasets import dataset_for
from sfumato.service.store.database import now

if TYPE_CHECKING:
    from sfumato.ledger import Release
    from sfumato.service.context import Service
    from sfumato.service.http.access import Caller


def balance(service: Service, caller: Caller, dataset: str) -> dict[str, Any]:
    """Every cap and the people by tier."""
    with service.store.read() as connection:
        name = dataset_for(service, connection, caller, dataset).name
    found = service.ledger.balance(name, releases=0).to_dict()
    return {key: found[key] for key in ("dataset", "total", "together", "attributes", "recipients", "people")}


def history(service: Service, caller: Caller, dataset: str, asked: Asked) -> dict[str, Any]:
    """A page of releases, newest first."""
    with service.store.read() as connection:
        name = dataset_for(service, connection, caller, dataset).name
    page = service.ledger.history(name, limit=asked.limit, before=_number(asked))
    with service.store.read() as connection:
        hidden = untold(connection, page, now())
    items = [_told(release, hidden=release.id in hidden) for release in reversed(page)]
    return {"items": items, "older": None if page.older is None else packed([page.older])}


def _number(asked: Asked) -> int | None:
    if asked.before is None:
        return None
    if len(asked.before) != 1 or not isinstance(asked.before[0], int) or asked.before[0] < 0:
        raise ProblemError(422, "`before` is not a page of this list; send the `older` of the page before, or leave it out")
    return asked.before[0]


def _told(release: Release, *, hidden: bool) -> dict[str, Any]:
    """A release without its artefact, which is told elsewhere; one that is `hidden` has not ended yet."""
    own = next((whose(kind, name) for kind, name, _ in release.charges if kind in OWN), None)
    return {
        "id": release.id,
        "name": release.name,
        "kind": release.kind,
        "columns": list(release.columns),
        "where": release.where,
        "recipient": release.recipient,
        "by": account_of(release.by),
        "job": job_of(release.by),
        "analyst": None if own is None else own[0],
        "purpose": None if own is None else own[1],
        "state": "reserved" if hidden else release.state,
        "total": epsilon_text(release.total),
        "charges": [
            {"kind": kind, "name": name, "epsilon": epsilon_text(nano)}
            for kind, name, nano in release.charges
            if kind not in OWN
        ],
        "people": release.people,
        "reserved_at": release.reserved_at,
        "finished_at": None if hidden else release.finished_at,
        "epoch": release.epoch,
        "fingerprint": release.fingerprint,
    }
