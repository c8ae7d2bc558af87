"""Values coded to cells, taxonomies and weighted records: what several families share.

`Coding` codes a data frame in memory, `read_records` lets the engine that holds a table count its rows; both give `Records`.
"""

from sfumato.records.attributes import Attribute, attribute_of, attributes_of
from sfumato.records.coding import Coding, cells_of, leaves_of, leaves_of_frame
from sfumato.records.levels import Levels
from sfumato.records.reading import read_members, read_records, read_rows
from sfumato.records.records import Records

__all__ = [
    "Attribute",
    "Coding",
    "Levels",
    "Records",
    "attribute_of",
    "attributes_of",
    "cells_of",
    "leaves_of",
    "leaves_of_frame",
    "read_members",
    "read_records",
    "read_rows",
]
