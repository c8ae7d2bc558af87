"""Plans: written by a custodian, previewed, submitted, withdrawn.

A draft is its author's alone. From the moment it is submitted it never changes, officers and the dataset's custodian may
read it, and only its author may withdraw it. What is another's, to read or to change, looks like what does not exist.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Row, Select, and_, insert, or_, select, update

from sfumato.service.fresh import fresh_id
from sfumato.service.http.problems import ProblemError, missing
from sfumato.service.planning.datasets import dataset_for, dataset_of, row_of
from sfumato.service.planning.digests import digest_of, plan_digest
from sfumato.service.planning.given import canonical
from sfumato.service.planning.previewing import workers
from sfumato.service.planning.trying import exported
from sfumato.service.store import schema
from sfumato.service.store.database import now, record

if TYPE_CHECKING:
    from sfumato.service.context import Service
    from sfumato.service.http.access import Caller

STATES: Final = ("draft", "submitted", "approved", "refused", "withdrawn", "run")
_ID = re.compile(r"plan_[A-Za-z0-9_-]{1,80}")
_plans, _datasets, _accounts = schema.plans, schema.datasets, schema.accounts

SHOWN = select(_plans, _datasets.c.name.label("dataset"), _accounts.c.name.label("author")).select_from(
    _plans.join(_datasets, _datasets.c.id == _plans.c.dataset_id).join(_accounts, _accounts.c.id == _plans.c.author_id)
)
"""Plans with the names of their dataset and author."""


def visible(caller: Caller) -> Select[Any]:
    """The plans that somebody may read: their own, and what was submitted to officers or about their dataset."""
    submitted = _plans.c.state != "draft"
    if caller.role != "officer":
        submitted = and_(submitted, _datasets.c.created_by == caller.id)
    return SHOWN.where(or_(submitted, _plans.c.author_id == caller.id))


def plan_of(connection: Connection, caller: Caller, plan_id: str) -> Row[Any]:
    """A plan that somebody may read; a problem (404) if there is none."""
    found = connection.execute(visible(caller).where(_plans.c.id == plan_id)).first() if _ID.fullmatch(plan_id) else None
    if found is None:
        raise missing()
    return found


def _own(connection: Connection, caller: Caller, plan_id: str) -> Row[Any]:
    """A plan that somebody may change, locked."""
    found = None
    if _ID.fullmatch(plan_id):
        mine = select(_plans).where(_plans.c.id == plan_id, _plans.c.author_id == caller.id).with_for_update()
        found = connection.execute(mine).first()
    if found is None:
        raise missing()
    return found


def releases_kept(service: Service, dataset: Row[Any], releases: Sequence[Any]) -> list[dict[str, Any]]:
    """Releases as they are kept; all mistakes that can be told without a price are one problem."""
    return _without_mistakes(workers().do(service.settings, "releases", row=row_of(dataset), given=list(releases)))


def releases_imported(service: Service, dataset: Row[Any], text: str) -> list[dict[str, Any]]:
    """The releases of a plan file."""
    return _without_mistakes(workers().do(service.settings, "toml", row=row_of(dataset), text=text))


def _without_mistakes(found: dict[str, Any]) -> list[dict[str, Any]]:
    if found["mistakes"]:
        raise ProblemError(422, "; ".join(found["mistakes"]), mistakes=found["mistakes"])
    kept: list[dict[str, Any]] = found["releases"]
    return kept


def create(service: Service, caller: Caller, *, dataset: str, name: str, releases: Sequence[Any] | str) -> Row[Any]:
    """A new draft, of releases or of the text of a plan file."""
    with service.store.read() as connection:
        of = dataset_for(service, connection, caller, dataset)
    imported = isinstance(releases, str)
    kept = releases_imported(service, of, releases) if isinstance(releases, str) else releases_kept(service, of, releases)
    row = {
        "id": fresh_id("plan"),
        "dataset_id": of.id,
        "name": name,
        "releases": canonical(kept),
        "digest": plan_digest(of, kept),
        "author_id": caller.id,
        "state": "draft",
        "created_at": now(),
    }
    with service.store.write() as connection:
        connection.execute(insert(_plans).values(row))
        action = "plans.import" if imported else "plans.write"
        record(connection, action, account_id=caller.id, dataset_id=of.id, target=str(row["id"]))
        return plan_of(connection, caller, str(row["id"]))


def change(service: Service, caller: Caller, plan_id: str, *, name: str, releases: Sequence[Any], digest: str) -> Row[Any]:
    """Another draft in place of the one that the author has read, which `digest` names."""
    with service.store.read() as connection:
        of = dataset_of(connection, plan_of(connection, caller, plan_id).dataset)
    kept = releases_kept(service, of, releases)
    with service.store.write() as connection:
        plan = _own(connection, caller, plan_id)
        _is_draft(plan)
        _is_same(plan, digest)
        values = {"name": name, "releases": canonical(kept), "digest": plan_digest(of, kept)}
        connection.execute(update(_plans).where(_plans.c.id == plan.id).values(values))
        record(connection, "plans.write", account_id=caller.id, dataset_id=of.id, target=plan.id)
        return plan_of(connection, caller, plan_id)


def submit(service: Service, caller: Caller, plan_id: str, *, digest: str) -> Row[Any]:
    """Hand a draft to the officers, with what it costs and promises now; one that the ledger would refuse is not taken."""
    with service.store.read() as connection:
        plan = _own(connection, caller, plan_id)
        of = dataset_of(connection, plan_of(connection, caller, plan_id).dataset)
    _is_draft(plan)
    _is_same(plan, digest)
    seen = previewed(service, of, json.loads(plan.releases))
    if not seen["fits"]:
        refused = next(r for r in seen["releases"] if r["refusal"] is not None)
        raise ProblemError(409, f"release {refused['name']!r} would be refused: {refused['refusal']}")
    with service.store.write() as connection:
        plan = _own(connection, caller, plan_id)
        _is_draft(plan)
        _is_same(plan, digest)
        if digest_of(connection, plan) != plan.digest:
            raise ProblemError(409, "this plan is not what its digest says; write it anew")
        values = {"state": "submitted", "submitted_at": now(), "preview": canonical(_kept(seen))}
        connection.execute(update(_plans).where(_plans.c.id == plan.id).values(values))
        record(connection, "plans.submit", account_id=caller.id, dataset_id=of.id, target=plan.id)
        return plan_of(connection, caller, plan_id)


def _kept(seen: dict[str, Any]) -> dict[str, Any]:
    """A preview without the mechanisms that were not chosen: what is kept of it is read with every list of plans."""
    return seen | {"releases": [{k: v for k, v in release.items() if k != "offers"} for release in seen["releases"]]}


def withdraw(service: Service, caller: Caller, plan_id: str) -> Row[Any]:
    """Take back a draft, or a submitted plan that nobody has decided on; it stays in the record."""
    with service.store.write() as connection:
        plan = _own(connection, caller, plan_id)
        if plan.state == "withdrawn":
            return plan_of(connection, caller, plan_id)
        if plan.state not in ("draft", "submitted"):
            raise ProblemError(409, f"this plan is {plan.state}; only what nobody has decided on can be withdrawn")
        connection.execute(update(_plans).where(_plans.c.id == plan.id).values(state="withdrawn"))
        record(connection, "plans.withdraw", account_id=caller.id, dataset_id=plan.dataset_id, target=plan.id)
        return plan_of(connection, caller, plan_id)


def previewed(
    service: Service,
    dataset: Row[Any],
    releases: Sequence[Any],
    *,
    analyst: str | None = None,
    purpose: str | None = None,
) -> dict[str, Any]:
    """The preview of releases from a dataset, made by a worker.

    Parameters
    ----------
    service : Service
    dataset : row
        The dataset's line.
    releases : sequence of mappings
        The tables of a plan's ``[[release]]``.
    analyst, purpose : str, optional
        Whose allowance would be charged, and for what.
    """
    source = service.settings.sources.get(dataset.source)
    scheme, url, _ = ("", "", "") if source is None else source.location.partition("://")
    given: dict[str, Any] = {"given": list(releases), "analyst": analyst, "purpose": purpose}
    given["engine"] = scheme + url if url else None  # which engine it is may be told, where it lies may not
    found: dict[str, Any] = workers().do(service.settings, "preview", row=row_of(dataset), **given)
    return found


def plan_file(service: Service, caller: Caller, plan_id: str) -> str:
    """A plan as the text of a plan file."""
    with service.store.read() as connection:
        plan = plan_of(connection, caller, plan_id)
        of = dataset_of(connection, plan.dataset)
    return exported(row_of(of), json.loads(plan.releases))


def _is_draft(plan: Row[Any]) -> None:
    if plan.state != "draft":
        raise ProblemError(409, f"this plan is {plan.state} and does not change any more; make a new one")


def _is_same(plan: Row[Any], digest: str) -> None:
    if plan.digest != digest:
        raise ProblemError(409, f"this plan was changed meanwhile: its digest is {plan.digest} now; read it again")
