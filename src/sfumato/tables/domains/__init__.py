"""Public domains of single columns: which cell a value belongs to, decided without looking at the data.

Every column has cells 0..size-1. A value that is not in the domain (NULL, NaN, a category nobody listed) goes to
the *other* cell, the one after the listed ones, if the column has one (`other=True` or a label); otherwise such a row
counts in no cell of this column. With `missing=True` or a label, where there is no value that can be read (NULL, NaN, text
that is no number or date) has a last cell of its own, and the other cell is for what is there but not in the domain.
Numbers beyond the bounds, infinities included, are clamped to the nearest bound (`outside="clamp"`, the default) or
treated like any value outside the domain (`outside="other"`).

A kind of column is one class with everything that has to be known about it: see `Domain`. A new kind is a new file that
ends with `register`; nothing else in the package asks which kind a domain is.
"""

from sfumato.tables.domains.base import Domain
from sfumato.tables.domains.boolean import Boolean
from sfumato.tables.domains.categorical import Categorical
from sfumato.tables.domains.dates import Date, Timestamp
from sfumato.tables.domains.decimals import Decimals
from sfumato.tables.domains.declared import DOMAINS, domain_from_plain, register
from sfumato.tables.domains.numeric import Numeric

__all__ = [
    "DOMAINS",
    "Boolean",
    "Categorical",
    "Date",
    "Decimals",
    "Domain",
    "Numeric",
    "Timestamp",
    "domain_from_plain",
    "register",
]
