"""What goes in and out of the routes about accounts."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Row

from sfumato.service.accounts.keeping import NAME
from sfumato.service.accounts.passwords import LONGEST
from sfumato.service.accounts.sessions import Started
from sfumato.service.http.access import Caller
from sfumato.service.roles import Role

Name = Annotated[str, Field(max_length=80, pattern=NAME, description="letters, digits, space and ._@-")]
Secret = Annotated[str, Field(min_length=1, max_length=LONGEST)]
Code = Annotated[str, Field(min_length=1, max_length=64, description="as it was given, with or without dashes")]
OneTime = Annotated[str, Field(min_length=1, max_length=16, description="six digits")]


class Body(BaseModel):
    """A request's body: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=False)


class SignIn(Body):
    """Who signs in."""

    name: Annotated[str, Field(min_length=1, max_length=80)]
    password: Secret


class Join(Body):
    """An invitation, and what its owner chooses."""

    code: Code
    name: Name
    password: Secret


class SetPassword(Body):
    """A code of the administrator's, and the new password."""

    code: Code
    password: Secret


class ChangePassword(Body):
    """The password, and the new one."""

    password: Secret
    new_password: Secret


class Enrol(Body):
    """The password, for accounts that have one."""

    password: Secret | None = None


class Confirm(Body):
    """A code of the app."""

    code: OneTime


class NewToken(Body):
    """A token to be made."""

    name: Annotated[str, Field(min_length=1, max_length=80)]
    scopes: Annotated[list[Annotated[str, Field(max_length=40)]], Field(min_length=1, max_length=60)]
    days: Annotated[int, Field(ge=1, le=365)] = 30


class NewAccount(Body):
    """An account to be made."""

    name: Name
    role: Role


class StartOidc(Body):
    """Signing in with a provider; somebody new has an invitation and chooses a name."""

    code: Code | None = None
    name: Name | None = None


class AccountBrief(BaseModel):
    """Who somebody is."""

    id: str
    name: str
    role: Role

    @classmethod
    def of(cls, caller: Caller) -> AccountBrief:
        """Of a caller."""
        return cls(id=caller.id, name=caller.name, role=caller.role)


class SessionTold(BaseModel):
    """A session that has begun."""

    account: AccountBrief
    csrf_token: str
    expires_at: int

    @classmethod
    def of(cls, caller: Caller, started: Started) -> SessionTold:
        """Of a new session."""
        return cls(account=AccountBrief.of(caller), csrf_token=started.csrf, expires_at=started.expires_at)


class WhoIsCalling(BaseModel):
    """Who is calling and what they may do."""

    account: AccountBrief
    actions: list[str]
    csrf_token: str | None = Field(description="for the header X-CSRF-Token; null for a token")
    second_factor: bool


class Enrolled(BaseModel):
    """The secret of a second factor, shown once."""

    secret: str
    uri: str


class TokenTold(BaseModel):
    """A token, without its secret."""

    id: str
    name: str
    scopes: list[str]
    created_at: int
    expires_at: int
    revoked_at: int | None


class TokenMade(BaseModel):
    """A token's secret, shown once."""

    id: str
    token: str
    expires_at: int


class AccountTold(BaseModel):
    """An account as the administrator sees it."""

    id: str
    name: str
    role: Role
    state: str
    password: bool
    second_factor: bool
    created_at: int

    @classmethod
    def of(cls, row: Row[Any]) -> AccountTold:
        """Of a row."""
        return cls(
            id=row.id,
            name=row.name,
            role=row.role,
            state=row.state,
            password=row.password is not None,
            second_factor=bool(row.totp_confirmed),
            created_at=row.created_at,
        )


class CodeTold(BaseModel):
    """A code for a password, shown once."""

    account: AccountTold
    code: str
    expires_at: int


class Way(BaseModel):
    """Where the browser goes on."""

    url: str


class SettingsTold(BaseModel):
    """What of the settings is no secret."""

    version: str
    base_url: str
    slot: int
    longest: int
    secure_cookies: bool
    session_idle: int
    session_longest: int
    sources: list[str]
    oidc_issuer: str | None
    body_limit: int
    requests_per_minute: int
