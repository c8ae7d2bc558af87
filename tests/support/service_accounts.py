"""People who really sign in: by HTTP, with passwords, codes and tokens, against a clock that the test turns."""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass, field
from typing import Any

from fastapi.testclient import TestClient
from sqlalchemy import update

from sfumato.service.accounts import joining, passwords, totp
from sfumato.service.accounts.recognising import cookie_name
from sfumato.service.context import Service
from sfumato.service.fresh import fresh_id
from sfumato.service.http.access import Caller
from sfumato.service.store import schema
from sfumato.service.store.inserting import insert_new

PASSWORD = "a long walk by the river"


class Clock:
    """Whole seconds, moved by hand."""

    def __init__(self) -> None:
        self.moment = int(time.time())

    def __call__(self) -> int:
        return self.moment


@dataclass
class World:
    """A service, its application and its clock."""

    app: Any
    service: Service
    clock: Clock
    known: dict[str, Caller] = field(default_factory=dict)

    def nobody(self, address: str = "192.0.2.1", **headers: str) -> TestClient:
        """Somebody who is not signed in."""
        return TestClient(self.app, raise_server_exceptions=False, client=(address, 1), headers=headers)

    def account(self, role: str, name: str | None = None, password: str = PASSWORD) -> Caller:
        """An account with a password; the same one for the same name."""
        if (name or role) in self.known:
            return self.known[name or role]
        caller = Caller(fresh_id("account"), name or role, role)  # type: ignore[arg-type]
        values = {"id": caller.id, "name": caller.name, "role": role, "state": "active", "created_at": self.clock.moment}
        with self.service.store.write() as connection:
            assert insert_new(connection, schema.accounts, **values, password=passwords.hashed(self.service, password))
        self.known[caller.name] = caller
        return caller

    def signed_in(self, name: str, password: str = PASSWORD, address: str = "192.0.2.1") -> TestClient:
        """A browser with a session, which sends its token against forged requests."""
        client = self.nobody(address)
        _, started = joining.sign_in(self.service, name, password, address)
        client.cookies.set(cookie_name(self.service), started.secret, domain="testserver.local")
        client.headers["X-CSRF-Token"] = started.csrf
        return client

    def with_token(self, client: TestClient, *scopes: str, days: int = 1) -> TestClient:
        """A program with a token."""
        reply = client.post("/v1/tokens", json={"name": "t", "scopes": scopes, "days": days})
        assert reply.status_code == 201, reply.text
        return self.nobody(Authorization=f"Bearer {reply.json()['token']}")

    def enrolled(self, client: TestClient) -> bytes:
        """The secret of a second factor that is confirmed."""
        reply = client.post("/v1/account/second-factor", json={"password": PASSWORD})
        assert reply.status_code == 201, reply.text
        text = reply.json()["secret"]
        secret = base64.b32decode(text + "=" * (-len(text) % 8))
        done = client.post("/v1/account/second-factor/confirm", json={"code": self.code(secret)})
        assert done.status_code == 204, done.text
        self.clock.moment += totp.STEP
        return secret

    def code(self, secret: bytes, steps: int = 0) -> str:
        """The code at this moment, or some steps away."""
        return totp.code_at(secret, totp.step_at(self.clock.moment) + steps)

    def set(self, **settings: Any) -> None:
        """Change settings of this service while it runs."""
        for name, value in settings.items():
            object.__setattr__(self.service.settings, name, value)

    def changed(self, account: Caller, **values: Any) -> None:
        """Change a row of accounts."""
        with self.service.store.write() as connection:
            connection.execute(update(schema.accounts).where(schema.accounts.c.id == account.id).values(**values))
