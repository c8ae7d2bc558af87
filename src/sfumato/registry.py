"""The registry of mechanisms: plan checking, previews, the command line's help, the documentation and the audit read it.

One `Mechanism` says what it is called, which questions it answers, its parameters, what it needs and how it is run. So
adding a mechanism is one file and one line, inside the package or out of it:

    from sfumato.registry import Mechanism, register

    register(Mechanism("my-histogram", ("histogram",), run, "what it does, in one sentence"))

Installed packages may announce theirs under the entry point group ``sfumato.mechanisms``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Literal

from sfumato.errors import InputError
from sfumato.offers import AUTO
from sfumato.privacy.source import Source
from sfumato.privacy.units import positive_nano
from sfumato.registry_homes import HOMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Attack", "Mechanism", "Parameter", "mechanism", "mechanisms", "register"]

Type = Literal["text", "texts", "flag", "whole", "number", "numbers", "epsilon", "file", "any"]
_IN_WORDS: Mapping[str, str] = {
    "text": "a text",
    "texts": "a list of texts",
    "flag": "true or false",
    "whole": "a whole number",
    "number": "a number",
    "numbers": "a list of numbers",
    "epsilon": "an ε, a number above 0",
    "file": "the path of a file, or what it holds",
    "any": "see its help",
}


@dataclass(frozen=True)
class Parameter:
    """Something a release may say beside the common keys.

    Attributes
    ----------
    name : str
        The key.
    type : str
        What its value is: "text", "texts", "flag", "whole", "number", "numbers", "epsilon", "file" or "any". A file is
        named from the folder of the plan.
    help : str
        What it means, in a few words.
    default : object
        What holds if it is left out; None if the mechanism decides.
    choices : tuple of str
        The only values, if it has a list of them.
    low, high : float or None
        The range of a number.
    required : bool
        Whether it must be given.
    words : tuple of str
        Texts that are taken beside what the type says, as "auto" beside a number.
    all_columns : bool
        Whether every column of the schema is read where it is left out; so it is for what is called "attributes".

    Examples
    --------
    >>> delta = Parameter("delta", "number", "how steeply budgets fall", low=0, high=1, default=0.075)
    >>> delta.describe()
    'a number from 0 to 1 (default 0.075)'
    >>> delta.check(2, "release 'wards'")
    Traceback (most recent call last):
    ...
    sfumato.errors.InputError: `delta` of release 'wards' is a number from 0 to 1, got 2
    """

    name: str
    type: Type
    help: str
    default: Any = None
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    required: bool = False
    words: tuple[str, ...] = ()
    all_columns: bool = False

    def __post_init__(self) -> None:
        # Agreed for every kind: a release without `attributes` may use all of them, and is charged to all of them.
        object.__setattr__(self, "all_columns", self.all_columns or self.name == "attributes")

    def describe(self) -> str:
        """Type, range and default in words."""
        return self._values() + (f" (default {self.default})" if self.default is not None else "")

    def check(self, value: Any, place: str) -> Any:
        """The `value`, or an error that says what it should be; `place` names the release."""
        if value is None and not self.required:
            return None
        if value is None:
            raise InputError(f"{place} needs `{self.name}`, {self._values()}: {self.help}")
        if self.type == "texts" and isinstance(value, str):
            value = [value]
        if not self._fits(value):
            raise InputError(f"`{self.name}` of {place} is {self._values()}, got {value!r}")
        if self.type == "epsilon":
            positive_nano(value, f"`{self.name}` of {place}")
        return value

    def _fits(self, value: Any) -> bool:
        if isinstance(value, str) and value in self.words:
            return True
        if self.choices and value not in self.choices:
            return False
        numbers = value if self.type == "numbers" and isinstance(value, list | tuple) else [value]
        fits: Mapping[str, bool] = {
            "text": isinstance(value, str),
            "texts": isinstance(value, list | tuple) and bool(value) and all(isinstance(v, str) for v in value),
            "flag": isinstance(value, bool),
            "whole": _is_number(value) and value == int(value),
            "number": _is_number(value),
            "numbers": isinstance(value, list | tuple) and bool(value) and all(_is_number(v) for v in value),
            "epsilon": not isinstance(value, bool),
            "file": True,
            "any": True,
        }
        return fits[self.type] and all(self._in_range(v) for v in numbers if _is_number(v))

    def _in_range(self, number: float) -> bool:
        return (self.low is None or number >= self.low) and (self.high is None or number <= self.high)

    def _values(self) -> str:
        if self.choices:
            return "one of " + ", ".join(repr(c) for c in self.choices)
        words = _IN_WORDS[self.type]
        if self.low is not None and self.high is not None:
            words = f"{words} from {_written(self.low)} to {_written(self.high)}"
        elif self.low is not None:
            words = f"{words} of at least {_written(self.low)}"
        return words + "".join(f", or {word!r}" for word in self.words)


def _written(limit: float) -> str:
    return f"{limit:,.0f}" if limit == int(limit) else f"{limit:,g}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


@dataclass(frozen=True)
class Attack:
    """How the audit tries a mechanism: ``draw(which, n, source)`` gives n outputs under neighbour 0 or 1.

    Attributes
    ----------
    claimed : int
        What the mechanism says it loses on this pair, in nano-ε.
    draw : callable
        ``draw(which, n, source)``: n outputs, one number each.
    neighbours : str
        The pair in words.
    most : int
        The largest number of outputs to draw, for mechanisms that cannot draw many at once.
    """

    claimed: int
    draw: Callable[[int, int, Source], NDArray[Any]]
    neighbours: str
    most: int = 4_000


@dataclass(frozen=True, eq=False)
class Mechanism:
    """One entry of the registry.

    Attributes
    ----------
    name : str
        As plans and calls spell it.
    kinds : tuple of str
        The questions it answers.
    make : callable
        What its family runs. For a histogram ``make(counts, *, rates, meter, **parameters)`` (see
        `sfumato.histograms`); for counts, sums and means ``make(question, **parameters)``, a plan (see
        `sfumato.people`); for synthesize a `Publisher` class.
    summary : str
        What it does, in one sentence.
    parameters : tuple of Parameter
        What a plan may set.
    needs : tuple of str
        What must hold for it to be offered: "order" (bins in a meaningful order), "one epsilon", "personal budgets",
        "by" (a figure per group).
    expected : callable, optional
        Expected error from public facts, as its family defines it.
    rank : mapping of str to int
        Its place in the measured comparison, per purpose; the unranked come last, in the order of registration.
    paper : str
        Where it comes from.
    attack : callable, optional
        Makes the `Attack` of its audit; without one its kind's common attack is used.
    """

    name: str
    kinds: tuple[str, ...]
    make: Callable[..., Any]
    summary: str
    parameters: tuple[Parameter, ...] = ()
    needs: tuple[str, ...] = ()
    expected: Callable[..., tuple[float | None, str]] | None = None
    rank: Mapping[str, int] = field(default_factory=dict)
    paper: str = ""
    attack: Callable[[], Attack] | None = None

    def check(self, given: Mapping[str, Any], place: str) -> dict[str, Any]:
        """Its parameters among `given`, checked; those left out are left to its defaults. `place` names the release."""
        found = {p.name: p.check(given.get(p.name), place) for p in self.parameters}
        return {name: value for name, value in found.items() if value is not None}


_MECHANISMS: dict[tuple[str, str], Mechanism] = {}
_loaded: set[str] = set()


def register(mechanism: Mechanism) -> Mechanism:
    """Make a mechanism known under its name, for every question it answers.

    Parameters
    ----------
    mechanism : Mechanism
        The entry.

    Returns
    -------
    Mechanism
        The same.

    Raises
    ------
    InputError
        If another mechanism has that name, or the name is "auto", which is the selector.
    """
    if mechanism.name == AUTO:
        raise InputError(f"{AUTO!r} is the selector, the best offer by preview; give the mechanism a name of its own")
    for kind in mechanism.kinds:
        known = _MECHANISMS.get((kind, mechanism.name))
        if known is not None and known.make is not mechanism.make:
            raise InputError(f"two mechanisms for {kind} are called {mechanism.name!r}; rename one")
        _MECHANISMS[kind, mechanism.name] = mechanism
    return mechanism


def forget(name: str) -> None:
    """Take a mechanism out of the registry again."""
    for key in [k for k in _MECHANISMS if k[1] == name]:
        del _MECHANISMS[key]


def mechanisms(kind: str | None = None) -> tuple[Mechanism, ...]:
    """Every mechanism, or those that answer one kind of question.

    Parameters
    ----------
    kind : str, optional
        The question: "count", "histogram" and so on.

    Returns
    -------
    tuple of Mechanism
        Family by family, each in the order in which they were registered.

    Examples
    --------
    >>> [m.name for m in mechanisms("synthesize")][:2]
    ['privpfc', 'diffgen']
    """
    _load(kind)
    found = [m for (of, _), m in _MECHANISMS.items() if kind in (None, of)]
    # Whichever family was imported first must not decide the order of a list.
    return tuple(sorted(dict.fromkeys(found), key=_family))


def _family(entry: Mechanism) -> int:
    """The place of its family; what comes from outside is last."""
    homes = [home.rpartition(".")[0] for home in HOMES]
    return next((i for i, home in enumerate(homes) if entry.make.__module__.startswith(home + ".")), len(homes))


def mechanism(kind: str, name: str) -> Mechanism:
    """One mechanism by name.

    Parameters
    ----------
    kind : str
        The question it answers.
    name : str
        As plans spell it.

    Returns
    -------
    Mechanism
    """
    _load(kind)
    if (kind, name) not in _MECHANISMS:
        known = [m.name for m in mechanisms(kind)]
        raise InputError(f"no mechanism {name!r} for {kind}; {nearest(name, [AUTO, *known])}")
    return _MECHANISMS[kind, name]


def ranked(kind: str, purpose: str) -> list[Mechanism]:
    """The mechanisms for a question, by their place in the measured comparison."""
    found = mechanisms(kind)
    return sorted(found, key=lambda m: m.rank.get(purpose, len(found) + 1))


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a name that is not known.

    >>> nearest("hihg", ["low", "high"])
    "did you mean 'high'? Known: low, high"
    """
    from sfumato.tables.words import did_you_mean

    return did_you_mean(name, known)


def _load(kind: str | None) -> None:
    """The package's own mechanisms for a kind, or all; then what installed packages announce as `sfumato.mechanisms`."""
    for home, answers in HOMES.items():
        if home not in _loaded and (kind is None or kind in answers):
            _loaded.add(home)
            import_module(home)
    if "outside" not in _loaded:
        _loaded.add("outside")
        for found in entry_points(group="sfumato.mechanisms"):
            found.load()
