"""All mistakes of a plan at once: `sfumato check PLAN`.

What is read is public: the plan, the schema, a public roster and the ledger's caps. The private table is opened only if that
is asked for, and then for its names and types. Nothing is written and nothing is charged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.errors import InputError, SfumatoError
from sfumato.offers import Facts, Request
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.source import SECURE
from sfumato.privacy.units import epsilon_text
from sfumato.releases import folder as folders
from sfumato.releases.batch import PlanPreview, preview
from sfumato.releases.heads import private_facts
from sfumato.releases.mistakes import Mistakes, at, at_release
from sfumato.releases.pipeline import Priced, fingerprint_of, price, request_text
from sfumato.releases.plan import Plan, read_document, roster_of, sections
from sfumato.releases.plan_people import folder_of, known
from sfumato.tables import Roster, Schema
from sfumato.tables.blanks import blanks_of
from sfumato.tables.living import LivingRoster
from sfumato.tables.rows import rows_in_use
from sfumato.tables.toml_text import read_toml

_COLUMNS = ("column", "target")
_LISTS = ("columns", "by", "attributes")


@dataclass(frozen=True)
class Checked:
    """What was found about a plan.

    Attributes
    ----------
    mistakes : tuple of str
        One sentence each; none if the plan could be released.
    notes : tuple of str
        What should be known beside them.
    prices : mapping of str to str
        For each release that could be priced, the most that anybody loses by it, in ε.
    """

    mistakes: tuple[str, ...]
    notes: tuple[str, ...] = ()
    prices: Mapping[str, str] | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {"mistakes": list(self.mistakes), "notes": list(self.notes), "prices": dict(self.prices or {})}


def check(path: str | Path, *, table: bool = False) -> Checked:
    """Find all mistakes of a plan.

    Parameters
    ----------
    path : path
        The TOML file.
    table : bool
        Whether to open the private table, to compare its names and types with the schema.

    Returns
    -------
    Checked
    """
    mistakes = Mistakes(gather=True)
    path = Path(path)
    document = mistakes.note(lambda: read_document(path))
    if document is None:
        return Checked(tuple(mistakes.found))
    if blank := list(blanks_of(document)):  # everything else that is wrong follows from them
        return Checked((*blank, *_blanks_of_schema(document, path.resolve().parent)))
    parts = sections(document, path.resolve().parent, mistakes)
    schema = _schema(parts.get("schema_path"), mistakes)
    people = parts["people"]
    roster = None if people is None else mistakes.note(lambda: _roster(people, parts["home"]))
    readable = "people" not in document or roster is not None
    plan = _plan(parts) if schema is not None and readable and not mistakes.found else None
    seen = None if plan is None else _previewed(plan, roster)
    if seen is None and schema is not None:
        # Something is wrong: find out with which releases. What is wrong elsewhere must not make them wrong: they are
        # tried on a stand-in, or not at all.
        rows = parts.get("rows", 1000)
        facts = mistakes.note(lambda: _facts(schema, roster, rows)) if readable else None
        wrong = _wrong_releases(parts["releases"], schema, facts, mistakes)
        parts["releases"] = tuple(r for r in parts["releases"] if r.name not in wrong)
    plan = _plan(parts)
    if plan is None or schema is None or not readable:
        return Checked(tuple(mistakes.found))
    mistakes.note(lambda: plan.described(schema, roster))
    notes, prices = _priced(plan, roster, seen, mistakes)
    if table:
        _table(plan, schema, roster, mistakes)
    return Checked(tuple(mistakes.found), notes, prices)


def _previewed(plan: Plan, roster: Roster | None) -> PlanPreview | None:
    """The preview of a plan in which nothing is wrong; None if something is, or if people have yet to join."""
    try:
        return None if isinstance(roster, LivingRoster) and not known(plan) else preview(plan)
    except SfumatoError:
        return None


def _plan(parts: dict[str, Any]) -> Plan | None:
    """The plan, if all of it but some releases could be read."""
    needed = set(Plan.__dataclass_fields__)
    return Plan(**parts) if needed <= set(parts) and parts["releases"] and parts["folder"] is not None else None


def _schema(path: Path | None, mistakes: Mistakes) -> Schema | None:
    """The schema; where it has mistakes, those of every column."""
    if path is None:
        return None
    try:
        return Schema.from_toml(path)
    except SfumatoError as error:
        before = mistakes.times
        document = mistakes.note(lambda: read_toml(path, "the schema file")) if path.is_file() else None
        for sentence in blanks_of(document or {}):
            mistakes.add(InputError(sentence))
        for part in parts_of_schema(document or {}) if mistakes.times == before else ():
            mistakes.note(partial(Schema.from_mapping, part, what=str(path), folder=path.parent))
        if mistakes.times == before:
            mistakes.add(error)
        return None


def _blanks_of_schema(document: Mapping[str, Any], home: Path) -> list[str]:
    """The blanks of the schema that a plan names, if it can be read."""
    found = document.get("dataset")
    name = found.get("schema") if isinstance(found, Mapping) else None
    if not isinstance(name, str) or not (home / name).is_file():
        return []
    try:
        return list(blanks_of(read_toml(home / name, "the schema file")))
    except InputError as error:
        return [str(error)]


def parts_of_schema(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The unit and each column as a schema of its own."""
    columns = document.get("columns")
    if "unit" in document:
        yield {"unit": document["unit"], "columns": {"any": {"type": "categorical", "values": ["a"]}}}
    for name, plain in columns.items() if isinstance(columns, Mapping) else ():
        yield {"columns": {name: plain}}


def _roster(people: Mapping[str, Any], home: Path) -> Roster:
    roster = roster_of(people, home)
    source = roster.source
    if isinstance(source, str) and "://" not in source and not Path(source).exists():
        raise InputError(f"[people] source: there is no roster file {source!r}; correct the path")
    return roster


def _facts(schema: Schema, roster: Roster | None, rows: int | None) -> Facts:
    """Public facts to try releases on, without a ledger: where heads are not known, as if people were in every tier."""
    if roster is None:
        return Facts(schema, rows=rows)
    if not roster.private and not isinstance(roster, LivingRoster) and not roster.reads_table:
        with at("[people]"):
            budgets = roster.head_counts()
        return Facts(schema, budgets=budgets, roster=roster, rows=rows or budgets.people)
    if roster.private and not isinstance(roster, LivingRoster):
        some = _some(roster)
        return private_facts(schema, replace(roster, people=some), rows, None)
    return Facts(schema, budgets=_some(roster), rows=rows)


def _some(roster: Roster) -> PersonBudgets:
    menu = roster.menu()
    if not menu.levels.size:
        raise InputError(
            "[people] takes budgets from the private table itself; give their head counts under [people.counts], or name a "
            "public roster file as `source`, so that a preview reads nothing private"
        )
    return PersonBudgets(menu.levels, np.full_like(menu.counts, 1000), menu.names)


def _wrong_releases(releases: Sequence[Request], schema: Schema, facts: Facts | None, mistakes: Mistakes) -> set[str]:
    """The releases that cannot be priced: each is tried by itself."""
    wrong = set()
    for request in releases:
        before = mistakes.times
        for read in reads_of(request, schema):
            mistakes.note(partial(_at, request.name, read))
        if mistakes.times == before and facts is not None:
            mistakes.note(partial(_at, request.name, partial(price, request, facts)))
        if mistakes.times > before:
            wrong.add(request.name)
    return wrong


def _at(name: str, read: Any) -> None:
    with at_release(name):
        read()


def reads_of(request: Request, schema: Schema) -> Iterator[Any]:
    """What a request says about the schema, each thing by itself."""
    yield partial(schema.condition, request.where)
    given = request.parameters
    named = [given.get(key) for key in _COLUMNS] + [n for key in _LISTS for n in given.get(key) or ()]
    for name in named:
        if isinstance(name, str):
            yield partial(schema.__getitem__, name)


def _priced(
    plan: Plan, roster: Roster | None, seen: PlanPreview | None, mistakes: Mistakes
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The releases against the caps of the ledger, and their folders."""
    mistakes.note(lambda: folders.check_place(plan.folder))
    if isinstance(roster, LivingRoster) and not mistakes.note(lambda: known(plan)):
        return ("nobody has joined yet: what they can pay is not checked (`sfumato people PLAN import FILE`)",), {}
    seen = seen or mistakes.note(lambda: preview(plan))
    if seen is None:
        return (), {}
    for item in seen:
        if item.foreseen is not None and item.foreseen.refusal is not None:
            refusal = item.foreseen.refusal
            mistakes.add(InputError(f"release {item.request.name!r} would be refused: {refusal}"))
        mistakes.note(partial(_folder_is_free, plan, item))
    return seen.findings, {item.request.name: epsilon_text(item.chosen.charge.total) for item in seen}


def _folder_is_free(plan: Plan, item: Priced) -> None:
    text = request_text(item, dataset_name=plan.dataset, source=SECURE)
    folders.held(folder_of(plan, item), fingerprint_of(text))


def _table(plan: Plan, schema: Schema, roster: Roster | None, mistakes: Mistakes) -> None:
    """Names and types of the private table."""
    dataset = plan.described(schema, roster)
    before = mistakes.times
    mistakes.note(lambda: dataset.engine)
    for name in schema.names if mistakes.times == before else ():
        mistakes.note(partial(rows_in_use, dataset, [name], None, to_check=True))
    if mistakes.times == before:
        mistakes.note(dataset.check)
