"""The errors people meet. Each message says what was asked, what is there and what to do.

No message may quote a private value: an error that depends on the private table is data too.
"""

__all__ = [
    "BudgetError",
    "InputError",
    "LedgerError",
    "NotInstalledError",
    "PrivacyError",
    "PrivacyWarning",
    "SchemaError",
    "SfumatoError",
]


class SfumatoError(ValueError):
    """Anything Sfumato refuses to do; the command line exits with code 2 on it."""


class InputError(SfumatoError):
    """An argument, plan or file that does not say what it must."""


class SchemaError(InputError):
    """A public domain is missing, malformed or does not fit the request."""


class NotInstalledError(InputError, ModuleNotFoundError):
    """A package, or a part of Sfumato, that is not installed here; the message names what to install."""


class BudgetError(SfumatoError):
    """A limit on ε would be passed; nothing was spent and nothing was read."""


class PrivacyError(SfumatoError):
    """The request would void a guarantee, whatever its budget."""


class PrivacyWarning(UserWarning):
    """More may be spent, or told, than each guarantee by itself says. Make it an error to be stopped there."""


class LedgerError(SfumatoError):
    """The ledger is missing, damaged, from another version or cannot be written."""
