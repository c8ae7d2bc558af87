"""True or false, with a name for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SchemaError
from sfumato.tables.columns import Column, Expr, number_column
from sfumato.tables.domains.categorical import Categorical
from sfumato.tables.domains.declared import extras, register
from sfumato.tables.one_value import number_of, text_of
from sfumato.tables.values import elements, numbers, of_one_type

TRUE_WORDS: Final = ("true", "t", "yes", "y", "1")
FALSE_WORDS: Final = ("false", "f", "no", "n", "0")


@register
@dataclass(frozen=True, init=False, repr=False)
class Boolean(Categorical):
    """True or false: cell 0 is false, cell 1 is true.

    Read are true/false columns, the numbers 1 and 0, and the words true, t, yes, y, 1 and false, f, no, n, 0 in capitals or
    not, without blanks around them. Anything else is missing.

    Parameters
    ----------
    true, false : str
        What the two are called where they are shown. A condition may use these names, or true and false.
    other : bool or str
        Adds a cell for everything else.
    missing : bool or str
        Adds a last cell for rows without a value that can be read, which is everything else.

    Examples
    --------
    >>> smoker = Boolean(true="smokes", false="does not", missing="not asked")
    >>> smoker.labels(), smoker.cells([True, 0, "Yes", None, 2]).tolist()
    (('does not', 'smokes', 'not asked'), [1, 0, 1, 2, 2])
    """

    type_name: ClassVar[str] = "boolean"
    keys: ClassVar[tuple[str, ...]] = ("true", "false", "other", "missing")

    def __init__(
        self, true: str = "true", false: str = "false", *, other: bool | str = False, missing: bool | str = False
    ) -> None:
        for name, label in (("true", true), ("false", false)):
            if not isinstance(label, str) or not label:
                raise SchemaError(f"{name} must be a label in quotes, such as {name} = 'yes', got {label!r}")
        if true.lower() in FALSE_WORDS or false.lower() in TRUE_WORDS:
            raise SchemaError(f"true = {true!r} and false = {false!r} would be read the other way round; exchange them")
        super().__init__((False, True), other, None, missing, (false, true))

    def __repr__(self) -> str:
        more = "".join(f", {key}={label!r}" for key in ("other", "missing") if (label := getattr(self, key)))
        return f"Boolean({self.value_labels[1]!r}, {self.value_labels[0]!r}{more})"

    # ------------------------------------------------------------------------------- values in memory

    def places(self, values: Any) -> NDArray[np.int64]:
        """0 for false, 1 for true, -1 for anything else in `values`."""
        if of_one_type(values) is not None:
            given = numbers(values)
            return np.where(given == 1, 1, np.where(given == 0, 0, -1)).astype(np.int64)
        return np.array([truth(v) for v in elements(values)], dtype=np.int64)

    def absent(self, values: Any) -> NDArray[np.bool_]:
        return self.places(values) < 0

    def to_arrow(self, values: list[Any]) -> Any:
        import pyarrow as pa

        return pa.array([{1: True, 0: False}.get(truth(v)) for v in values], pa.bool_())

    # ---------------------------------------------------------------------------------------- engines

    def column(self, expr: Expr, *, engine: str, what: str, text: bool = False) -> Column:
        """`expr` as true/false, judged by its type.

        `engine` is the engine's name, `what` names the column in errors, `text` is for untyped tables (CSV).
        """
        import ibis

        kind = expr.type()
        if kind.is_boolean():
            return Column(expr, "bool")
        if kind.is_string():
            word = expr.lower()
            return Column(ibis.cases((word.isin(TRUE_WORDS), True), (word.isin(FALSE_WORDS), False)), "bool")
        if not kind.is_numeric():
            raise SchemaError(f"{what} is true/false in the schema, but the table holds {kind}; convert it")
        number = number_column(expr, engine=engine, what=what).expr
        return Column(ibis.cases((number == 1, True), (number == 0, False)), "bool")

    # ----------------------------------------------------------------------------------- schema files

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Boolean:
        return cls(**plain)

    def to_plain(self) -> dict[str, Any]:
        given = {"true": self.value_labels[1], "false": self.value_labels[0]}
        return {key: label for key, label in given.items() if label != key} | extras(self)


def truth(value: Any) -> int:
    """1 for true, 0 for false, -1 for what is neither.

    >>> [truth(v) for v in (True, 0.0, "T", "no", "maybe", 2, None)]
    [1, 0, 1, 0, -1, -1, -1]
    """
    if issubclass(type(value), str):
        word = (text_of(value) or "").lower()
        return 1 if word in TRUE_WORDS else 0 if word in FALSE_WORDS else -1
    number = number_of(value)
    return int(number) if number in (0.0, 1.0) else -1
