"""A private value has a type of its own, and only the Meter opens it.

`Exact[T]` holds what was computed from a private table. Mechanisms say what is to be done with it (`map`, `zip`, indexing
by something public) and hand it to a noisy call. They cannot look: an ``if``, a comparison, a length, a loop, a picture of
it or a conversion is an error, for mypy and when the program runs. So whatever a mechanism knows is public, or came out of
the Meter.

An `Exact` is computed when the Meter opens it, that is after its price was accepted, and once.

**What it carries.** How many rows of the table one person may own, and which samples it was made of: a Meter that prices
fewer rows, or a sample that was not drawn, is refused (`Meter`).

**What it cannot see.** A function given to `map` must be pure: the language cannot keep it from putting a value aside. A
reviewer reads the functions that are mapped, and those that open (`docs/soundness.md` lists them).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeVar, cast, overload

from sfumato.errors import PrivacyError

T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S")
A = TypeVar("A")
B = TypeVar("B")

COULD_NOT_COMPUTE: Final = (
    "a private value could not be computed from the table; why is not told, because it may depend on the data. "
    "Check the table against its schema on its own side"
)
_UNOPENED: Final = object()


class Exact(Generic[T_co]):
    """A value computed from a private table.

    Parameters
    ----------
    value : object
        The value.
    rows_per_person : int
        How many rows of the table behind it one person may own.

    Examples
    --------
    >>> from sfumato.privacy import Meter
    >>> ages = Exact([31, 77, 64])
    >>> old = ages.map(lambda values: [sum(age >= 65 for age in values)])
    >>> old
    <Exact: a private value>
    >>> Meter().laplace(old, rate=50 * 10**9).tolist()
    [1]
    >>> len(ages)
    Traceback (most recent call last):
    ...
    sfumato.errors.PrivacyError: len of a private value: ask for it with noise, as meter.laplace(exact.map(...)) ...
    """

    __slots__ = ("__make", "__rows", "__samples", "__value", "__weakref__")

    def __init__(self, value: T_co, *, rows_per_person: int = 1) -> None:
        self.__value: Any = value
        self.__make: Callable[[bool], Any] | None = None
        self.__rows = rows_per_person
        self.__samples: frozenset[int] = frozenset()

    @property
    def rows_per_person(self) -> int:
        """How many rows of the table behind it one person may own."""
        return self.__rows

    @property
    def samples(self) -> frozenset[int]:
        """The samples it was made of (see `Meter.sampled`)."""
        return self.__samples

    @classmethod
    def reading(cls, read: Callable[[], S], *, rows_per_person: int = 1) -> Exact[S]:
        """What `read` will return. It is called when the Meter opens the value and not before, and once.

        Parameters
        ----------
        read : function without arguments
            Reads the table.
        rows_per_person : int
            How many rows of the table one person may own.

        Returns
        -------
        Exact
        """
        return _made(lambda _: read(), rows_per_person=rows_per_person, samples=frozenset())

    def map(self, function: Callable[[T_co], S]) -> Exact[S]:
        """The value of a pure function of this one.

        Parameters
        ----------
        function : callable
            Called when the result is opened. Whatever it raises becomes one sentence without the value.

        Returns
        -------
        Exact
        """
        return _made(
            lambda tell: function(self._opened_by_the_meter(tell)),
            rows_per_person=self.rows_per_person,
            samples=self.samples,
        )

    @overload
    def zip(self, other: Exact[A], /) -> Exact[tuple[T_co, A]]: ...
    @overload
    def zip(self, other: Exact[A], third: Exact[B], /) -> Exact[tuple[T_co, A, B]]: ...
    @overload
    def zip(self, *others: Exact[Any]) -> Exact[tuple[Any, ...]]: ...
    def zip(self, *others: Exact[Any]) -> Exact[Any]:
        """This value and `others` as one tuple."""
        for other in others:
            if not isinstance(other, Exact):
                raise PrivacyError(f"zip joins private values; a {type(other).__name__} is public: use it inside map")
        everything = (self, *others)
        return _made(
            lambda tell: tuple(e._opened_by_the_meter(tell) for e in everything),
            rows_per_person=max(e.rows_per_person for e in everything),
            samples=frozenset[int]().union(*(e.samples for e in everything)),
        )

    def __getitem__(self, index: Any) -> Exact[Any]:
        """The part at a public index."""
        if isinstance(index, Exact) or (isinstance(index, tuple) and any(isinstance(i, Exact) for i in index)):
            raise PrivacyError("the index of a private value must be public; zip the two and index inside map")
        return self.map(partial(_item, index=index))

    def drawn_from(self, sample: int) -> Exact[T_co]:
        """The same value, marked as made of the `sample` of that number. For the Meter, when it draws one."""
        same: Exact[T_co] = self.map(_itself)
        same.__samples = self.__samples | frozenset({sample})
        return same

    def _opened_by_the_meter(self, tell: bool = False) -> T_co:
        """The value itself. The functions that may call this are listed in tests/privacy/test_openers.py.

        `tell` passes failures on as they are: for experiments, whose table is not private.
        """
        make = self.__make
        if make is None:
            return cast(T_co, self.__value)
        value = make(tell) if tell else _quietly(make)
        if isinstance(value, Exact):
            raise PrivacyError("a function given to map returned an Exact: zip the two values first, then map")
        self.__value, self.__make = value, None
        return cast(T_co, value)

    def __repr__(self) -> str:
        return "<Exact: a private value>"

    __str__ = __repr__

    def __format__(self, _spec: str) -> str:
        return repr(self)

    if not TYPE_CHECKING:  # mypy sees none of these, so each is a type error before it is one at run time

        def _set(self, make: Callable[[bool], Any], rows_per_person: int, samples: frozenset[int]) -> None:
            self.__value, self.__make = _UNOPENED, make
            self.__rows, self.__samples = rows_per_person, samples

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"{name!r} of a private value: use it inside exact.map(lambda value: value.{name} ...)")

        __hash__ = None


def _made(make: Callable[[bool], Any], *, rows_per_person: int, samples: frozenset[int]) -> Exact[Any]:
    exact: Exact[Any] = Exact.__new__(Exact)
    exact._set(make, rows_per_person, samples)  # type: ignore[attr-defined]
    return exact


def _itself(value: Any) -> Any:
    return value


def _item(value: Any, index: Any) -> Any:
    return value[index]


def _quietly(make: Callable[[bool], S]) -> S:
    """Call it; whatever goes wrong becomes one sentence, with nothing of the failure hanging on it."""
    try:
        return make(False)
    except Exception:  # its kind and its words may depend on the data
        pass
    # Raised outside the handler: inside it, the new error would carry the old one in __context__.
    raise PrivacyError(COULD_NOT_COMPUTE)


def _refused(what: str) -> Callable[..., NoReturn]:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise PrivacyError(
            f"{what} of a private value: ask for it with noise, as meter.laplace(exact.map(...)) or meter.choose(...), "
            "or keep it private with exact.map"
        )

    return refuse


_ARITHMETIC = "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"
_NO_METHODS: Final = {
    "truth": ["__bool__"],
    "number": ["__int__", "__float__", "__complex__", "__index__", "__round__", "__trunc__", "__floor__", "__ceil__"],
    "len": ["__len__", "__length_hint__"],
    "loop": ["__iter__", "__reversed__", "__contains__"],
    "comparison": ["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"],
    "bytes": ["__bytes__"],
    "pickle or copy": ["__reduce__", "__reduce_ex__", "__getstate__", "__copy__", "__deepcopy__"],
    "NumPy conversion": ["__array__", "__array_ufunc__", "__array_function__"],
    "change": ["__setitem__", "__delitem__"],
    "arithmetic": [
        *(f"__{side}{name}__" for side in ("", "r", "i") for name in _ARITHMETIC),
        *("__neg__", "__pos__", "__abs__", "__invert__", "__divmod__", "__rdivmod__"),
    ],
}
for _what, _names in _NO_METHODS.items():
    for _name in _names:
        setattr(Exact, _name, _refused(_what))
