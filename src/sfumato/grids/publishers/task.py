"""What is to be published: the public part of a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.errors import InputError, SchemaError
from sfumato.records.attributes import Attribute, attributes_of
from sfumato.records.levels import Levels
from sfumato.tables.domains import Domain
from sfumato.tables.schema import Schema

MOST_LEAVES = 500_000  # names and levels of that many are made in seconds


@dataclass(frozen=True, eq=False)
class Task:
    """The predictors with their taxonomies, and the target.

    Attributes
    ----------
    attributes : tuple of Attribute
        The predictors.
    target : str
        The column to be predicted.
    target_domain : Domain
        Its public domain; the cells are the classes.
    """

    attributes: tuple[Attribute, ...]
    target: str
    target_domain: Domain

    @classmethod
    def of(cls, schema: Schema, target: str, attributes: Sequence[str] | None = None) -> Task:
        """The task of predicting one column of a schema from the others, or from those named."""
        domain = schema[target]
        if domain.size < 2:
            raise InputError(f"the target {target!r} needs at least two classes")
        named = [c for c in schema.names if c != target] if attributes is None else attributes
        cells = sum(schema[name].size for name in (*named, target))
        if cells > MOST_LEAVES:
            raise SchemaError(
                f"the columns have {cells:,} cells one after the other; a table for classification takes at most "
                f"{MOST_LEAVES:,}: use coarser bins, or name fewer `attributes`"
            )
        return cls(attributes_of(schema, target=target, attributes=attributes), target, domain)

    def name(self, column: int) -> str:
        """The name of a predictor."""
        return self.attributes[column].name

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return self.target_domain.size

    @property
    def taxonomies(self) -> tuple[Levels, ...]:
        """The levels of the predictors."""
        return tuple(a.levels for a in self.attributes)
