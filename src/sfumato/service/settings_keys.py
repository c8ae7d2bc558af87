"""What may stand in the configuration: one list, from which it is read, checked, written as an example and documented."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from sfumato.service.settings import Limits, Settings

LONGEST: Final = 7 * 86_400  # seconds
Kind = Literal["text", "folder", "place", "secret", "whole", "flag", "texts", "url"]


@dataclass(frozen=True)
class Key:
    """A key of a section.

    Attributes
    ----------
    name : str
        As it stands in the file.
    kind : Kind
        What its value is; a "place" is a file or the URL of a database.
    words : str
        What it means.
    example : Any
        The default, or what the example shows.
    least, most : int
        Between which a whole number must lie.
    """

    name: str
    kind: Kind
    words: str
    example: Any = None
    least: int = 1
    most: int = 2**31


def _whole(name: str, words: str, least: int, most: int, where: Any = Settings) -> Key:
    return Key(name, "whole", words, getattr(where, name) if where is Settings else getattr(Limits(), name), least, most)


SECTIONS: Final[dict[str, tuple[Key, ...]]] = {
    "service": (
        Key("state", "folder", "The folder for databases, keys and what was released.", "state"),
        Key(
            "database",
            "place",
            "The service's tables: a file, or postgresql://user:${PASSWORD}@host/name.",
            "state/service.db",
        ),
        Key("ledger", "place", "What was spent: a file, or postgresql://user:${PASSWORD}@host/name.", "state/ledger.db"),
        Key("base_url", "url", "Where people reach the service.", Settings.base_url),
        Key("host", "text", "The address to listen on; another than 127.0.0.1 needs https in base_url.", Settings.host),
        _whole("port", "The port to listen on.", 0, 65_535),
        Key(
            "allowed_hosts",
            "texts",
            "Names by which it may be asked for, beside that of base_url.",
            list(Settings.allowed_hosts),
        ),
        Key("proxies", "texts", "Addresses of proxies in front of it, whose X-Forwarded-For is believed.", []),
        Key("secure_cookies", "flag", "Whether cookies need HTTPS; must be true once base_url begins with https://.", True),
        _whole("slot", "Seconds between the moments at which answers are told.", 1, 86_400),
        _whole("longest", "Seconds that a release may run.", 1, LONGEST),
        _whole("session_idle", "Seconds after which a session that was not used ends.", 60, 7 * 86_400),
        _whole("session_longest", "Seconds after which any session ends.", 60, 30 * 86_400),
        _whole("password_time", "Passes of argon2id, which passwords are kept with.", 1, 100),
        _whole("password_memory", "Memory of argon2id, in KiB.", 8, 4 * 2**20),
        Key("metrics_token", "secret", "With what /metrics may be read from another machine.", "${METRICS_TOKEN}"),
    ),
    "limits": (
        _whole("body", "Bytes of a request's body.", 1024, 2**30, Limits),
        _whole("body_seconds", "Seconds in which a request must have arrived whole.", 1, 3600, Limits),
        _whole("requests", "Requests of one account in a minute.", 1, 10**6, Limits),
        _whole("sign_ins", "Tries to sign in from one address in a minute.", 1, 10**6, Limits),
        _whole("failures", "Wrong passwords after which an account is locked for a while.", 1, 1000, Limits),
        _whole("lock", "Seconds for which it is locked.", 1, 30 * 86_400, Limits),
        _whole("preview_seconds", "Seconds that a preview may take.", 1, 3600, Limits),
        _whole("preview_bytes", "Memory that a preview may take.", 2**26, 2**40, Limits),
    ),
    "keys": (Key("folder", "folder", "The folder of the keys; only the service's user may read it.", "state/keys"),),
    "oidc": (
        Key("issuer", "url", "The provider's address.", "https://accounts.example.org"),
        Key("client_id", "text", "What the service is called there.", "sfumato"),
        Key("client_secret", "secret", "What the service shows the provider.", "${OIDC_SECRET}"),
        Key("scopes", "texts", "What it asks for.", ["openid"]),
        Key("roles", "texts", "Roles whose accounts may sign in with it.", ["person", "custodian", "officer", "analyst"]),
        Key(
            "new_accounts",
            "text",
            "The role of people whom only the provider knows; without it they need an invitation.",
            "person",
        ),
    ),
}
"""Section -> its keys. The sections ``[sources.NAME]`` have those of `SOURCE`."""

SOURCE: Final[tuple[Key, ...]] = (
    Key("location", "place", "The private table: a file or a URL. Only the runner opens it.", "clinic.parquet"),
    Key("table", "text", "The table in a database, or the sheet of a spreadsheet."),
    Key("csv", "text", "How a text file is written, as in a plan."),
    Key("engine", "text", "What DuckDB may use, as in a plan."),
    Key("longest", "whole", "Seconds that a release from it may run, instead of the service's.", 20, 1, LONGEST),
)


def variable(section: str, key: Key) -> str:
    """The environment variable that goes before a key of the file.

    >>> variable("service", SECTIONS["service"][0])
    'SFUMATO_SERVICE_STATE'
    """
    return f"SFUMATO_{section}_{key.name}".upper()


def example() -> str:
    """A file with every key, those that may be left out behind a #.

    >>> "[service]" in example()
    True
    """
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# The configuration of `sfumato serve`. Keys behind a # have the value that is shown, or may be left out."
    yield "# Secrets never stand here: write ${NAME} for a variable of the environment, or set NAME_FILE to a file."
    yield "# SFUMATO_SERVICE_PORT and the like go before what is written here."
    for section, keys in SECTIONS.items():
        optional = section == "oidc"
        yield ""
        yield f"{'# ' if optional else ''}[{section}]"
        for key in keys:
            shown = key.name in ("state", "base_url", "secure_cookies")
            yield f"# {key.words}"
            value = "false" if key.name == "secure_cookies" else _value(key)  # the example's base_url is without HTTPS
            yield f"{'' if shown and not optional else '# '}{key.name} = {value}"
    yield ""
    yield "# The private tables that custodians may register, by name. Nobody can name a place through the service."
    yield "# [sources.clinic]"
    for key in SOURCE:
        yield f"# # {key.words}"
        yield f"# {key.name} = {_value(key)}"


def _value(key: Key) -> str:
    if key.example is None:
        return {"table": '"visits"', "csv": '{ delimiter = ";" }', "engine": '{ memory_limit = "2GB" }'}[key.name]
    if isinstance(key.example, bool):
        return str(key.example).lower()
    if isinstance(key.example, int):
        return str(key.example)
    if isinstance(key.example, list):
        return "[" + ", ".join(f'"{v}"' for v in key.example) + "]"
    return f'"{key.example}"'
