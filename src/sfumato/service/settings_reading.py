"""Reads the configuration: the file, the environment over it, and every mistake of both at once."""

from __future__ import annotations

import ipaddress
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from sfumato.errors import InputError, SfumatoError, hide, to_show
from sfumato.releases.mistakes import Mistakes, check_keys, flag_of, table_of, text_of
from sfumato.releases.plan import resolved
from sfumato.releases.variables import expanded
from sfumato.service.settings import Limits, OidcSettings, SourceSettings
from sfumato.service.settings_keys import SECTIONS, SOURCE, Key, variable
from sfumato.tables.csv_options import CsvOptions
from sfumato.tables.engine_settings import EngineSettings
from sfumato.tables.toml_text import read_toml

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,79}")
_PASSWORD: Final = re.compile(r"://[^/@]*:([^/@]+)@")
_VARIABLE: Final = re.compile(r"\$\{[^}]*\}")


class SettingsError(InputError):
    """A configuration that cannot be used; its text has a line for each mistake, and none is left out."""

    def __str__(self) -> str:
        return "\n".join(to_show(line) for line in str(self.args[0]).split("\n"))


class Environment(Mapping[str, str]):
    """The environment, in which ``NAME_FILE`` may name the file that holds the value of ``NAME``.

    Parameters
    ----------
    given : mapping
        The environment itself.
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given

    def __getitem__(self, name: str) -> str:
        if name in self._given:
            return self._given[name]
        place = self._given[f"{name}_FILE"]
        try:
            return Path(place).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError):
            raise InputError(f"the variable {name}_FILE names a file that cannot be read; see to its rights") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)


def read(path: Path, environ: Mapping[str, str], *, places: bool = True) -> dict[str, Any]:
    """The fields of `Settings` that a file and the environment give."""
    mistakes = Mistakes(gather=True)
    document = dict(read_toml(path, "the configuration"))
    check_keys(document, [*SECTIONS, "sources"], "the configuration", mistakes)
    home, known = path.resolve().parent, Environment(environ)
    sections = {name: _section(name, document, home, known, mistakes) for name in SECTIONS}
    found: dict[str, Any] = {k: v for k, v in sections["service"].items() if v is not None}
    found["file"] = path.resolve()
    if "state" not in found:
        mistakes.add(InputError(f"[service] needs `state`, the folder for databases and keys; write it, or set {_STATE}"))
    found["sources"] = _sources(document.get("sources", {}), home, known if places else None, mistakes)
    found["limits"] = Limits(**{k: v for k, v in sections["limits"].items() if v is not None})
    if (folder := sections["keys"].get("folder")) is not None:
        found["keys"] = folder
    oidc = {k: v for k, v in sections["oidc"].items() if v is not None}
    if oidc:
        lacking = [k.name for k in SECTIONS["oidc"][:3] if k.name not in oidc]
        if lacking:
            mistakes.add(InputError(f"[oidc] needs {', '.join(lacking)} too; write them, or leave the section out"))
        else:
            try:
                found["oidc"] = OidcSettings(**oidc)
            except InputError as error:
                mistakes.add(error)
    _together(found, mistakes)
    if mistakes.found:
        raise SettingsError(f"{path.name} cannot be used as it is:\n" + "\n".join(f"- {line}" for line in mistakes.found))
    return found


_STATE: Final = variable("service", SECTIONS["service"][0])


def _section(name: str, document: Mapping[str, Any], home: Path, environ: Environment, mistakes: Mistakes) -> dict[str, Any]:
    """The values of a section; the environment's go before the file's."""
    keys = SECTIONS[name]
    table = mistakes.note(lambda: table_of(document.get(name, {}), f"[{name}]")) or {}
    check_keys(table, [k.name for k in keys], f"[{name}]", mistakes)
    known = [v for k in keys for v in (variable(name, k), *([f"{variable(name, k)}_FILE"] if k.kind == "secret" else []))]
    prefix = f"SFUMATO_{name}_".upper()
    check_keys({v: 1 for v in environ if v.startswith(prefix)}, known, "the environment", mistakes)
    found = {}
    for key in keys:
        called = variable(name, key)
        where, given, outside = f"[{name}] {key.name}", table.get(key.name), False
        try:
            if called in environ or (key.kind == "secret" and f"{called}_FILE" in environ):
                where, given, outside = f"the variable {called}", _typed(key, environ[called], called), True
        except SfumatoError as error:
            mistakes.add(error)
            continue
        if given is not None:
            found[key.name] = mistakes.note(lambda k=key, g=given, w=where, o=outside: _value(k, g, w, home, environ, o))  # type: ignore[misc]
    return found


def _typed(key: Key, text: str, where: str) -> Any:
    """What a variable's text means for a key."""
    if key.kind == "whole":
        try:
            return int(text)
        except ValueError:
            raise InputError(f"the variable {where} must be a whole number") from None
    if key.kind == "flag":
        if text.lower() not in ("true", "false"):
            raise InputError(f"the variable {where} must be true or false")
        return text.lower() == "true"
    return [part.strip() for part in text.split(",") if part.strip()] if key.kind == "texts" else text


def _value(key: Key, given: Any, where: str, home: Path, environ: Environment, outside: bool) -> Any:
    """A value as `Settings` keeps it. One from `outside`, the environment, may be a secret itself."""
    table = {key.name: given}
    match key.kind:
        case "whole":
            if not isinstance(given, int) or isinstance(given, bool) or not key.least <= given <= key.most:
                raise InputError(f"{where} must be a whole number from {key.least} to {key.most}; got {given!r}")
            return given
        case "flag":
            return flag_of(table, key.name, where)
        case "texts":
            if not isinstance(given, list) or not all(isinstance(v, str) and v.strip() for v in given):
                raise InputError(f"{where} must be a list of texts")
            return tuple(given)
        case "secret":
            return _secret(text_of(table, key.name, where), where, environ, outside)
        case "place":
            return _place(text_of(table, key.name, where), where, home, environ, outside)
        case "folder":
            return home / text_of(table, key.name, where)
        case "url":
            text = text_of(table, key.name, where)
            return _url(text, where)
        case _:
            return text_of(table, key.name, where)


def _secret(text: str, where: str, environ: Environment, outside: bool) -> str:
    if outside:
        hide(text, "...")
        return text
    if not _VARIABLE.fullmatch(text):
        raise InputError(f"{where} is a secret and must not stand in the file; write ${{NAME}} and set NAME, or NAME_FILE")
    return expanded(text, where, environ)


def _place(text: str, where: str, home: Path, environ: Environment, outside: bool) -> str:
    """A file, relative to the configuration, or a URL, whose password is not written out in a file."""
    if outside:
        if found := _PASSWORD.search(text):
            hide(found[1], "...")
        return resolved(text, home)
    if (found := _PASSWORD.search(text)) and _VARIABLE.sub("", found[1]):
        raise InputError(f"{where} has a password written out; put ${{NAME}} in its place and set NAME, or NAME_FILE")
    return resolved(expanded(text, where, environ), home)


def _url(text: str, where: str) -> str:
    try:
        parts = urlsplit(text)
        whole = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        whole = False
    if not whole or parts.query or parts.fragment or parts.username:
        raise InputError(f"{where} must be an address such as https://sfumato.example.org")
    return text.rstrip("/")


def _sources(given: Any, home: Path, environ: Environment | None, mistakes: Mistakes) -> dict[str, SourceSettings]:
    found = {}
    for name, table in (mistakes.note(lambda: table_of(given, "[sources]")) or {}).items():
        where = f"[sources.{name}]"
        if not _NAME.fullmatch(name):
            mistakes.add(InputError(f"{where} must be named with letters, digits, spaces, dots, - and _, 80 at most"))
            continue
        made = mistakes.note(lambda t=table, w=where: _source(table_of(t, w), w, home, environ, mistakes))  # type: ignore[misc]
        if made is not None:
            found[name] = made
    return found


def _source(
    table: Mapping[str, Any], where: str, home: Path, environ: Environment | None, mistakes: Mistakes
) -> SourceSettings:
    check_keys(table, [k.name for k in SOURCE], where, mistakes)
    location = text_of(table, "location", where)
    longest = _longest(table, where)
    if environ is None:
        return SourceSettings("", longest=longest)
    location = _place(location, f"{where} location", home, environ, False)
    named = table.get("table")
    if named is not None and not (
        isinstance(named, str) or (isinstance(named, list) and named and all(isinstance(n, str) for n in named))
    ):
        raise InputError(f"{where} table must be a text, or a list of texts")
    CsvOptions.of(table.get("csv"), f"{where} csv")
    EngineSettings.of(table.get("engine"), f"{where} engine")
    return SourceSettings(
        location, tuple(named) if isinstance(named, list) else named, table.get("csv"), table.get("engine"), longest
    )


def _longest(table: Mapping[str, Any], where: str) -> int | None:
    key = next(key for key in SOURCE if key.name == "longest")
    found = table.get(key.name)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int) or not key.least <= found <= key.most:
        raise InputError(f"{where} longest must be a whole number of seconds between {key.least} and {key.most}")
    return found


def _together(found: Mapping[str, Any], mistakes: Mistakes) -> None:
    """What no key shows by itself."""
    state = found.get("state")
    if state is None:
        return
    database = found.get("database") or str(state / "service.db")
    ledger = found.get("ledger") or str(state / "ledger.db")
    if "://" not in database and database == ledger:
        mistakes.add(InputError("[service] database and ledger are the same file; give each its own"))
    for name, source in found["sources"].items():
        if source.location in (database, ledger):
            mistakes.add(InputError(f"[sources.{name}] is the service's own database; a source is a private table"))
    if found.get("session_idle", 0) > found.get("session_longest", 2**31):
        mistakes.add(InputError("[service] session_idle is longer than session_longest; lower it"))
    for proxy in found.get("proxies", ()):
        mistakes.note(lambda p=proxy: _network(p))  # type: ignore[misc]
    mistakes.note(lambda: check_key_folder(found.get("keys") or state / "keys"))


def _network(text: str) -> None:
    """Refuse a proxy that is not an address: "*" would believe everybody about where they come from."""
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise InputError(f"[service] proxies has {text!r}; each is an address such as 10.0.0.5 or 10.0.0.0/24") from None


def check_key_folder(folder: Path) -> None:
    """Refuse keys that others of this machine may read or exchange. The group may read: the runner is another user.

    Parameters
    ----------
    folder : Path
        Where the keys lie; it may be absent.
    """
    for path in [folder, *(folder.rglob("*") if folder.is_dir() else ())]:
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            continue
        if stat.S_IMODE(mode) & 0o027 and not stat.S_ISLNK(mode):
            raise InputError(
                f"the key folder {str(folder)!r} can be read by everybody on this machine, or changed by its group: "
                "chmod -R u=rwX,g-w,o= it"
            )
