"""Datasets: a source of the configuration with its schema, roster and caps, registered once and in the ledger too.

A source is registered once. Under two names it would have two budgets, and everybody in it would lose twice what they
granted; so what lies at the same place is the same source, whatever the configuration calls it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Row, insert, select
from sqlalchemy.exc import IntegrityError

from sfumato.errors import LedgerError
from sfumato.privacy.source import SECURE
from sfumato.releases.plan_facts import facts_of, granted_in
from sfumato.releases.plan_people import registered
from sfumato.service.fresh import fresh_id
from sfumato.service.http.problems import ProblemError, missing
from sfumato.service.planning.assembling import AssembledPlan, caps_given, roster_given, schema_given
from sfumato.service.planning.given import canonical
from sfumato.service.planning.previewing import workers
from sfumato.service.store import schema
from sfumato.service.store.database import now, record

if TYPE_CHECKING:
    from sfumato.service.context import Service
    from sfumato.service.http.access import Caller
    from sfumato.service.settings import Settings

DATASET_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,79}$"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,79}")
_datasets = schema.datasets


@dataclass(frozen=True)
class Wanted:
    """A dataset as a custodian states it.

    Attributes
    ----------
    name : str
        What it will be called here and in the ledger.
    source : str
        A name of the configuration.
    schema : str
        TOML.
    people : mapping or None
        The keys of a plan's [people].
    caps : mapping
        epsilon, attributes, recipients, together, rows.
    """

    name: str
    source: str
    schema: str
    people: Mapping[str, Any] | None
    caps: Mapping[str, Any]


def dataset_of(connection: Connection, name: str) -> Row[Any]:
    """The dataset of a name in a path; a problem (404) if there is none."""
    if not _NAME.fullmatch(name):
        raise missing()
    found = connection.execute(select(_datasets).where(_datasets.c.name == name)).first()
    if found is None:
        raise missing()
    return found


def dataset_for(service: Service, connection: Connection, caller: Caller, name: str) -> Row[Any]:
    """The dataset of a name in a path, if it is the caller's business; what is not looks like what is missing (404).

    A dataset is its custodian's, who registered it, and every officer's; an analyst's if they are a recipient of it or have
    an allowance. Whoever else knows its name learns nothing, not even that it is there.
    """
    found = dataset_of(connection, name)
    if caller.role == "custodian" and found.created_by != caller.id:
        raise missing()
    if caller.role == "analyst" and not concerns(service, found, caller.name):
        raise missing()
    return found


def row_of(dataset: Any) -> dict[str, Any]:
    """What a worker needs of a dataset's line."""
    return {name: getattr(dataset, name) for name in ("name", "source", "schema", "people", "caps")}


def check(service: Service, wanted: Wanted) -> dict[str, Any]:
    """All mistakes of a dataset, and how it would be kept; nothing is registered."""
    given: dict[str, Any] = {"name": wanted.name, "schema": wanted.schema, "people": wanted.people, "caps": wanted.caps}
    found: dict[str, Any] = workers().do(service.settings, "dataset", **given)
    if not _NAME.fullmatch(wanted.name):
        found["mistakes"] = [*found["mistakes"], "a dataset's name is letters, digits, spaces, dots, dashes; at most 80"]
    if wanted.source not in service.settings.sources:
        known = ", ".join(sorted(service.settings.sources)) or "none"
        found["mistakes"] = [*found["mistakes"], f"source is a name of the service's configuration; it has {known}"]
    return found


def register(service: Service, caller: Caller, wanted: Wanted) -> Row[Any]:
    """Register a dataset here and in the ledger; the same again gives what is there.

    The line is written first and kept only if the ledger takes the dataset under the same caps. Where the process ends
    between the two, the ledger knows a dataset that the service does not: registering it again with the same caps mends it.
    """
    kept = check(service, wanted)
    if kept["mistakes"]:
        raise ProblemError(422, "; ".join(kept["mistakes"]), mistakes=kept["mistakes"])
    row = {
        "name": wanted.name,
        "source": wanted.source,
        "schema": kept["schema"],
        "people": None if kept["people"] is None else canonical(kept["people"]),
        "caps": canonical(kept["caps"]),
    }
    try:
        with service.store.write() as connection:
            known = connection.execute(select(_datasets).where(_datasets.c.name == wanted.name)).first()
            if known is not None:
                return _same(known, row, caller)
            _check_source(service.settings, connection, wanted.source, caller)
            made = {"id": fresh_id("dataset"), "created_by": caller.id, "created_at": now()}
            connection.execute(insert(_datasets).values(**row, **made))
            _register_in_ledger(service, row)
            record(connection, "datasets.register", account_id=caller.id, dataset_id=made["id"])
            return dataset_of(connection, wanted.name)
    except IntegrityError:  # somebody registered it meanwhile
        raise ProblemError(409, f"{wanted.name!r} or its source was registered meanwhile; look at the datasets") from None


def _same(known: Row[Any], row: Mapping[str, Any], caller: Caller) -> Row[Any]:
    if known.created_by != caller.id:  # of which nothing more is told
        raise ProblemError(409, "this name is taken; choose another one")
    different = [key for key, value in row.items() if getattr(known, key) != value]
    if different:
        raise ProblemError(
            409,
            f"{known.name!r} is registered with another {', '.join(different)}; what people agreed to does not change. "
            "Register another source under another name",
        )
    return known


def _check_source(settings: Settings, connection: Connection, source: str, caller: Caller) -> None:
    place = _place(settings, source)
    for known in connection.execute(select(_datasets)):
        if known.source == source or (known.source in settings.sources and _place(settings, known.source) == place):
            mine = known.created_by == caller.id
            raise ProblemError(
                409,
                f"this source is registered already{f' as {known.name!r}' if mine else ''}: under a second name its people "
                "would have a second budget. Make plans for the dataset that is there",
            )


def _place(settings: Settings, source: str) -> tuple[str, str]:
    known = settings.sources[source]
    where = known.location if "://" in known.location else os.path.realpath(known.location)
    return where, repr(tuple(known.table) if isinstance(known.table, list) else known.table)


def _register_in_ledger(service: Service, row: Mapping[str, Any]) -> None:
    people = None if row["people"] is None else json.loads(row["people"])
    roster = None if people is None else roster_given(service.settings, people)
    caps = caps_given(json.loads(row["caps"]), personal=people is not None)
    budgets = granted_in(roster, facts_of(_nothing(service, row, roster, caps), roster, SECURE)[0])
    caps.pop("rows")
    try:
        registered(service.ledger, row["name"], roster, people=budgets, **caps)
    except LedgerError as error:
        if "registered with other numbers" in str(error):
            raise ProblemError(409, str(error)) from None
        raise


def _nothing(service: Service, row: Mapping[str, Any], roster: Any, caps: Mapping[str, Any]) -> AssembledPlan:
    """A plan without releases, for the facts of a dataset."""
    from sfumato.service.planning.assembling import NOWHERE

    home = service.settings.state / "plans"
    return AssembledPlan(
        dataset=row["name"],
        source=NOWHERE,
        table=None,
        csv=None,
        engine=None,
        schema_path=home / "schema.toml",
        people=None,
        ledger=service.settings.ledger,
        folder=home / "releases",
        releases=(),
        home=home,
        described_by=schema_given(row["schema"]),
        granted_by=roster,
        **caps,
    )


def of_analyst(service: Service, analyst: str) -> set[str]:
    """The datasets that an analyst has something to do with: a recipient by its caps, or somebody with an allowance."""
    with service.store.read() as connection:
        rows = connection.execute(select(_datasets.c.id, _datasets.c.name, _datasets.c.caps)).all()
    return {row.id for row in rows if concerns(service, row, analyst)}


def concerns(service: Service, dataset: Any, analyst: str) -> bool:
    """Whether an analyst has something to do with a dataset."""
    named = analyst in (json.loads(dataset.caps).get("recipients") or {})
    return named or bool(service.ledger.allowances(dataset.name, analyst))
