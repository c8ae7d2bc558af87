"""What the workers of previews do: read a schema, a plan file, a plan; tell all mistakes at once; price. All public.

Each function takes and gives plain values, because they cross a pipe.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sfumato.errors import InputError, SfumatoError
from sfumato.releases.attribute_charges import check_capped
from sfumato.releases.mistakes import Mistakes
from sfumato.releases.plan_check import parts_of_schema, reads_of
from sfumato.service.planning.assembling import (
    AssembledPlan,
    assembled_with,
    caps_given,
    requests_given,
    roster_given,
    schema_document,
)
from sfumato.service.planning.given import check_plain, decimal_text, releases_of
from sfumato.service.planning.previews import told
from sfumato.service.settings import Settings, SourceSettings
from sfumato.tables import Schema
from sfumato.tables.blanks import blanks_of
from sfumato.tables.engine_list import notes_of
from sfumato.tables.toml_text import parse_toml, toml_lines


@dataclass(frozen=True)
class Row:
    """A dataset as it crosses the pipe."""

    name: str
    source: str
    schema: str
    people: str | None
    caps: str


def settings_of(plain: Mapping[str, Any]) -> Settings:
    """The settings that a worker needs, from plain values."""
    rosters = {name: SourceSettings(**given) for name, given in plain["rosters"].items()}
    keys = Path(plain["keys"])
    return Settings(Path(plain["state"]), database="", ledger=plain["ledger"], rosters=rosters, keys=keys)


def plain_settings(settings: Settings) -> dict[str, Any]:
    """The inverse of `settings_of`; where private tables lie is not told to a worker."""

    def plain(known: SourceSettings) -> dict[str, Any]:
        return {"location": known.location, "table": known.table, "csv": known.csv, "engine": known.engine}

    rosters = {name: plain(known) for name, known in settings.rosters.items()}
    return {"state": str(settings.state), "keys": str(settings.keys), "ledger": settings.ledger, "rosters": rosters}


def dataset(settings: Settings, *, name: str, schema: str, people: Any, caps: Any) -> dict[str, Any]:
    """All mistakes of a dataset, and what is kept of it: the schema as it was understood, ε as text."""
    mistakes = Mistakes(gather=True)
    found = _schema(schema, mistakes)
    roster = None if people is None else mistakes.note(lambda: roster_given(settings, people))
    read = mistakes.note(lambda: caps_given(caps, personal=people is not None))
    if found is not None and read is not None and read["attributes"] is not None:
        own = [c for c in read["attributes"].names if c == found.unit.person]  # others may be those of a catalogue
        mistakes.note(lambda: check_capped(own, found, roster, ()))
    if found is not None and roster is not None and not roster.in_table and found.unit.person is None:
        mistakes.add(
            InputError("the people are named outside the table; say in the schema's [unit] which column names them")
        )
    if mistakes.found or found is None:
        return {"mistakes": mistakes.found}
    return {
        "mistakes": [],
        "schema": found.to_toml(),
        "digest": found.digest,
        "people": None if people is None else _people_kept(people),
        "caps": _caps_kept(caps),
    }


def _schema(text: str, mistakes: Mistakes) -> Schema | None:
    """The schema; where it has mistakes, those of every column."""
    document = mistakes.note(lambda: schema_document(parse_toml(text, "the schema")))
    if document is None:
        return None
    if blank := list(blanks_of(document)):
        for sentence in blank:
            mistakes.add(InputError(sentence))
        return None
    try:
        return Schema.from_mapping(document, what="the schema")
    except SfumatoError as error:
        before = mistakes.times
        for part in parts_of_schema(document):
            mistakes.note(partial(Schema.from_mapping, part, what="the schema"))
        if mistakes.times == before:
            mistakes.add(error)
        return None


def _people_kept(people: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in people.items() if value is not None}
    for key in ("tiers", "per_period"):
        if isinstance(kept.get(key), Mapping):
            kept[key] = {str(tier): decimal_text(e, f"epsilon of tier {tier!r}") for tier, e in kept[key].items()}
    if "menu" in kept:
        kept["menu"] = [decimal_text(level, "a budget of the menu") for level in kept["menu"]]
    return kept | ({"head_share": str(kept["head_share"])} if "head_share" in kept else {})


def _caps_kept(caps: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in caps.items() if value is not None}
    for key in ("epsilon", "together"):
        if key in kept:
            kept[key] = decimal_text(kept[key], key)
    for key in ("attributes", "recipients"):
        if key in kept:
            kept[key] = {name: decimal_text(e, f"epsilon of {name!r}") for name, e in kept[key].items()}
    return kept


def releases(settings: Settings, *, row: Mapping[str, Any], given: list[Any]) -> dict[str, Any]:
    """All mistakes of releases that can be told from the schema alone, and the releases as they are kept."""
    mistakes = Mistakes(gather=True)
    people = None if row["people"] is None else json.loads(row["people"])
    stated = people is not None and bool(people.get("independent"))
    read = requests_given(given, independent=stated, mistakes=mistakes)
    document = Schema.from_toml(row["schema"])
    for request in read:
        for what in reads_of(request, document):
            mistakes.note(what)
    return {"mistakes": mistakes.found, "releases": [] if mistakes.found else releases_of(given, mistakes)}


def toml(settings: Settings, *, text: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """The releases of a plan file, in which all else says what the dataset is registered with, or nothing."""
    document = parse_toml(text, "the plan")
    check_plain(document, "the plan")
    mistakes = Mistakes(gather=True)
    known = {
        "dataset": {"name": row["name"], "source": row["source"], "rows": json.loads(row["caps"]).get("rows")},
        "people": {} if row["people"] is None else json.loads(row["people"]),
        "ledger": {key: value for key, value in json.loads(row["caps"]).items() if key != "rows"},
        "output": {},
    }
    for name, section in document.items():
        if name == "release":
            continue
        if name not in known or not isinstance(section, Mapping):
            mistakes.add(InputError(f"the plan has an unknown section [{name}]; it has {', '.join(known)} and release"))
            continue
        same = {"people": _people_kept, "ledger": _caps_kept}.get(name, dict)
        kept = mistakes.note(partial(same, section))
        for key, value in (kept or {}).items():
            if value != known[name].get(key):
                mistakes.add(
                    InputError(
                        f"[{name}] {key} is not what the dataset {row['name']!r} is registered with; leave it out: where "
                        "things lie and what they may cost is not changed by a plan"
                    )
                )
    if mistakes.found:
        return {"mistakes": mistakes.found, "releases": []}
    return releases(settings, row=row, given=document.get("release") or [])


def exported(row: Mapping[str, Any], tables: list[dict[str, Any]]) -> str:
    """A plan file with these releases: what the command line reads once the paths are filled in."""
    caps = json.loads(row["caps"])
    rows = {"rows": caps.pop("rows")} if "rows" in caps else {}
    head: dict[str, Any] = {"dataset": {"name": row["name"], "source": row["source"], **rows}}
    if row["people"] is not None:
        head["people"] = json.loads(row["people"])
    if caps:
        head["ledger"] = caps
    text = "\n".join(toml_lines(head))
    for table in tables:
        text += (
            "\n[[release]]\n" + "\n".join(toml_lines({k: v for k, v in table.items() if not isinstance(v, Mapping)})) + "\n"
        )
        for key, value in table.items():
            if isinstance(value, Mapping):
                lines = "\n".join(toml_lines({"release": {key: value}}))
                text += lines + "\n"
    return text


def preview(
    settings: Settings,
    *,
    row: Mapping[str, Any],
    given: list[Any],
    engine: str | None = None,
    analyst: str | None = None,
    purpose: str | None = None,
) -> dict[str, Any]:
    """The preview of a plan; what cannot be previewed is a `SfumatoError` with all mistakes of it."""
    notes = () if engine is None else notes_of(engine)
    return told(assembled(settings, row, given), notes, analyst=analyst, purpose=purpose)


def assembled(settings: Settings, row: Mapping[str, Any], given: list[Any]) -> AssembledPlan:
    """The plan; all its mistakes in one error."""
    mistakes = Mistakes(gather=True)
    plan = assembled_with(settings, Row(**row), given, location=None, mistakes=mistakes)
    if not mistakes.found:
        for request in plan.releases:
            for what in reads_of(request, plan.schema()):
                mistakes.note(what)
    if mistakes.found:
        raise InputError("; ".join(mistakes.found))
    return plan
