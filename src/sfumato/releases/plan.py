"""A plan: one TOML file that says which table, whose budgets, which ledger and which releases.

Reading a plan opens nothing private: not the table, not even to see whether it exists.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import InputError
from sfumato.offers import AUTO, Request
from sfumato.privacy.budgets import AttributeBudgets, RecipientBudgets
from sfumato.privacy.units import Epsilon, positive_nano
from sfumato.registry import nearest
from sfumato.releases.kinds import COMMON, kind_of

if TYPE_CHECKING:
    from sfumato.tables import Roster, Schema

_TOP = ("dataset", "people", "ledger", "output", "release")
_DATASET = ("name", "source", "table", "schema", "rows")
_PEOPLE = (
    *("source", "table", "person", "epsilon", "tier", "tiers", "column", "counts"),
    *("roster", "head_share", "menu"),
    *("living", "period", "per_period", "key", "independent"),
)
_LEDGER = ("location", "epsilon", "attributes", "recipients", "together")
_OUTPUT = ("folder",)


@dataclass(frozen=True)
class Plan:
    """A parsed plan. Paths are resolved against the plan's own folder.

    Attributes
    ----------
    dataset : str
        The name of the table in the ledger.
    source : str
        Where the private table lies: a file or a URL.
    table : str or None
        The table in a database.
    schema_path : Path
        The TOML file with the public schema.
    rows : int or None
        A public head count.
    people : mapping or None
        The keys of [people]: where each person's budget is written.
    ledger : str
        The ledger: a file or a URL.
    epsilon : Epsilon or None
        The most that all releases may cost together.
    attributes : AttributeBudgets or None
        What each attribute may lose.
    recipients : RecipientBudgets or None
        What each recipient may learn.
    folder : Path
        Where releases are written, each in a folder of its name.
    releases : tuple of Request
        What is asked, in the order of the plan.
    home : Path
        The folder of the plan.
    """

    dataset: str
    source: str
    table: str | None
    schema_path: Path
    rows: int | None
    people: Mapping[str, Any] | None
    ledger: str
    epsilon: Epsilon | None
    attributes: AttributeBudgets | None
    recipients: RecipientBudgets | None
    folder: Path
    releases: tuple[Request, ...]
    home: Path

    def schema(self) -> Schema:
        """The public schema."""
        from sfumato.tables import Schema

        return Schema.from_toml(self.schema_path)

    def roster(self) -> Roster | None:
        """The public roster of personal budgets, if the plan names one."""
        return None if self.people is None else _roster(self.people, self.home)


def read_plan(path: str | Path) -> Plan:
    """Read and check a plan file."""
    path = Path(path)
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no plan {path}; `sfumato demo` writes an example to start from") from None
    except OSError as error:
        raise InputError(f"cannot read the plan {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid TOML: {error}") from None
    return parse_plan(document, path.resolve().parent)


def parse_plan(document: Mapping[str, Any], home: Path) -> Plan:
    """Check a plan given as nested mappings."""
    check_keys(document, _TOP, "the plan")
    dataset = _section(document, "dataset", _DATASET)
    ledger = _section(document, "ledger", _LEDGER)
    output = _section(document, "output", _OUTPUT, needed=False)
    people = document.get("people")
    if people is not None:
        check_keys(_table(people, "[people]"), _PEOPLE, "[people]")
    source = _text(dataset, "source", "[dataset]")
    schema = _text(dataset, "schema", "[dataset]")
    stated = _flag(people or {}, "independent", "[people]") or False
    requests = document.get("release")
    if not isinstance(requests, list) or not requests:
        raise InputError("the plan releases nothing: add at least one [[release]] with a name and a kind")
    releases = tuple(
        parse_request(r, f"[[release]] number {i}", independent=stated) for i, r in enumerate(requests, start=1)
    )
    repeated = [r.name for i, r in enumerate(releases) if r.name in {q.name for q in releases[:i]}]
    if repeated:
        raise InputError(f"two releases are called {repeated[0]!r}; names are folder names and must differ")
    attributes = ledger.get("attributes")
    recipients = ledger.get("recipients")
    if "together" in ledger and not recipients:
        raise InputError("[ledger] together caps colluding recipients; name them under [ledger.recipients]")
    total = ledger.get("epsilon")
    if total is not None:
        positive_nano(total, "[ledger] epsilon")
    elif people is None:
        raise InputError("[ledger] needs `epsilon`, the most that all releases of this dataset may cost together")
    return Plan(
        dataset=_text(dataset, "name", "[dataset]"),
        source=_resolve(source, home),
        table=_text(dataset, "table", "[dataset]") if "table" in dataset else None,
        schema_path=Path(_resolve(schema, home)),
        rows=_rows(dataset),
        people=people,
        ledger=_resolve(_text(ledger, "location", "[ledger]"), home),
        epsilon=total,
        attributes=None if attributes is None else AttributeBudgets.of(_table(attributes, "[ledger.attributes]")),
        recipients=None
        if recipients is None
        else RecipientBudgets.of(_table(recipients, "[ledger.recipients]"), together=ledger.get("together")),
        folder=Path(_resolve(_text(output, "folder", "[output]") if "folder" in output else "releases", home)),
        releases=releases,
        home=home,
    )


def check_keys(given: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    """Refuse unknown keys with the nearest known one."""
    for key in given:
        if key not in known:
            raise InputError(f"{where} has an unknown key {key!r}; {nearest(str(key), known)}")


def parse_request(given: Any, place: str, *, independent: bool = False) -> Request:
    """Check one request; `place` is what to call it in messages until its name is known.

    `independent` is what holds for the whole plan where the request does not say it itself.
    """
    table = _table(given, place)
    kind = kind_of(_text(table, "kind", place), place)
    table = kind.spelt(table, place)
    name = _text(table, "name", place)
    if not name.strip() or name in (".", "..") or any(c in name for c in '/\\\0:*?"<>|'):
        raise InputError(f"{place} is called {name!r}, which cannot be a folder name; use letters, digits and dashes")
    place = f"release {name!r}"
    for key in ("mechanism", "recipient", "where"):
        if table.get(key) is not None:
            _text(table, key, place)
    epsilon, share = table.get("epsilon"), table.get("share")
    if epsilon is not None:
        positive_nano(epsilon, f"epsilon of {place}")
    if share is not None:
        if epsilon is not None:
            raise InputError(f"{place} gives both `epsilon` (one for all) and `share` (of everyone's own); keep one")
        share = _share(share, name)
    mechanism = table.get("mechanism") or AUTO
    stated = _flag(table, "independent", place)
    return Request(
        name=name,
        kind=kind.name,
        mechanism=mechanism,
        epsilon=epsilon,
        share=share,
        recipient=table.get("recipient"),
        where=table.get("where"),
        parameters=kind.check({k: v for k, v in table.items() if k not in COMMON}, mechanism, place),
        independent=independent if stated is None else stated,
    )


def _share(given: Any, name: str) -> Fraction:
    try:
        share = Fraction(str(given))
    except (ValueError, ZeroDivisionError):
        share = Fraction(0)
    if not 0 < share <= 1:
        raise InputError(f"share of release {name!r} must be a number above 0 and at most 1, got {given!r}")
    return share


def _roster(people: Mapping[str, Any], home: Path) -> Roster:
    from sfumato.tables import Roster

    given = {key: value for key, value in people.items() if key != "independent"}
    if not isinstance(given.get("living", False), bool):
        raise InputError(f"[people] living is true or false, got {given['living']!r}")
    for path in ("source", "key"):
        if isinstance(given.get(path), str):
            given[path] = _resolve(given[path], home)
    return Roster.from_mapping(given)


def _section(document: Mapping[str, Any], name: str, known: Sequence[str], *, needed: bool = True) -> Mapping[str, Any]:
    if name not in document:
        if needed:
            raise InputError(f"the plan has no [{name}] section; it needs {', '.join(known[:2])} at least")
        return {}
    table = _table(document[name], f"[{name}]")
    check_keys(table, known, f"[{name}]")
    return table


def _table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{where} must be a table of keys and values")
    return value


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value:
        raise InputError(f"{where} needs `{key}`, a text; {'it is missing' if value is None else f'got {value!r}'}")
    return value


def _flag(table: Mapping[str, Any], key: str, where: str) -> bool | None:
    value = table.get(key)
    if value is not None and not isinstance(value, bool):
        raise InputError(f"{where} has `{key}` = {value!r}; it is true or false")
    return value


def _rows(dataset: Mapping[str, Any]) -> int | None:
    rows = dataset.get("rows")
    if rows is None:
        return None
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        raise InputError(f"[dataset] rows is a public head count, a positive whole number; got {rows!r}")
    return rows


def _resolve(where: str, home: Path) -> str:
    """Paths are relative to the plan; so is duckdb:///file.db, while duckdb:////file.db is absolute."""
    if where.startswith("duckdb:///"):
        return f"duckdb:///{home / where.removeprefix('duckdb:///')}"
    return where if "://" in where else str(home / where)
