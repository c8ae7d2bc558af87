"""Public domains of single columns: which cell a value belongs to, decided without looking at the data.

Every column has cells 0..size-1. A value that is not in the domain (NULL, NaN, a category nobody listed) goes to
the *other* cell, the last one, if the column has one (`other=True` or a label); otherwise such a row counts in no
cell of this column. Numbers beyond the bounds, infinities included, are clamped to the nearest bound
(`outside="clamp"`, the default) or treated like any value outside the domain (`outside="other"`).

A kind of column is one class with everything that has to be known about it: see `Domain`. A new kind is a new file that
ends with `register`; nothing else in the package asks which kind a domain is.
"""

from sfumato.tables.domains.base import DOMAINS, Domain, domain_from_plain, register
from sfumato.tables.domains.categorical import Categorical
from sfumato.tables.domains.numeric import Numeric

__all__ = ["DOMAINS", "Categorical", "Domain", "Numeric", "domain_from_plain", "register"]
