"""A plan: one TOML file that says which table, whose budgets, which ledger and which releases.

Reading a plan opens nothing private: not the table, not even to see whether it exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import InputError
from sfumato.offers import Request
from sfumato.privacy.budgets import AttributeBudgets, RecipientBudgets
from sfumato.privacy.units import Epsilon, positive_nano
from sfumato.releases.mistakes import Mistakes, at, check_keys, flag_of, table_of, text_of
from sfumato.releases.plan_request import check_texts, parse_request, plain_text, same_names
from sfumato.releases.variables import expanded, refuse_elsewhere
from sfumato.tables.blanks import refuse_blanks
from sfumato.tables.csv_options import CsvOptions
from sfumato.tables.engine_settings import EngineSettings
from sfumato.tables.toml_text import read_toml

if TYPE_CHECKING:
    from sfumato.tables import Dataset, Roster, Schema
    from sfumato.tables.sources import TableName

__all__ = ["Plan", "parse_plan", "parse_request", "read_plan", "sections"]

_TOP = ("dataset", "people", "ledger", "output", "release")
_DATASET = ("name", "source", "table", "schema", "rows", "csv", "engine")
_PEOPLE = (
    *("source", "table", "person", "epsilon", "tier", "tiers", "column", "counts"),
    *("roster", "head_share", "menu"),
    *("living", "period", "per_period", "key", "independent", "csv"),
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
    table : str, tuple of str or None
        The table in a database, or the sheet of a spreadsheet.
    csv : CsvOptions or None
        How a text file is written.
    engine : EngineSettings or None
        What DuckDB in this process may use.
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
    source: str = field(repr=False)  # with the secrets that came from the environment
    table: TableName | None
    csv: CsvOptions | None
    engine: EngineSettings | None
    schema_path: Path
    rows: int | None
    people: Mapping[str, Any] | None
    ledger: str = field(repr=False)
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
        return None if self.people is None else roster_of(self.people, self.home)

    def described(self, schema: Schema, roster: Roster | None) -> Dataset:
        """The private table as it is released from, with its `schema` and `roster`; it is not opened yet."""
        from sfumato.tables import open as describe

        table = describe(self.source, schema=schema, table=self.table, budgets=roster, csv=self.csv, engine=self.engine)
        return replace(table, roster_only=True)


def read_plan(path: str | Path) -> Plan:
    """Read and check a plan file."""
    path = Path(path)
    return parse_plan(read_document(path), path.resolve().parent)


def read_document(path: Path) -> dict[str, Any]:
    """The nested mappings of a plan file."""
    if not path.exists():
        raise InputError(f"there is no plan {path}; `sfumato init` and `sfumato demo` write one to start from")
    return read_toml(path, "the plan")


def parse_plan(document: Mapping[str, Any], home: Path) -> Plan:
    """Check a plan given as nested mappings; the first mistake is raised."""
    refuse_blanks(document)
    return Plan(**sections(document, home, Mistakes()))


def sections(document: Mapping[str, Any], home: Path, mistakes: Mistakes) -> dict[str, Any]:
    """The parts of a plan that could be read, by the names that `Plan` has for them; the rest is in `mistakes`."""
    check_texts(document, "", mistakes)
    check_keys(document, _TOP, "the plan", mistakes)
    found: dict[str, Any] = {"home": home, "people": None}
    note = mistakes.note
    if "people" in document:
        found["people"] = note(lambda: table_of(document["people"], "[people]"))
        check_keys(found["people"] or {}, _PEOPLE, "[people]", mistakes)
    people = found["people"] or {}
    _dataset(note(lambda: _section(document, "dataset", _DATASET, mistakes)), found, home, mistakes)
    _ledger(note(lambda: _section(document, "ledger", _LEDGER, mistakes)), found, home, "people" in document, mistakes)
    output = note(lambda: _section(document, "output", _OUTPUT, mistakes, needed=False)) or {}
    found["folder"] = note(lambda: _folder(output, home))
    stated = note(lambda: flag_of(people, "independent", "[people]")) or False
    found["releases"] = _releases(document.get("release"), stated, home, mistakes)
    if "source" in found and "ledger" in found and note(lambda: _apart(found, home)) is None:
        del found["ledger"]
    return found


def _dataset(given: Mapping[str, Any] | None, found: dict[str, Any], home: Path, mistakes: Mistakes) -> None:
    if given is None:
        return
    reads = {
        "dataset": lambda: plain_text(text_of(given, "name", "[dataset]"), "[dataset] `name`"),
        "source": lambda: resolved(expanded(text_of(given, "source", "[dataset]"), "[dataset] source"), home),
        "table": lambda: _table_name(given),
        "csv": lambda: CsvOptions.of(given.get("csv"), "[dataset.csv]"),
        "engine": lambda: _engine(given.get("engine"), home),
        "schema_path": lambda: Path(resolved(text_of(given, "schema", "[dataset]"), home)),
        "rows": lambda: _rows(given),
    }
    mistakes.note(lambda: refuse_elsewhere(given, ("name", "schema", "table"), "[dataset]"))
    _read(reads, found, mistakes)
    if {"source", "table", "csv", "engine"} <= set(found):
        from sfumato.tables.sources import check_source

        mistakes.note(lambda: check_source(found["source"], found["table"], found["csv"], found["engine"]))


def _table_name(given: Mapping[str, Any]) -> TableName | None:
    """One name, or a list of them: ``["clinic", "visits"]`` for a schema and its table."""
    if isinstance(given.get("table"), list) and all(isinstance(part, str) for part in given["table"]):
        return tuple(given["table"])
    return text_of(given, "table", "[dataset]") if "table" in given else None


def _engine(given: Any, home: Path) -> EngineSettings | None:
    """The settings of [dataset.engine]; the spill folder is relative to the plan."""
    if given is not None:
        refuse_elsewhere(table_of(given, "[dataset.engine]"), ("spill",), "[dataset.engine]")
    found = EngineSettings.of(given, "[dataset.engine]")
    return found if found is None or found.spill is None else replace(found, spill=home / found.spill)


def _ledger(given: Mapping[str, Any] | None, found: dict[str, Any], home: Path, personal: bool, mistakes: Mistakes) -> None:
    if given is None:
        return
    reads = {
        "ledger": lambda: resolved(expanded(text_of(given, "location", "[ledger]"), "[ledger] location"), home),
        "epsilon": lambda: _total(given, personal),
        "attributes": lambda: _caps(given, "attributes"),
        "recipients": lambda: _caps(given, "recipients"),
    }
    _read(reads, found, mistakes)


def _read(reads: Mapping[str, Any], found: dict[str, Any], mistakes: Mistakes) -> None:
    for name, read in reads.items():
        before = mistakes.times
        value = mistakes.note(read)
        if mistakes.times == before:
            found[name] = value


def _total(ledger: Mapping[str, Any], personal: bool) -> Epsilon | None:
    total: Epsilon | None = ledger.get("epsilon")
    if total is not None:
        positive_nano(total, "[ledger] epsilon")
    elif not personal:
        raise InputError("[ledger] needs `epsilon`, the most that all releases of this dataset may cost together")
    return total


def _caps(ledger: Mapping[str, Any], key: str) -> AttributeBudgets | RecipientBudgets | None:
    if "together" in ledger and not ledger.get("recipients"):
        raise InputError("[ledger] together caps colluding recipients; name them under [ledger.recipients]")
    if key not in ledger:
        return None
    given = table_of(ledger[key], f"[ledger.{key}]")
    if key == "attributes":
        return AttributeBudgets.of(given)
    return RecipientBudgets.of(given, together=ledger.get("together"))


def _releases(given: Any, stated: bool, home: Path, mistakes: Mistakes) -> tuple[Request, ...]:
    if not isinstance(given, list) or not given:
        mistakes.add(InputError("the plan releases nothing: add at least one [[release]] with a name and a kind"))
        return ()
    read = [
        parse_request(r, f"[[release]] number {i}", independent=stated, home=home, mistakes=mistakes)
        for i, r in enumerate(given, start=1)
    ]
    releases = tuple(r for r in read if r is not None)
    mistakes.note(lambda: same_names([r.name for r in releases]))
    return releases


def _apart(found: Mapping[str, Any], home: Path) -> bool:
    """Refuse a ledger that would be written over the table, the schema, the roster or into the folder of releases."""
    people = found["people"] or {}
    roster = people.get("source") if isinstance(people.get("source"), str) else None
    others = {
        "[dataset] source": found["source"],
        "[dataset] schema": str(found.get("schema_path") or ""),
        "[people] source": "" if roster is None else resolved(roster, home),
        "[output] folder": str(found.get("folder") or ""),
    }
    ledger = _file(found["ledger"])
    for what, place in others.items():
        if place and _file(place) == ledger:
            raise InputError(f"[ledger] location and {what} name the same place; give the ledger a file of its own")
    return True


def _file(place: str) -> Path:
    return Path(place.removeprefix("sqlite:///").removeprefix("duckdb:///")).resolve()


def roster_of(people: Mapping[str, Any], home: Path) -> Roster:
    """The roster that the keys of [people] describe."""
    from sfumato.tables import Roster

    given = {key: value for key, value in people.items() if key != "independent"}
    flag_of(given, "living", "[people]")
    refuse_elsewhere(given, ("table", "person", "epsilon", "tier", "column"), "[people]")
    for path in ("source", "key"):
        if path in given:
            given[path] = resolved(expanded(text_of(given, path, "[people]"), f"[people] {path}"), home)
    try:
        with at("[people]"):
            return Roster.from_mapping(given)
    except TypeError:  # a key that this kind of roster has no use for
        raise InputError(
            "[people] has keys that do not go together; see docs/plans.md for the four kinds of roster"
        ) from None


def _section(
    document: Mapping[str, Any], name: str, known: tuple[str, ...], mistakes: Mistakes, *, needed: bool = True
) -> Mapping[str, Any]:
    if name not in document:
        if needed:
            raise InputError(f"the plan has no [{name}] section; it needs {', '.join(known[:2])} at least")
        return {}
    table = table_of(document[name], f"[{name}]")
    check_keys(table, known, f"[{name}]", mistakes)
    return table


def _folder(output: Mapping[str, Any], home: Path) -> Path:
    refuse_elsewhere(output, ("folder",), "[output]")
    return Path(resolved(text_of(output, "folder", "[output]") if "folder" in output else "releases", home))


def _rows(dataset: Mapping[str, Any]) -> int | None:
    rows = dataset.get("rows")
    if rows is None:
        return None
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows < 2**53:
        raise InputError(f"[dataset] rows is a public head count, a positive whole number; got {rows!r}")
    return rows


def resolved(where: str, home: Path) -> str:
    """Paths are relative to the plan; so is duckdb:///file.db, while duckdb:////file.db is absolute."""
    if where.startswith("duckdb:///"):
        return f"duckdb:///{home / where.removeprefix('duckdb:///')}"
    folder = "/" if where.endswith("/") else ""
    return where if "://" in where else str(home / where) + folder
