"""The configuration: one TOML file, with environment variables over it.

The list of sources is here and nowhere else: whoever uses the service names a source, and never says where it lies. What may
stand in the file, with its defaults, is listed in `sfumato.service.settings_keys`.

A secret is never written into the file: it comes as ``${NAME}`` from the environment, or from the file that the variable
``NAME_FILE`` names. Neither `repr` nor a message shows one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sfumato.errors import InputError
from sfumato.service.roles import EVERYBODY, ROLES


@dataclass(frozen=True)
class SourceSettings:
    """A private table that may be registered.

    Attributes
    ----------
    location : str
        A file or a URL, as a plan's ``[dataset] source``. Only the runner opens it.
    table, csv, engine : optional
        As in a plan's ``[dataset]``.
    longest : int, optional
        Seconds that a release from it may run, where that is another than for the other sources.
    """

    location: str = field(repr=False)
    table: Any = None
    csv: Mapping[str, Any] | None = None
    engine: Mapping[str, Any] | None = None
    longest: int | None = None


@dataclass(frozen=True)
class OidcSettings:
    """A provider of OpenID Connect with which people may sign in.

    Attributes
    ----------
    issuer : str
        Its address; ``/.well-known/openid-configuration`` lies below it.
    client_id : str
        What the service is called there.
    client_secret : str
        What it shows the provider.
    scopes : tuple of str
        What it asks for.
    roles : tuple of str
        The roles whose accounts may sign in with it.
    new_accounts : str or None
        The role of accounts that are made for people whom the service does not know; without it they need an invitation.
    """

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    scopes: tuple[str, ...] = ("openid",)
    roles: tuple[str, ...] = ("person", "custodian", "officer", "analyst")
    new_accounts: str | None = None

    def __post_init__(self) -> None:
        unknown = sorted({*self.roles, *([] if self.new_accounts is None else [self.new_accounts])} - EVERYBODY)
        if unknown:
            raise InputError(f"[oidc] names {', '.join(unknown)}, which is no role; there are {', '.join(ROLES)}")
        if self.new_accounts == "administrator" or self.new_accounts not in (None, *self.roles):
            raise InputError("[oidc] new_accounts must be one of its roles, and not the administrator's")


@dataclass(frozen=True)
class Limits:
    """How much of the service one caller may use.

    Attributes
    ----------
    body : int
        Bytes of a request's body.
    body_seconds : int
        Seconds in which a request must have arrived whole.
    requests : int
        Requests of one account, or of one address without an account, in a minute.
    sign_ins : int
        Tries to sign in from one address in a minute.
    failures : int
        Wrong passwords after which an account is locked for a while.
    lock : int
        Seconds for which it is locked.
    preview_seconds : int
        Seconds that a preview may take.
    preview_bytes : int
        Memory that a preview may take.
    """

    body: int = 1_048_576
    body_seconds: int = 20
    requests: int = 6000
    sign_ins: int = 10
    failures: int = 5
    lock: int = 900
    preview_seconds: int = 5
    preview_bytes: int = 1_073_741_824


@dataclass(frozen=True)
class Settings:
    """What a service is run with.

    Attributes
    ----------
    state : Path
        The folder for databases, keys and artefacts.
    database : str
        The service's tables; by default a SQLite file in the state folder.
    ledger : str
        The ledger; by default a SQLite file in the state folder.
    sources : mapping
        Name -> the private table.
    rosters : mapping
        Name -> a roster of people's budgets in a table of its own, as a plan's ``[people] source``.
    slot : int
        Seconds between the moments at which answers are told.
    longest : int
        Seconds that a release may run.
    secure_cookies : bool
        Whether cookies need HTTPS; off only for trying things out on one machine.
    base_url : str
        Where people reach the service.
    host : str
        The address that the web process listens on.
    port : int
        The port that it listens on.
    allowed_hosts : tuple of str
        Names by which the service may be asked for; that of `base_url` is always one.
    proxies : tuple of str
        Addresses of the proxies whose ``X-Forwarded-For`` is believed.
    session_idle : int
        Seconds after which a session that was not used ends.
    session_longest : int
        Seconds after which any session ends.
    password_time : int
        Passes of argon2id over its memory.
    password_memory : int
        Memory of argon2id in KiB.
    metrics_token : str or None
        With what the metrics may be read from another machine.
    oidc : OidcSettings or None
        Whom people may sign in with.
    limits : Limits
        How much one caller may use.
    keys : Path
        The folder of the keys; by default ``keys`` in the state folder.
    file : Path or None
        The file that all this was read from.
    """

    state: Path
    database: str = field(repr=False)
    ledger: str = field(repr=False)
    sources: Mapping[str, SourceSettings] = field(default_factory=dict)
    rosters: Mapping[str, SourceSettings] = field(default_factory=dict)
    slot: int = 60
    longest: int = 600
    secure_cookies: bool = True
    base_url: str = "http://127.0.0.1:8000"
    host: str = "127.0.0.1"
    port: int = 8000
    allowed_hosts: tuple[str, ...] = ("127.0.0.1", "localhost")
    proxies: tuple[str, ...] = ()
    session_idle: int = 1800
    session_longest: int = 43_200
    password_time: int = 3
    password_memory: int = 65_536
    metrics_token: str | None = field(default=None, repr=False)
    oidc: OidcSettings | None = None
    limits: Limits = Limits()
    keys: Path = Path("keys")
    file: Path | None = None

    @classmethod
    def in_folder(cls, state: Path, **given: Any) -> Settings:
        """The defaults for a state folder; `given` are fields of the class."""
        given.setdefault("database", str(state / "service.db"))
        given.setdefault("ledger", str(state / "ledger.db"))
        given.setdefault("keys", state / "keys")
        return cls(state, **given)

    def longest_of(self, source: str | None = None) -> int:
        """Seconds that a release from a `source` may run; without one, the most that any may."""
        if source is None:
            return max([self.longest, *(found.longest or 0 for found in self.sources.values())])
        found = self.sources.get(source)
        return self.longest if found is None or found.longest is None else found.longest

    @classmethod
    def read(cls, path: str | Path, environ: Mapping[str, str], *, places: bool = True) -> Settings:
        """The settings in a file, with the environment over them.

        Parameters
        ----------
        path : path
            The TOML file. Paths in it are relative to its folder.
        environ : mapping
            The environment, `os.environ`.
        places : bool
            Whether to read where the sources lie. The web process does not: it knows their names, and neither their
            places nor the secrets in them.

        Returns
        -------
        Settings

        Raises
        ------
        InputError
            With all mistakes at once.
        """
        from sfumato.service.settings_reading import read

        return cls.in_folder(**read(Path(path), environ, places=places))

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names by which the service may be asked for."""
        own = urlsplit(self.base_url).hostname
        return tuple(dict.fromkeys([*([own] if own else []), *self.allowed_hosts]))
