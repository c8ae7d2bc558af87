"""Several private fits of one table, noticed where they can be.

ε is spent by every fit. A search or a cross-validation fits clones of one estimator again and again, and each of their
guarantees speaks of itself alone. What can be seen from here is that clones of one estimator are fitted, or that one is
fitted twice on the same table: then a `PrivacyWarning` says what all fits have cost together. Nothing is kept of a table.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary, ref

from sfumato.errors import PrivacyWarning
from sfumato.privacy import Nano, as_epsilon

_accounted: ContextVar[bool] = ContextVar("accounted", default=False)


@dataclass(eq=False)
class _Family:
    """An estimator and its clones: what their fits cost."""

    fits: int = 0
    nano: int = 0
    cloned: bool = False
    table: Any = field(default=None, repr=False)


_families: WeakKeyDictionary[Any, _Family] = WeakKeyDictionary()


@contextmanager
def accounted() -> Iterator[None]:
    """Fits in this block are added up by whoever makes them."""
    token = _accounted.set(True)
    try:
        yield
    finally:
        _accounted.reset(token)


def is_accounted() -> bool:
    """Whether whoever makes the fits adds them up."""
    return _accounted.get()


class CountedFits:
    """An estimator whose fits are counted, its clones' with them."""

    def __sklearn_clone__(self) -> Any:
        twin = super().__sklearn_clone__()  # type: ignore[misc]
        family = _families.setdefault(self, _Family())
        family.cloned = True
        _families[twin] = family
        return twin

    def _count_fit(self, table: Any, nano: Nano, *, private: bool) -> None:
        """Remember a fit, and warn from the second one on (each time their number has doubled)."""
        if _accounted.get() or not private:
            return
        family = _families.setdefault(self, _Family())
        if not family.cloned and (family.table is None or family.table() is not table):
            family.fits = family.nano = 0  # another table: its own account
        try:
            family.table = ref(table)
        except TypeError:  # a list cannot be recognised
            family.table = None
        family.fits, family.nano = family.fits + 1, family.nano + nano
        if family.fits > 1 and family.fits & (family.fits - 1) == 0:
            warnings.warn(
                f"{family.fits} private fits of one {type(self).__name__} or its clones: on one table they cost "
                f"ε {as_epsilon(Nano(family.nano))} together so far, not what each of them says, and scores on private rows "
                "are not private at all; sfumato.classifiers.PrivateSearch tries candidates within one ε",
                PrivacyWarning,
                stacklevel=3,
            )
