"""Where the data lives: public schemas, tables on any engine, and exact aggregates of them."""

from sfumato.tables.dataset import Dataset, open
from sfumato.tables.domains import Categorical, Numeric
from sfumato.tables.predicates import parse_where
from sfumato.tables.roster import Roster
from sfumato.tables.schema import PrivacyUnit, Schema
from sfumato.tables.taxonomy import Taxonomy

__all__ = [
    "Categorical",
    "Dataset",
    "Numeric",
    "PrivacyUnit",
    "Roster",
    "Schema",
    "Taxonomy",
    "open",
    "parse_where",
]
