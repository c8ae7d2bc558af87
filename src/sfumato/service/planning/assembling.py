"""A plan made of what the service keeps: the dataset's schema, roster and caps, and releases; nothing of it is a file.

`assembled` never takes a text of the interface for a path, an address or a variable. Where the private table lies comes from
the configuration, by the name of the source; whoever only previews says ``location=None`` and gets a plan whose source is no
place: every opener refuses it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from sfumato.errors import InputError
from sfumato.privacy.budgets import AttributeBudgets, RecipientBudgets
from sfumato.privacy.units import positive_nano
from sfumato.releases.mistakes import Mistakes, at, flag_of
from sfumato.releases.plan import Plan
from sfumato.releases.plan_request import check_texts, parse_request, same_names
from sfumato.releases.variables import refuse_elsewhere
from sfumato.service.planning.given import check_people, check_plain, releases_of
from sfumato.service.settings import Settings, SourceSettings
from sfumato.tables import Roster, Schema
from sfumato.tables.blanks import refuse_blanks
from sfumato.tables.csv_options import CsvOptions
from sfumato.tables.engine_settings import EngineSettings
from sfumato.tables.toml_text import parse_toml

if TYPE_CHECKING:
    from sfumato.offers import Request
    from sfumato.service.context import Service

NOWHERE: Final = "nowhere://not-a-place"
"""The source of a plan that is only previewed: no engine has this scheme, so whatever is asked to open it refuses."""

MOST_RELEASES: Final = 100
_CAPS = ("epsilon", "attributes", "recipients", "together", "rows")


class DatasetRow(Protocol):
    """A line of ``service_datasets``, or what has the same names."""

    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def schema(self) -> str: ...
    @property
    def people(self) -> str | None: ...
    @property
    def caps(self) -> str: ...


@dataclass(frozen=True)
class AssembledPlan(Plan):
    """A plan whose schema and roster are in memory.

    Attributes
    ----------
    described_by : Schema or None
        The public schema.
    granted_by : Roster or None
        Where people's budgets are.
    """

    described_by: Schema | None = field(default=None, repr=False)
    granted_by: Roster | None = field(default=None, repr=False)

    def schema(self) -> Schema:
        """The public schema."""
        assert self.described_by is not None
        return self.described_by

    def roster(self) -> Roster | None:
        """The roster of personal budgets, if the dataset has one."""
        return self.granted_by


def assembled(
    service: Service,
    dataset_row: DatasetRow,
    releases: Sequence[Any] | str,
    *,
    location: SourceSettings | str | None,
    folder: Path | None = None,
) -> AssembledPlan:
    """The plan of a dataset with these releases; the first mistake is raised.

    Parameters
    ----------
    service : Service
        Of which only the settings are used.
    dataset_row : row
        A line of ``service_datasets``.
    releases : sequence of mappings, or their JSON
        The tables of a plan's ``[[release]]``.
    location : SourceSettings, str or None
        Where the private table lies, from the configuration; ``None`` for a plan that is only previewed.
    folder : Path, optional
        Where releases are written; needed by whoever makes them.
    """
    return assembled_with(service.settings, dataset_row, releases, location=location, folder=folder)


def assembled_with(
    settings: Settings,
    row: DatasetRow,
    releases: Sequence[Any] | str,
    *,
    location: SourceSettings | str | None,
    folder: Path | None = None,
    mistakes: Mistakes | None = None,
) -> AssembledPlan:
    """`assembled` from settings alone; with `mistakes` that gather, releases that cannot be read are left out."""
    mistakes = mistakes or Mistakes()
    people = None if row.people is None else json.loads(row.people)
    schema = schema_given(row.schema)
    roster = None if people is None else roster_given(settings, people)
    caps = caps_given(json.loads(row.caps), personal=people is not None)
    tables = json.loads(releases) if isinstance(releases, str) else list(releases)
    stated = people is not None and bool(people.get("independent"))
    place = settings.sources.get(row.source) if isinstance(location, str) else location
    if isinstance(location, str):
        place = SourceSettings(location) if place is None else SourceSettings(location, place.table, place.csv, place.engine)
    home = settings.state / "plans"  # nothing lies there: no key of an assembled plan is relative to a folder
    return AssembledPlan(
        dataset=row.name,
        source=NOWHERE if place is None else place.location,
        table=None if place is None else _table(place.table),
        csv=None if place is None else CsvOptions.of(place.csv, "csv of the source"),
        engine=None if place is None else EngineSettings.of(place.engine, "engine of the source"),
        schema_path=home / "schema.toml",
        people=people,
        ledger=settings.ledger,
        folder=home / "releases" if folder is None else folder,
        releases=requests_given(tables, independent=stated, mistakes=mistakes),
        home=home,
        described_by=schema,
        granted_by=roster,
        **caps,
    )


def _table(given: Any) -> Any:
    return tuple(given) if isinstance(given, list) else given


@lru_cache(maxsize=32)
def schema_given(text: str) -> Schema:
    """The schema of a TOML text; a list of values in a file is refused, wherever the text says that it lies."""
    document = parse_toml(text, "the schema")
    return Schema.from_mapping(schema_document(document), what="the schema")


def schema_document(document: dict[str, Any]) -> dict[str, Any]:
    """The tables of a schema, once they name no file and are not too deep."""
    check_plain(document, "the schema", dates=True)
    columns = document.get("columns")
    for name, column in columns.items() if isinstance(columns, Mapping) else ():
        if isinstance(column, Mapping) and "values_file" in column:
            raise InputError(
                f"column {name!r} of the schema names a values_file; through the service no file is named: write "
                "values = [...]"
            )
    return document


def roster_given(settings: Settings, people: Mapping[str, Any]) -> Roster:
    """The roster that the keys of [people] describe, where a `source` is a name of the configuration."""
    check_plain(people, "[people]")
    check_people(people, Mistakes())
    given = {key: value for key, value in people.items() if key != "independent" and value is not None}
    flag_of(people, "independent", "[people]")
    living = flag_of(given, "living", "[people]")
    refuse_blanks(given)
    refuse_elsewhere(given, ("person", "epsilon", "tier", "column"), "[people]")
    if "source" in given:
        known = settings.rosters.get(given["source"]) if isinstance(given["source"], str) else None
        if known is None:
            names = ", ".join(sorted(settings.rosters)) or "none"
            raise InputError(f"[people] source is the name of a roster of the configuration; it has {names}")
        given |= {"source": known.location}
        given |= {} if known.table is None else {"table": _table(known.table)}
        given |= {} if known.csv is None else {"csv": dict(known.csv)}
    if living:
        given["key"] = str(settings.keys / "people.key")
    try:
        with at("[people]"):
            return Roster.from_mapping(given)
    except TypeError:  # a key that this kind of roster has no use for
        raise InputError(
            "[people] has keys that do not go together; see docs/plans.md for the four kinds of roster"
        ) from None


def caps_given(caps: Mapping[str, Any], *, personal: bool) -> dict[str, Any]:
    """The caps as the fields that a plan has for them."""
    check_plain(caps, "caps")
    if unknown := [key for key in caps if key not in _CAPS]:
        raise InputError(f"caps has an unknown key {unknown[0]!r}; it has {', '.join(_CAPS)}")
    given = {key: value for key, value in caps.items() if value is not None}
    if "epsilon" in given:
        positive_nano(given["epsilon"], "caps: epsilon")
    elif not personal:
        raise InputError("caps needs `epsilon`, the most that all releases of this dataset may cost together")
    for key in ("attributes", "recipients"):
        if key in given and (not isinstance(given[key], Mapping) or not given[key]):
            raise InputError(f"caps: {key} gives each one's ε by name")
    if "together" in given and "recipients" not in given:
        raise InputError("caps: together caps colluding recipients; name them under recipients")
    rows = given.get("rows")
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows < 2**53):
        raise InputError("caps: rows is a public head count, a positive whole number")
    recipients = given.get("recipients")
    return {
        "rows": rows,
        "epsilon": given.get("epsilon"),
        "attributes": AttributeBudgets.of(given["attributes"]) if "attributes" in given else None,
        "recipients": None if recipients is None else RecipientBudgets.of(recipients, together=given.get("together")),
    }


def requests_given(tables: Sequence[Any], *, independent: bool, mistakes: Mistakes) -> tuple[Request, ...]:
    """The releases, each checked key by key."""
    if not isinstance(tables, list | tuple) or not tables:
        mistakes.add(InputError("the plan releases nothing: add at least one release with a name and a kind"))
        return ()
    if len(tables) > MOST_RELEASES:
        mistakes.add(
            InputError(f"the plan has {len(tables)} releases, and at most {MOST_RELEASES} may be in one; divide it")
        )
        return ()
    before = mistakes.times
    mistakes.note(lambda: check_plain(list(tables), "the plan"))
    if mistakes.times > before:
        return ()
    mistakes.note(lambda: refuse_blanks({"release": list(tables)}))
    check_texts({"release": list(tables)}, "", mistakes)
    read = [
        parse_request(table, f"[[release]] number {number}", independent=independent, mistakes=mistakes)
        for number, table in enumerate(releases_of(tables, mistakes), start=1)
    ]
    found = tuple(request for request in read if request is not None)
    mistakes.note(lambda: same_names([request.name for request in found]))
    return found
