"""What dates and timestamps share: whole numbers on a public line (days or seconds since 1970), cut into periods with names.

Everything about the line, such as bounds, clamping, comparisons and sums, is that of whole numbers (`Numeric`); what is
added here is the calendar. Periods are either intervals of the line (days, weeks, months, quarters, years) or come round
again (hours of the day, days of the week).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, SchemaError
from sfumato.tables.columns import Column, Expr, all_of, any_of
from sfumato.tables.domains.base import Domain
from sfumato.tables.domains.cells import Codes, Groups, Partitions
from sfumato.tables.domains.declared import extra_labels, extras
from sfumato.tables.domains.moment_expressions import moment_steps
from sfumato.tables.domains.moments import moments
from sfumato.tables.domains.number_expressions import COMPARISONS
from sfumato.tables.domains.numeric import MAX_BINS, MAX_EDGES, Numeric
from sfumato.tables.domains.periods import DAY, date_of, moment_text, name_of, period, starts
from sfumato.tables.domains.rounds import Rounds
from sfumato.tables.domains.zones import UTC, on_the_clock
from sfumato.tables.lattice import MAX_STEPS, Lattice
from sfumato.tables.notes import Wording
from sfumato.tables.predicate_tree import Atom, Compare, InCells, Op, Predicate
from sfumato.tables.raw_groups import Grouping, whole_grouping
from sfumato.tables.words import did_you_mean

_ABOVE = {"day": ("year", "quarter", "month"), "month": ("year", "quarter"), "quarter": ("year",), "week": ()}


@dataclass(frozen=True)
class Dated(Domain):
    """Dates or times between two public ones; see `Date` and `Timestamp`, which document the parameters."""

    ordered: ClassVar[bool] = True
    adds_up: ClassVar[bool] = False
    unit: ClassVar[int]  # steps of the line in a day: 1, or the seconds
    periods: ClassVar[tuple[str, ...]]

    first: str
    last: str
    by: str = "month"
    outside: Literal["clamp", "other"] | None = None  # by default clamped, and other where periods come round again
    other: bool | str = False
    missing: bool | str = False
    zone: ClassVar[str] = UTC
    taxonomy: ClassVar[None] = None  # type: ignore[misc]  # the calendar is the tree

    def __post_init__(self) -> None:
        put = object.__setattr__
        timed = self.unit == DAY
        for key, end in (("first", 0), ("last", 1)):
            if getattr(self, key) is None:
                raise SchemaError(f"a {self.type_name} column needs public bounds: give {key} = '2024-01-01' or the like")
            try:
                put(self, key, moment_text(period(getattr(self, key), seconds=timed)[end], seconds=timed))
            except SchemaError as error:
                raise SchemaError(f"{key}: {error}") from None
        if self.low >= self.high:
            raise SchemaError(f"first must be before last, got first = {self.first!r}, last = {self.last!r}")
        if self.by not in self.periods:
            raise SchemaError(f"no cells by {self.by!r}; {did_you_mean(str(self.by), self.periods)}")
        if self.outside not in (None, "clamp", "other"):
            raise SchemaError(f"outside must be 'clamp' or 'other', got {self.outside!r}")
        if self.rounds is not None and self.outside == "clamp":
            raise SchemaError(
                f"clamped values would all fall into one {self.by}; leave out outside, or say outside = 'other'"
            )
        put(self, "outside", self.outside or ("clamp" if self.rounds is None else "other"))
        self._check_size()
        extra_labels(self, self.names() if self.listed <= MAX_EDGES else (), other=self.other or self.outside == "other")

    def _check_size(self) -> None:
        most = MAX_BINS if self.by == "day" else MAX_EDGES
        cells = (self.high - self.low) // self.unit + 1 if self.by == "day" else self.listed
        if cells > most:
            raise SchemaError(
                f"{cells:,} cells by {self.by} from {self.first} to {self.last}; at most {most:,}: use a longer by"
            )

    # ------------------------------------------------------------------------------------------ cells

    @cached_property
    def low(self) -> int:
        """The first day or second, since 1970."""
        return period(self.first, seconds=self.unit == DAY)[0]

    @cached_property
    def high(self) -> int:
        """The last day or second, since 1970."""
        return period(self.last, seconds=self.unit == DAY)[1]

    @cached_property
    def rounds(self) -> Rounds | None:
        """Periods that come round again."""
        return Rounds.of(self.by, self.unit)

    @cached_property
    def line(self) -> Numeric:
        """Bounds and comparisons, as of whole numbers."""
        clamp: Any = self.outside
        return Numeric(self.low, self.high, bins=1, integer=True, outside=clamp)

    @cached_property
    def days(self) -> Codes:
        """The days on which the cells begin, since 1970, and the one after the last: of periods that are intervals."""
        low, high = self.low // self.unit, self.high // self.unit
        return np.array([*starts(low, high, self.by), high + 1], dtype=np.int64)

    @property
    def listed(self) -> int:
        return self.rounds.cells if self.rounds is not None else len(self.days) - 1

    def names(self) -> tuple[str, ...]:
        if self.rounds is not None:
            return self.rounds.names
        return tuple(name_of(date_of(day), self.by) for day in self.days[:-1].tolist())

    def told(self) -> str:
        beyond = "clamped to these bounds" if self.outside == "clamp" else "counted as other"
        clock = "" if self.unit != DAY else f", on the clocks of {self.zone}"
        return f"by {self.by} from {self.first} to {self.last}{clock}, values beyond {beyond}"

    def levels(self) -> tuple[Partitions, Groups]:
        """Days in months, quarters and years; weeks in the years they belong to; other periods in pairs."""
        if self.by not in _ABOVE:
            return super().levels()
        names, dates = self.names(), [date_of(day) for day in self.days[:-1].tolist()]
        columns = [[name_of(d, by) for d in dates] for by in _ABOVE[self.by]] or [[name[:4] for name in names]]
        partitions, groups = [np.zeros(self.size, dtype=np.int64)], [["all"]]
        for column in (*columns, names):
            found = list(dict.fromkeys(column))
            place = {name: code for code, name in enumerate(found)}
            more = len(found) + np.arange(len(self.extra))
            partitions.append(np.append(np.array([place[name] for name in column], dtype=np.int64), more))
            groups.append([*found, *self.extra])
        return partitions, groups

    # ------------------------------------------------------------------------------- values in memory

    def _numbers(self, values: Any) -> tuple[Codes, NDArray[np.bool_]]:
        """Days or seconds on the clock of the zone, and where there are any."""
        seconds, known, aware = moments(values)
        if self.unit != DAY:
            return seconds // DAY, known & ~aware
        return np.where(aware, on_the_clock(seconds, self.zone, self.low, self.high), seconds), known

    def places(self, values: Any) -> Codes:
        """The cell of each of `values`, -1 where it is outside the domain: the rule of the engines, in memory."""
        numbers, known = self._numbers(values)
        if self.outside == "other":
            known = known & (numbers >= self.low) & (numbers <= self.high)
        return np.where(known, self.cells_of_numbers(np.clip(numbers, self.low, self.high)), -1)

    def cells_of_numbers(self, numbers: Codes) -> Codes:
        """The cell of each of `numbers` between the bounds."""
        if self.rounds is not None:
            return self.rounds.cells_of(numbers)
        return np.searchsorted(self.days, numbers // self.unit, side="right").astype(np.int64) - 1

    def absent(self, values: Any) -> NDArray[np.bool_]:
        return ~self._numbers(values)[1]

    def to_arrow(self, values: list[Any]) -> Any:
        import pyarrow as pa

        numbers, known = self._numbers(values)
        held = np.clip(numbers, self.low - 1, self.high + 1)
        if self.unit == DAY:
            return pa.array(held, pa.timestamp("s"), mask=~known)
        return pa.array(held.astype(np.int32), pa.int32(), mask=~known).cast(pa.date32())

    # ---------------------------------------------------------------------------------------- engines

    def column(self, expr: Expr, *, engine: str, what: str, text: bool = False) -> Column:
        """`expr` as whole days or seconds on the clock of the zone, judged by its type.

        `engine` is the engine's name, `what` names the column in errors, `text` is for untyped tables (CSV).
        """
        return Column(reduce(lambda found, step: step(found), self.steps(expr.type(), what=what), expr), "int")

    def steps(self, kind: Any, *, what: str) -> Sequence[Callable[[Expr], Expr]]:
        return moment_steps(kind, self, what=what)

    def cell(self, column: Column) -> Expr:
        if self.rounds is not None:
            found = self.rounds.cell(self.line.number(column), self.low)
        elif self.by == "day":
            found = ((self.line.number(column) - float(self.days[0] * self.unit)) / float(self.unit)).floor()
        else:
            found = self._search(column)
        return found.fill_null(self.listed) if self.other else found

    def _search(self, column: Column) -> Expr:
        """The period by comparisons; NULL outside the domain."""
        import ibis

        cuts = (self.days[1:-1] * self.unit).tolist()

        def search(low: int, high: int) -> Expr:
            if low == high:
                return ibis.literal(low, type="int64")
            middle = (low + high) // 2
            return ibis.ifelse(column.expr < cuts[middle], search(low, middle), search(middle + 1, high))

        return ibis.cases((self.line.inside(column), search(0, len(cuts))))

    def grouping(self, column: Column, *, blank: bool = False) -> Grouping:
        counts = blank or bool(self.extra)
        found = whole_grouping(column, self.low, self.high, self.code, absent_counts=counts)
        return found or super().grouping(column)

    def inside(self, column: Column) -> Expr:
        return self.line.inside(column)

    def number(self, column: Column) -> Expr:
        return self.line.number(column) - float(self.low)

    @property
    def whole_ends(self) -> tuple[int, int] | None:
        return self.low, self.high

    def lattice(self, steps: int | None = None, *, what: str = "the column") -> Lattice:
        """Days or seconds since `first`, in `steps` steps, by default one for each; `what` names the column in errors."""
        whole = self.high - self.low
        if steps is None and whole > MAX_STEPS:
            raise InputError(f"{what} spans {whole:,} seconds, more than the 2^30 steps of a lattice; give steps=1000000")
        steps = whole if steps is None else steps
        return Lattice(0.0, float(whole), steps, isinstance(steps, int) and steps % whole == 0)

    def wording(self, unit: str = "") -> Wording:
        return Wording(unit, self.first)

    def kept(self, column: Column) -> Expr:
        import ibis

        at = column.expr * (DAY // self.unit)
        return (ibis.timestamp("1970-01-01 00:00:00") + at.as_interval("s")).cast(
            "timestamp" if self.unit == DAY else "date"
        )

    # ---------------------------------------------------------------------------------------- `where`

    def compare(self, name: str, op: Op, value: Any) -> Predicate:
        found = self.extra_cell(name, op, value)
        if found is not None:
            return found
        if self.rounds is not None and value in self.rounds.names:
            at = self.rounds.names.index(value)
            codes = tuple(code for code in range(self.listed) if COMPARISONS[op](code, at))
            return InCells(name, codes, tuple(f"'{self.rounds.names[code]}'" for code in codes))
        try:
            period(value, seconds=self.unit == DAY)
        except SchemaError as error:
            raise SchemaError(f"column {name!r}: {error}") from None
        return Compare(name, op, value if isinstance(value, str) else str(value)[:19])

    def compared(self, column: Column, op: Op, value: Any) -> Expr:
        start, end = period(value, seconds=self.unit == DAY)
        if op in ("=", "!="):
            first, second = (">=", "<=") if op == "=" else ("<", ">")
            ends = [self.line.compared(column, first, start), self.line.compared(column, second, end)]  # type: ignore[arg-type]
            return all_of(ends) if op == "=" else any_of(ends)
        return self.line.compared(column, op, start if op in ("<", ">=") else end)

    def may_compare(self, op: Op, value: Any, witness: Any) -> bool:
        start, end = period(value, seconds=self.unit == DAY)
        if op in ("=", "!="):
            return bool((start <= witness <= end) == (op == "="))
        return bool(COMPARISONS[op](witness, start if op in ("<", ">=") else end))

    def cell_of_witness(self, witness: Any) -> int:
        return int(self.cells_of_numbers(np.array([int(witness)]))[0])

    def _cuts(self, atoms: Sequence[Atom]) -> list[int]:
        """Where something that `atoms` ask may change, from the first number of the line to the one after the last."""
        asked = [period(a.value, seconds=self.unit == DAY) for a in atoms if isinstance(a, Compare)]
        ends = {place for start, end in asked for place in (start, end + 1)}
        if self.rounds is None:
            named = {code for a in atoms if isinstance(a, InCells) for code in a.codes if code < self.listed}
            ends |= {int(self.days[code + k]) * self.unit for code in named for k in (0, 1)}
        return [self.low, *sorted(e for e in ends if self.low < e <= self.high), self.high + 1]

    def pieces(self, atoms: Sequence[Atom]) -> Sequence[tuple[Any, float]]:
        """Stretches of the line between the periods that `atoms` name, by length; where periods come round, by cell too."""
        cuts, whole = self._cuts(atoms), self.high + 1 - self.low
        stretches = list(itertools.pairwise(cuts))
        if self.rounds is None or not any(isinstance(a, InCells) for a in atoms):
            return [(a, (b - a) / whole) for a, b in stretches]
        found = [
            (self.rounds.first(code, a), self.rounds.count(code, a, b)) for a, b in stretches for code in range(self.listed)
        ]
        return [(place, count / whole) for place, count in found if count]

    def witnesses(self, atoms: Sequence[Atom]) -> Sequence[Any]:
        """One of each of `pieces` of `atoms`: they are whole numbers, and none of the pieces is empty."""
        return [place for place, _ in self.pieces(atoms)]

    # ----------------------------------------------------------------------------------- schema files

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Dated:
        return cls(**{"first": None, "last": None, **plain})

    def to_plain(self) -> dict[str, Any]:
        usual = "clamp" if self.rounds is None else "other"
        outside = {"outside": self.outside} if self.outside != usual else {}
        return {"first": self.first, "last": self.last, "by": self.by, **outside, **extras(self)}
