"""The errors people meet. Each message says what was asked, what is there and what to do.

No message may quote a private value: an error that depends on the private table is data too. Nor may it hold a secret: what
`hide` was told, and passwords in addresses, are left out of every message, whoever wrote it. Characters that a terminal
would obey are written as escapes, and what is too long to read is cut in the middle.
"""

import re

__all__ = [
    "BudgetError",
    "InputError",
    "LedgerError",
    "NotInstalledError",
    "PrivacyError",
    "PrivacyWarning",
    "SchemaError",
    "SfumatoError",
    "UntestedEngineWarning",
]


_LONGEST = 2_000
_PASSWORD = re.compile(r"(\b[A-Za-z][A-Za-z0-9+.-]*:/{1,2}[^\s:/@'\"]*):[^\s'\"]*@")
_hidden: dict[str, str] = {}


def hide(secret: str, shown: str) -> None:
    """From now on messages show `shown` instead of `secret`."""
    _hidden[secret] = shown


def masked(text: str, *, shortest: int = 4) -> str:
    """A text without the secrets that `hide` was told; those of fewer characters than `shortest` are in too many words."""
    for secret in sorted(_hidden, key=len, reverse=True):
        if len(secret) >= shortest:
            text = text.replace(secret, _hidden[secret])
    return text


def to_show(text: str) -> str:
    """A text as a terminal may show it: without secrets, controls and what nobody would read.

    >>> to_show("no file 'a\\x1b[2J' at postgresql://ann:hush@host/db")
    "no file 'a\\\\x1b[2J' at postgresql://ann@host/db"
    """
    text = _PASSWORD.sub(r"\1@", masked(text))
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} [...] {text[-_LONGEST // 2 :]}"
    return printable(text)


def printable(text: str) -> str:
    """A text in which characters that a terminal would obey are written as escapes; lines stay lines.

    >>> printable("a\\x1b[2J")
    'a\\\\x1b[2J'
    """
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


class SfumatoError(ValueError):
    """Anything Sfumato refuses to do; the command line exits with code 2 on it."""

    def __str__(self) -> str:
        return to_show(super().__str__())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


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


class UntestedEngineWarning(UserWarning):
    """An engine was opened that the agreement suite was never run on. Make it an error to be stopped there."""


class LedgerError(SfumatoError):
    """The ledger is missing, damaged, from another version or cannot be written."""
