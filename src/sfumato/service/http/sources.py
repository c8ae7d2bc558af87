"""The sources of the configuration, and datasets made of them."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Row, select

from sfumato.service.http.access import Caller, Here, allowed
from sfumato.service.http.paging import Listed, Page, page
from sfumato.service.http.planned import Epsilon, Line, Tables
from sfumato.service.planning import datasets
from sfumato.service.store import schema

router = APIRouter(tags=["datasets"])
Dataset = Annotated[str, Path(min_length=1, max_length=80, description="the dataset's name")]


class Source(BaseModel):
    """A private table of the configuration: its name, whether it is registered, and as what if it is the caller's."""

    name: str
    registered: bool
    registered_as: str | None


class CapsGiven(BaseModel):
    """What bounds all releases of a dataset together."""

    model_config = ConfigDict(extra="forbid")
    epsilon: Epsilon | None = None
    attributes: Annotated[dict[Line, Epsilon], Field(max_length=1000)] | None = None
    recipients: Annotated[dict[Line, Epsilon], Field(max_length=1000)] | None = None
    together: Epsilon | None = None
    rows: Annotated[int, Field(ge=1, lt=2**53)] | None = None


class DatasetGiven(BaseModel):
    """A dataset to register: a source by its name, a schema in TOML, the keys of [people], and caps."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(max_length=80, pattern=datasets.DATASET_NAME)]
    source: Line
    schema_: Annotated[str, Field(alias="schema", min_length=1, max_length=500_000)]
    people: Tables | None = None
    caps: CapsGiven = CapsGiven()

    def wanted(self) -> datasets.Wanted:
        """As the service takes it."""
        caps = self.caps.model_dump(exclude_none=True)
        return datasets.Wanted(self.name, self.source, self.schema_, self.people, caps)


class DatasetShown(BaseModel):
    """A dataset. What analysts need not know is left out for them."""

    name: str
    source: str | None
    schema_: Annotated[str, Field(serialization_alias="schema")]
    people: dict[str, Any] | None
    caps: dict[str, Any] | None
    created_at: int


class Checked(BaseModel):
    """All mistakes of a dataset that is yet to be registered, and its schema as it was understood."""

    mistakes: list[str]
    schema_: Annotated[str | None, Field(serialization_alias="schema")] = None


def shown(dataset: Row[Any], caller: Caller) -> DatasetShown:
    """A dataset as somebody may see it."""
    whole = caller.role != "analyst"
    people = None if dataset.people is None else json.loads(dataset.people)
    return DatasetShown(
        name=dataset.name,
        source=dataset.source if whole else None,
        schema_=dataset.schema,
        people=people if whole else None,
        caps=json.loads(dataset.caps) if whole else None,
        created_at=dataset.created_at,
    )


@router.get("/sources")
def list_sources(service: Here, caller: Annotated[Caller, allowed("sources.read")]) -> list[Source]:
    """The names of the configuration's sources; where they lie is not told."""
    with service.store.read() as connection:
        known = {row.source: row for row in connection.execute(select(schema.datasets))}
    mine = {source: row.name for source, row in known.items() if row.created_by == caller.id}
    names = sorted(service.settings.sources)
    return [Source(name=name, registered=name in known, registered_as=mine.get(name)) for name in names]


@router.get("/datasets")
def list_datasets(service: Here, caller: Annotated[Caller, allowed("datasets.read")], asked: Page) -> Listed[DatasetShown]:
    """The datasets, newest first; to a custodian their own, to an analyst those that they have something to do with."""
    table = schema.datasets
    query = select(table)
    if caller.role == "custodian":
        query = query.where(table.c.created_by == caller.id)
    if caller.role == "analyst":
        query = query.where(table.c.id.in_(datasets.of_analyst(service, caller.name)))
    with service.store.read() as connection:
        rows, older = page(connection, query, asked, table.c.created_at, table.c.id)
    return Listed(items=[shown(row, caller) for row in rows], older=older)


@router.get("/datasets/{dataset}")
def read_dataset(service: Here, caller: Annotated[Caller, allowed("datasets.read")], dataset: Dataset) -> DatasetShown:
    """One dataset."""
    with service.store.read() as connection:
        return shown(datasets.dataset_for(service, connection, caller, dataset), caller)


@router.post("/datasets", status_code=201)
def register_dataset(
    service: Here, caller: Annotated[Caller, allowed("datasets.register")], given: DatasetGiven
) -> DatasetShown:
    """Register a dataset here and in the ledger. The same again changes nothing; other numbers are refused."""
    return shown(datasets.register(service, caller, given.wanted()), caller)


@router.post("/datasets/check")
def check_dataset(service: Here, caller: Annotated[Caller, allowed("datasets.register")], given: DatasetGiven) -> Checked:
    """All mistakes of a dataset at once; nothing is registered."""
    found = datasets.check(service, given.wanted())
    return Checked(mistakes=found["mistakes"], schema_=found.get("schema"))
