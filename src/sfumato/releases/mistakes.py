"""What is wrong with a plan: the first mistake raised, or all of them gathered.

Whoever reads a plan passes every step through `Mistakes`. `read_plan` stops at the first; `sfumato check` goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from sfumato.errors import InputError, SfumatoError
from sfumato.registry import nearest

T = TypeVar("T")


class Mistakes:
    """The mistakes of a plan, one sentence each.

    Parameters
    ----------
    gather : bool
        Whether to go on after a mistake.

    Attributes
    ----------
    found : list of str
        What was found so far, each once.
    times : int
        How often something was found.

    Examples
    --------
    >>> mistakes = Mistakes(gather=True)
    >>> mistakes.note(lambda: check_keys({"epsilom": 1}, ["epsilon"], "[ledger]", mistakes))
    >>> mistakes.found
    ["[ledger] has an unknown key 'epsilom'; did you mean 'epsilon'? Known: epsilon"]
    """

    def __init__(self, *, gather: bool = False) -> None:
        self._gather = gather
        self.found: list[str] = []
        self.times = 0

    def add(self, error: SfumatoError) -> None:
        """Write a mistake down, or raise it."""
        if not self._gather:
            raise error
        self.times += 1
        if str(error) not in self.found:
            self.found.append(str(error))

    def note(self, read: Callable[[], T]) -> T | None:
        """What `read` gives; None if it finds a mistake, which is written down."""
        try:
            return read()
        except SfumatoError as error:
            self.add(error)
            return None


@contextmanager
def at(place: str, known_by: str | None = None) -> Iterator[None]:
    """Let every refusal inside name its place, unless it holds `known_by` (by default the place) already."""
    try:
        yield
    except SfumatoError as error:
        if (known_by or place) in str(error):
            raise
        raise type(error)(f"{place}: {error}") from None


def at_release(name: str) -> AbstractContextManager[None]:
    """Let every refusal inside say which release it is about."""
    return at(f"release {name!r}", repr(name))


def check_keys(given: Mapping[str, Any], known: Sequence[str], where: str, mistakes: Mistakes | None = None) -> None:
    """Refuse unknown keys with the nearest known one."""
    mistakes = mistakes or Mistakes()
    for key in given:
        if key not in known:
            mistakes.add(InputError(f"{where} has an unknown key {key!r}; {nearest(str(key), known)}"))


def table_of(value: Any, where: str) -> Mapping[str, Any]:
    """A table of keys and values."""
    if not isinstance(value, Mapping):
        raise InputError(f"{where} must be a table of keys and values, got {value!r}")
    return value


def text_of(table: Mapping[str, Any], key: str, where: str) -> str:
    """A text that must be there."""
    value = table.get(key)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where} needs `{key}`, a text; {'it is missing' if value is None else f'got {value!r}'}")
    return value


def flag_of(table: Mapping[str, Any], key: str, where: str) -> bool | None:
    """True, false or nothing."""
    value = table.get(key)
    if value is not None and not isinstance(value, bool):
        raise InputError(f"{where} has `{key}` = {value!r}; it is true or false, without quotes")
    return value
