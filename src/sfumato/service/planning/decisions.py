"""Decisions: an officer approves or refuses a submitted plan, once, with a reason, and never their own.

Each decision is also a leaf of the dataset's log in the ledger, which is another database. The order is: the decision is
written but not yet kept, then the leaf is made durable, then the decision is kept. So no approval is ever there without its
leaf. Where the process ends between the two, the log holds a decision that was not kept: nothing acts on it, the plan is
still submitted, and the officer decides again, which makes another leaf. Of the leaves of a plan the last one counts.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import Connection, Row, Select, insert, select, update
from sqlalchemy.exc import IntegrityError

from sfumato.service.http.problems import ProblemError
from sfumato.service.planning.datasets import dataset_of
from sfumato.service.planning.digests import digest_of
from sfumato.service.planning.plans import SHOWN, plan_of, previewed
from sfumato.service.store import schema
from sfumato.service.store.database import now, record

if TYPE_CHECKING:
    from sfumato.service.context import Service
    from sfumato.service.http.access import Caller

Decision = Literal["approved", "refused"]
_plans, _decisions, _accounts = schema.plans, schema.decisions, schema.accounts


def queue() -> Select[Any]:
    """The plans that wait for a decision."""
    return SHOWN.where(_plans.c.state == "submitted")


def decision_of(connection: Connection, plan_id: str) -> Row[Any] | None:
    """What was decided about a plan, with the officer's name."""
    query = select(_decisions, _accounts.c.name.label("officer")).join(_accounts, _accounts.c.id == _decisions.c.officer_id)
    return connection.execute(query.where(_decisions.c.plan_id == plan_id)).first()


def for_officer(service: Service, caller: Caller, plan_id: str) -> dict[str, Any]:
    """What an officer must know: the plan, its preview as of now, and how it differs from the last one approved."""
    with service.store.read() as connection:
        plan = plan_of(connection, caller, plan_id)
        of = dataset_of(connection, plan.dataset)
        decided = decision_of(connection, plan.id)
        last = _last_approved(connection, plan)
    seen = (
        previewed(service, of, json.loads(plan.releases)) if plan.state == "submitted" else json.loads(plan.preview or "{}")
    )
    return {
        "plan": plan,
        "decision": decided,
        "preview": seen,
        "own": plan.author_id == caller.id,
        "differences": differences(last, plan),
    }


def decide(
    service: Service, caller: Caller, plan_id: str, *, decision: Decision, reason: str, digest: str
) -> tuple[Row[Any], Row[Any]]:
    """Approve or refuse a plan: the one whose digest the officer has read. Gives the plan and the decision.

    Raises
    ------
    ProblemError
        404 if there is no such plan, 403 for one's own, 409 if it was decided, is not submitted, or is not as it was read.
    """
    try:
        with service.store.write() as connection:
            plan = plan_of(connection, caller, plan_id)
            connection.execute(select(_plans.c.id).where(_plans.c.id == plan.id).with_for_update())
            plan = plan_of(connection, caller, plan_id)  # as it is under the lock
            _may_decide(connection, caller, plan, digest)
            row = {
                "plan_id": plan.id,
                "plan_digest": plan.digest,
                "officer_id": caller.id,
                "decision": decision,
                "reason": reason,
                "decided_at": now(),
            }
            connection.execute(insert(_decisions).values(row))
            connection.execute(update(_plans).where(_plans.c.id == plan.id).values(state=decision))
            record(connection, "plans.decide", account_id=caller.id, dataset_id=plan.dataset_id, target=plan.id)
            service.ledger.note(plan.dataset, "decision", _leaf(row))
            found = decision_of(connection, plan.id)
            assert found is not None
            return plan_of(connection, caller, plan_id), found
    except IntegrityError:  # the database's own four eyes: the account or the plan is no longer what it was
        raise ProblemError(409, "the database refuses this decision; read the plan again") from None


def _may_decide(connection: Connection, caller: Caller, plan: Row[Any], digest: str) -> None:
    if plan.author_id == caller.id:
        raise ProblemError(403, "this is your own plan; another officer decides on it")
    decided = decision_of(connection, plan.id)
    if decided is not None:
        raise ProblemError(409, f"this plan was {decided.decision} by {decided.officer}: {decided.reason}")
    if plan.state != "submitted":
        raise ProblemError(409, f"this plan is {plan.state}; only a submitted plan is decided on")
    if plan.digest != digest:
        raise ProblemError(409, f"this is not the plan that you read: its digest is {plan.digest}; read it again")
    if digest_of(connection, plan) != plan.digest:
        raise ProblemError(409, "this plan is not what its digest says: the database was changed; do not approve it")


def _leaf(row: dict[str, Any]) -> dict[str, Any]:
    """What the log keeps of a decision: identifiers, and a digest of the reason."""
    kept = {key: row[key] for key in ("plan_id", "plan_digest", "officer_id", "decision", "decided_at")}
    return kept | {"reason_sha256": hashlib.sha256(row["reason"].encode()).hexdigest()}


def _last_approved(connection: Connection, plan: Row[Any]) -> Row[Any] | None:
    """The plan of the same dataset that was approved last, other than this one."""
    query = (
        SHOWN.join(_decisions, _decisions.c.plan_id == _plans.c.id)
        .where(_plans.c.dataset_id == plan.dataset_id, _decisions.c.decision == "approved", _plans.c.id != plan.id)
        .order_by(_decisions.c.decided_at.desc(), _plans.c.id.desc())
        .limit(1)
    )
    return connection.execute(query).first()


def differences(last: Row[Any] | None, plan: Row[Any]) -> dict[str, Any] | None:
    """What is new, gone and changed in the releases, by name; ``None`` where nothing was approved before."""
    if last is None:
        return None
    before, after = ({str(r["name"]): r for r in json.loads(p.releases)} for p in (last, plan))
    changed = []
    for name in [n for n in after if n in before]:
        keys = sorted(set(before[name]) | set(after[name]))
        other = {k: {"was": before[name].get(k), "is": after[name].get(k)} for k in keys}
        other = {k: v for k, v in other.items() if v["was"] != v["is"]}
        if other:
            changed.append({"name": name, "keys": other})
    then = json.loads(last.preview) if last.preview else {}
    return {
        "plan": last.id,
        "name": last.name,
        "price": then.get("price"),
        "new": [n for n in after if n not in before],
        "gone": [n for n in before if n not in after],
        "changed": changed,
    }
