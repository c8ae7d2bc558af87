"""Who may do what: one table. Every route names its action, and nothing else decides about access by role.

An action on what belongs to somebody else, or to nobody, is answered like one on what does not exist (404); that is decided
where the thing is looked up, after this table has let the role through.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

Role = Literal["person", "custodian", "officer", "analyst", "administrator"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
EVERYBODY: Final[frozenset[Role]] = frozenset(ROLES)


def _only(*roles: Role) -> frozenset[Role]:
    return frozenset(roles)


ACTIONS: Final[dict[str, frozenset[Role]]] = {
    # one's own account
    "session.read": EVERYBODY,
    "session.end": EVERYBODY,
    "password.change": EVERYBODY,
    "second_factor.manage": EVERYBODY,
    "tokens.manage": EVERYBODY,
    # the person whose budget it is
    "me.read": _only("person"),
    "me.link": _only("person"),
    "me.receipt": _only("person"),
    "me.grant": _only("person"),
    "me.withdraw": _only("person"),
    "me.policy": _only("person"),
    "me.statement": _only("person"),
    # what is released from, and whose it is
    "sources.read": _only("custodian"),
    "datasets.read": _only("custodian", "officer", "analyst"),
    "datasets.register": _only("custodian"),
    "people.bring": _only("custodian"),
    "people.invite": _only("custodian"),
    "people.epoch": _only("custodian"),
    "people.read": _only("custodian", "officer"),
    # plans
    "plans.read": _only("custodian", "officer"),
    "plans.write": _only("custodian"),
    "plans.preview": _only("custodian", "officer"),
    "plans.submit": _only("custodian"),
    "plans.run": _only("custodian"),
    "approvals.read": _only("officer"),
    "plans.decide": _only("officer"),
    "record.export": _only("officer"),
    # analysts
    "allowances.read": _only("officer", "analyst", "custodian"),
    "allowances.grant": _only("officer"),
    "preapprovals.read": _only("officer", "analyst", "custodian"),
    "preapprovals.write": _only("officer"),
    "requests.make": _only("analyst"),
    "requests.preview": _only("analyst"),
    # what comes of it
    "jobs.read": _only("custodian", "analyst"),
    "jobs.cancel": _only("custodian", "analyst"),
    "releases.read": _only("custodian", "officer", "analyst"),
    "ledger.read": _only("custodian", "officer"),
    "log.read": _only("person", "custodian", "officer", "analyst"),
    "keys.read": EVERYBODY,
    # the house
    "accounts.manage": _only("administrator"),
    "settings.read": _only("administrator"),
    "keys.rotate": _only("administrator"),
}
"""Action -> the roles that may do it."""

SECOND_FACTOR: Final[frozenset[str]] = frozenset({"plans.decide", "preapprovals.write", "allowances.grant", "keys.rotate"})
"""Actions that ask for a one-time code each time, which is good for one of them only."""


def may(role: Role, action: str) -> bool:
    """Whether a `role` may do an `action`.

    >>> may("officer", "plans.decide"), may("administrator", "plans.decide")
    (True, False)
    """
    return role in ACTIONS[action]
