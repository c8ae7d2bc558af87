"""Sfumato on a person's device: a history noised on the spot, with budgets per attribute and recipient.

This is the distribution **sfumato-device**: `sfumato.attributes` and what they need, on NumPy and cryptography. Everything
else (tables, people, histograms, grids, classifiers, the command line) is in the distribution **sfumato**, which has this
part too and is installed in its place.
"""

from typing import TYPE_CHECKING, NoReturn

from sfumato.distribution import __version__ as __version__
from sfumato.distribution import refuse_both

refuse_both(__path__[0])

from sfumato import attributes, on_device, privacy  # noqa: E402 - a mixture of two versions must not be loaded
from sfumato.errors import SfumatoError  # noqa: E402
from sfumato.privacy import AttributeBudgets, Charge, Guarantee, Meter, RecipientBudgets, Seeded  # noqa: E402

__all__ = [
    "AttributeBudgets",
    "Charge",
    "Guarantee",
    "Meter",
    "RecipientBudgets",
    "Seeded",
    "SfumatoError",
    "attributes",
    "privacy",
]

on_device.explain_missing_modules()

if not TYPE_CHECKING:  # a type checker must see that `sfumato.open` is not here

    def __getattr__(name: str) -> NoReturn:
        raise AttributeError(on_device.missing(f"sfumato.{name}"))
