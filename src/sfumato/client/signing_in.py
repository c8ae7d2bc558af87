"""`connect`, and the client that it gives."""

from __future__ import annotations

import ipaddress
import json
import ssl
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import httpx

from sfumato import __version__
from sfumato.client.connection import Connection, ServiceError, place
from sfumato.client.kinds_of_people import Approvals, Jobs, Me, Plans, Releases
from sfumato.client.table import RemoteTable
from sfumato.errors import InputError, SfumatoError

if TYPE_CHECKING:
    from sfumato.client.table import Progress


class Client:
    """A service, as one account sees it. Made by `connect`; use it in a ``with`` block, or `close` it.

    Parameters
    ----------
    connection : Connection
        What it sends by.
    account : mapping
        Who it is: `id`, `name` and `role`.
    progress : callable, optional
        Takes a line while a release is waited for.
    keys : sequence of mapping, optional
        Public keys that are known from elsewhere.

    Attributes
    ----------
    me : Me
        For the person whose budget it is.
    plans : Plans
        For the custodian.
    approvals : Approvals
        For the officer.
    jobs : Jobs
        What waits and runs.
    releases : Releases
        What was released.
    """

    def __init__(
        self,
        connection: Connection,
        account: dict[str, Any],
        progress: Progress | None = None,
        keys: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        self._connection, self._progress = connection, progress
        self.account = account
        self.jobs = Jobs(connection)
        self.releases = Releases(connection, keys)
        self.me = Me(connection)
        self.plans = Plans(connection, self.jobs, self.releases)
        self.approvals = Approvals(connection)

    def open(self, dataset: str, *, purpose: str) -> RemoteTable:
        """A dataset to preview and release from, on the server.

        Parameters
        ----------
        dataset : str
            Its name.
        purpose : str
            What the releases are for: one that the caller has an allowance for.

        Returns
        -------
        RemoteTable
        """
        return RemoteTable(self._connection, self.jobs, self.releases, dataset, purpose=purpose, progress=self._progress)

    def datasets(self) -> Iterator[dict[str, Any]]:
        """The datasets that there are."""
        return self._connection.pages("/datasets")

    def allowances(self, dataset: str | None = None) -> Iterator[dict[str, Any]]:
        """The caller's allowances, of one `dataset` or of all."""
        return self._connection.pages("/allowances", dataset=dataset)

    def checkpoint(self, dataset: str) -> dict[str, Any]:
        """The signed state of the log of a `dataset`, to keep: a log that was rewritten does not fit it any more."""
        return dict(self._connection.get(place("log", dataset, "checkpoint")))

    def make_token(self, name: str, actions: list[str], *, days: int = 30) -> str:
        """A token for scripts, shown once; it needs a session (name and password).

        Parameters
        ----------
        name : str
            What it is called in the list of tokens.
        actions : list of str
            What it may do: names of the table of roles, such as "requests.make".
        days : int
            How long it is good.
        """
        made = self._connection.post("/tokens", {"name": name, "scopes": actions, "days": days})
        return str(made["token"])

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.account['name']!r}, {self.account['role']}, {self._connection!r})"


def connect(
    url: str,
    *,
    token: str | None = None,
    name: str | None = None,
    password: str | None = None,
    ca: str | Path | None = None,
    keys: str | Path | None = None,
    progress: Progress | None = None,
    transport: httpx.BaseTransport | None = None,
) -> Client:
    """Connect to a service, by a token or by name and password.

    Parameters
    ----------
    url : str
        Its address; with https://, except for a service on this machine.
    token : str, optional
        A token that the account has made.
    name, password : str, optional
        Those of the account.
    ca : path, optional
        Certificates to trust instead of the system's, as a PEM file. Certificates are always checked.
    keys : path, optional
        The public keys of the service, as ``GET /v1/keys`` gives them, from the custodian: what is downloaded must be signed
        by one of them, or by one that follows. Without it the service is believed about its keys.
    progress : callable, optional
        Takes a line while a release is waited for; by default it is shown on a terminal.
    transport : httpx.BaseTransport, optional
        Another way to the service than a socket.

    Returns
    -------
    Client
    """
    _check_address(url)
    if (token is None) == (name is None) or (name is None) != (password is None):
        raise InputError("connect by token=..., or by name=... and password=...")
    known = None if keys is None else _keys_in(Path(keys))
    http = httpx.Client(
        base_url=url.rstrip("/"),
        headers={"User-Agent": f"sfumato/{__version__}", "Accept": "application/json"},
        timeout=httpx.Timeout(60, connect=10),
        verify=True if ca is None else ssl.create_default_context(cafile=str(ca)),
        transport=transport,
        trust_env=False,  # a .netrc or a proxy of the environment would see what is sent
    )
    connection = Connection(http)
    try:
        if token is not None:
            http.headers["Authorization"] = f"Bearer {token}"
        else:
            signed_in = connection.send("POST", "/sign-in", again=False, json={"name": name, "password": password}).json()
            http.headers["X-CSRF-Token"] = signed_in["csrf_token"]
        account = connection.get(place("session"))["account"]
    except (KeyError, TypeError, ValueError) as error:
        http.close()
        if isinstance(error, SfumatoError):
            raise
        raise ServiceError("this is not the answer of a Sfumato service; check the address") from None
    except BaseException:
        http.close()
        raise
    return Client(connection, account, progress or (_on_terminal if sys.stderr.isatty() else None), known)


def _check_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise InputError("this is not an address; it begins with https://") from None
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_here(host)):
        raise InputError("the address of a service begins with https://; only one on this machine may do without")


def _keys_in(path: Path) -> list[dict[str, Any]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["keys"]
        return [dict(key) for key in found if isinstance(key["ed25519"], str)]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{path} holds no public keys; save there what GET /v1/keys gives") from None


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _on_terminal(line: str) -> None:
    end = "\n" if line.endswith(".") else ""
    print(f"\r\x1b[K{line}", end=end, file=sys.stderr, flush=True)
