"""Where the data lives: public schemas, tables on any engine, and exact aggregates of them."""

from sfumato.tables.covered import coverage
from sfumato.tables.csv_options import CsvOptions
from sfumato.tables.dataset import Dataset
from sfumato.tables.domains import Boolean, Categorical, Date, Decimals, Domain, Numeric, Timestamp
from sfumato.tables.engine_settings import EngineSettings
from sfumato.tables.importing import Imported, import_table
from sfumato.tables.lattice import Lattice
from sfumato.tables.notes import Note, Wording
from sfumato.tables.opening import open
from sfumato.tables.personal import PersonalTable
from sfumato.tables.predicates import is_empty, parse_where
from sfumato.tables.roster import Roster
from sfumato.tables.schema import PrivacyUnit, Schema
from sfumato.tables.taxonomy import Taxonomy

__all__ = [
    "Boolean",
    "Categorical",
    "CsvOptions",
    "Dataset",
    "Date",
    "Decimals",
    "Domain",
    "EngineSettings",
    "Imported",
    "Lattice",
    "Note",
    "Numeric",
    "PersonalTable",
    "PrivacyUnit",
    "Roster",
    "Schema",
    "Taxonomy",
    "Timestamp",
    "Wording",
    "coverage",
    "import_table",
    "is_empty",
    "open",
    "parse_where",
]
