"""The demo: the made-up clinic in a service, with five accounts, people who chose, and plans at two stages.

Everything is done by the functions that the interface calls, as the accounts that would call them. The accounts, with their
passwords and the officer's secret for one-time codes, are written beside the configuration: a second run finds them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sfumato.service.accounts import joining, keeping, second_factor, totp
from sfumato.service.context import Service
from sfumato.service.fresh import fresh_secret
from sfumato.service.http.access import Caller
from sfumato.service.people import bringing
from sfumato.service.planning import datasets, decisions, plans, previewing
from sfumato.service.requesting import granting, preapprovals
from sfumato.service.roles import Role
from sfumato.service.settings import Settings
from sfumato.service.store.database import now

if TYPE_CHECKING:
    from sqlalchemy import Row

DATASET: Final = "clinic"
PURPOSE: Final = "research"
CONFIG = """\
# The configuration of `sfumato serve --demo`: short slots, cheap passwords, no HTTPS. Not for real people.

[service]
state = "state"
secure_cookies = false
slot = 3
longest = 12
password_time = 1
password_memory = 8192

[sources.clinic]
location = "clinic/clinic.parquet"
"""
PEOPLE: Final = {
    "living": True,
    "person": "patient",
    "tiers": {"strict": "0.01", "standard": "0.2", "open": "1.0"},
    "period": "year",
    "per_period": {"strict": "0.005", "standard": "0.1", "open": "0.5"},
}
READY: Final[list[dict[str, Any]]] = [{"name": "over65", "kind": "count", "where": "age >= 65", "share": "0.1"}]
QUEUED: Final[list[dict[str, Any]]] = [
    {"name": "ages", "kind": "histogram", "columns": ["age"], "share": "0.1"},
    {"name": "stay", "kind": "mean", "column": "stay", "share": "0.05"},
]
_HERE = "127.0.0.1"
_ACCOUNTS = "accounts.json"


@dataclass(frozen=True)
class DemoAccount:
    """One of the five.

    Attributes
    ----------
    name, role, password : str
    codes : str or None
        The secret of their one-time codes, for an app.
    """

    name: str
    role: Role
    password: str
    codes: str | None = None


@dataclass(frozen=True)
class Demo:
    """What `demo_service` made.

    Attributes
    ----------
    config : Path
        The configuration.
    accounts : tuple of DemoAccount
    """

    config: Path
    accounts: tuple[DemoAccount, ...]


def demo_service(folder: Path, written: Callable[[Path], tuple[Sequence[tuple[str, str]], str]]) -> Demo:
    """Make the demo in a folder, or find it there.

    Parameters
    ----------
    folder : Path
        For the patients, the configuration and the state.
    written : callable
        Writes the clinic to a folder, and says who chose which tier, and the schema: the service opens no table.

    Returns
    -------
    Demo
    """
    config, kept = folder / "sfumato.toml", folder / _ACCOUNTS
    if kept.exists():
        return Demo(config, tuple(DemoAccount(**one) for one in json.loads(kept.read_text(encoding="utf-8"))))
    previewing.workers().warm()  # while the patients are written
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    people, schema = written(folder / "clinic")
    config.write_text(CONFIG, encoding="utf-8")
    service = Service.opened(Settings.read(config, {}, places=False))
    accounts = tuple(_furnished(service, people, schema))
    handle = os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump([asdict(account) for account in accounts], file, indent=1)
    return Demo(config, accounts)


def code_now(account: DemoAccount) -> str:
    """The one-time code of this moment, as an app would show it."""
    import base64

    assert account.codes is not None
    secret = base64.b32decode(account.codes + "=" * (-len(account.codes) % 8))
    return totp.code_at(secret, totp.step_at(now()))


def _furnished(service: Service, people: Sequence[tuple[str, str]], schema: str) -> Iterator[DemoAccount]:
    code = keeping.first_administrator(service, "root")
    administrator = _password()
    joining.set_password(service, code, administrator, _HERE)
    root, _ = joining.sign_in(service, "root", administrator, _HERE)
    custodian, first = _account(service, root, "cleo", "custodian")
    officer, second = _account(service, root, "otto", "officer")
    analyst, third = _account(service, root, "ana", "analyst")
    secret, _ = second_factor.enrol(service, officer)
    guarded = DemoAccount("otto", "officer", second, secret)
    # The code of the step before: the present one is left for whoever signs in now.
    second_factor.confirm(service, officer, _code_before(guarded))

    datasets.register(service, custodian, datasets.Wanted(DATASET, "clinic", schema, PEOPLE, {}))
    bringing.bring(service, custodian.id, DATASET, people)
    bringing.close_epoch(service, custodian.id, DATASET, None)
    person = next(name for name, tier in people if tier == "open")
    invited = bringing.invite(service, custodian.id, DATASET, [person], days=7)
    own = _password()
    joining.join(service, invited["items"][0]["code"], "pia", own, _HERE)

    ready = _submitted(service, custodian, "Patients over 65", READY)
    about: dict[str, Any] = {"reason": "a small price for a question of public health", "digest": ready.digest}
    decisions.decide(service, officer, ready.id, decision="approved", **about)
    _submitted(service, custodian, "Ages and stays", QUEUED)
    granting.grant(service, officer, DATASET, analyst=analyst.name, purpose=PURPOSE, epsilon="0.3", per_day="0.2")
    kinds = ["count", "mean", "histogram", "proportion"]
    preapprovals.give(service, officer, DATASET, preapprovals.Given(purpose=PURPOSE, kinds=kinds, most="0.1", ends_at=None))

    yield DemoAccount("pia", "person", own)
    yield DemoAccount("cleo", "custodian", first)
    yield guarded
    yield DemoAccount("ana", "analyst", third)
    yield DemoAccount("root", "administrator", administrator)


def _account(service: Service, root: Caller, name: str, role: Role) -> tuple[Caller, str]:
    password = _password()
    _, code = keeping.create(service, root, name, role)
    joining.set_password(service, code, password, _HERE)
    return joining.sign_in(service, name, password, _HERE)[0], password


def _submitted(service: Service, custodian: Caller, name: str, releases: list[dict[str, Any]]) -> Row[Any]:
    made = plans.create(service, custodian, dataset=DATASET, name=name, releases=releases)
    return plans.submit(service, custodian, made.id, digest=made.digest)


def _password() -> str:
    return fresh_secret()[:16]


def _code_before(account: DemoAccount) -> str:
    import base64

    assert account.codes is not None
    secret = base64.b32decode(account.codes + "=" * (-len(account.codes) % 8))
    return totp.code_at(secret, totp.step_at(now()) - 1)
