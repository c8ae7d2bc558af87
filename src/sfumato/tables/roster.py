"""Where each person's budget is written. The roster (person -> budget) is public input; the rows are not.

Four ways, all computed inside the engine:

- a numeric column of the table itself, in ε: ``Roster.column("epsilon")``
- consent tiers named in a column of the table: ``Roster.tiers({"open": 1.0, "standard": 0.2}, column="consent")``
- a separate public table with one row per person: ``Roster.table("roster.csv", person="patient", epsilon="epsilon")``
- people who change their minds, whose choices the ledger keeps: ``Roster.living({"open": 1.0, "standard": 0.2})``

A budget is turned into whole nano-ε, rounded down. A person without a budget (not in the roster, NULL, NaN, zero,
negative, an unknown tier) has budget 0 and contributes nothing. A person listed twice has the smaller budget. Whatever of
this a public roster table shows is said by `Roster.findings`, before anything is spent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, SchemaError
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.units import Epsilon, positive_nano
from sfumato.tables.columns import Expr, nano_budget, number_column, text_column
from sfumato.tables.engines import Engine, TableName, check_source, connect
from sfumato.tables.frames import number_array, person_array, text_array
from sfumato.tables.words import did_you_mean

if TYPE_CHECKING:
    from sfumato.tables.living import LivingRoster


@dataclass(frozen=True)
class Roster:
    """Where budgets come from; build it with `column`, `tiers`, `table`, `living` or `from_mapping`.

    Attributes
    ----------
    budget : str
        The column that holds the budget, in ε or as the name of a tier.
    tiers_nano : tuple of (name, int)
        The tiers with their budgets in nano-ε, in order of budget; empty where budgets are in ε.
    people : PersonBudgets or None
        The public head counts, where they are stated.
    source
        The roster table, if it is a separate one; otherwise None.
    source_table : str or (str, str), optional
        The roster table in a database.
    person : str or None
        The column of the roster table that names the person.
    fraction : Fraction
        The part of everyone's budget that this roster stands for; see `share`.

    Examples
    --------
    >>> roster = Roster.tiers({"open": 1.0, "strict": "0.01"}, column="consent", counts={"open": 90, "strict": 540})
    >>> roster.people
    PersonBudgets(630 people in 2 groups, ε 0.01 to 1)
    >>> roster.reads_table
    False
    """

    budget: str
    tiers_nano: tuple[tuple[str, int], ...] = ()  # sorted by budget, then name
    people: PersonBudgets | None = field(default=None, compare=False)
    source: Any = field(default=None, compare=False)
    source_table: TableName | None = None
    person: str | None = None
    fraction: Fraction = Fraction(1)

    @classmethod
    def column(cls, epsilon: str, *, people: PersonBudgets | None = None) -> Roster:
        """Budgets in the numeric column `epsilon` of the table; `people` states the public head counts, for previews."""
        return cls(_name(epsilon, "epsilon"), people=people)

    @classmethod
    def tiers(cls, tiers: Mapping[str, Epsilon], *, column: str, counts: Mapping[str, int] | None = None) -> Roster:
        """Consent `tiers` (ε by name) named in `column` of the table; `counts` states the public head counts, if known."""
        return cls(_name(column, "column"), tiers_nano=named_tiers(tiers), people=_people(tiers, counts))

    @classmethod
    def table(
        cls,
        source: Any,
        *,
        person: str,
        epsilon: str | None = None,
        tier: str | None = None,
        tiers: Mapping[str, Epsilon] | None = None,
        table: TableName | None = None,
    ) -> Roster:
        """A separate public table with one row per person.

        Parameters
        ----------
        source
            The roster: whatever `sfumato.tables.open` takes.
        person : str
            Its column that names the person.
        epsilon : str, optional
            Its column with budgets in ε.
        tier : str, optional
            Its column with names of tiers, instead of `epsilon`.
        tiers : mapping of str to ε, optional
            The budget of each tier.
        table : str or (str, str), optional
            The table in a database.

        Returns
        -------
        Roster
        """
        check_source(source, table)
        if (epsilon is None) == (tier is None) or (tier is None) != (tiers is None):
            raise InputError("a roster table needs epsilon='column', or tier='column' with tiers={'name': epsilon}")
        budget = _name(epsilon if tier is None else tier, "epsilon or tier")
        return cls(
            budget,
            tiers_nano=named_tiers(tiers) if tiers is not None else (),
            source=source,
            source_table=table,
            person=_name(person, "person"),
        )

    @staticmethod
    def living(
        tiers: Mapping[str, Epsilon],
        *,
        person: str | None = None,
        period: str | None = None,
        per_period: Mapping[str, Epsilon] | None = None,
        key: str | Path | None = None,
    ) -> LivingRoster:
        """People who join, change their grant and withdraw; the ledger keeps who chose what (see `Table.people`).

        They choose from the menu of `tiers` (ε by name), each with a cap `per_period` beside it, if one is given with the
        `period` ("year", "quarter" or "month"). `person` is the column that names people in files that are imported, by
        default that of the schema's unit; `key` the file with the key that identifiers are hashed with, by default beside
        the ledger.
        """
        from sfumato.tables.living import LivingRoster

        return LivingRoster.of(tiers, person=person, period=period, per_period=per_period, key=key)

    @classmethod
    def from_mapping(cls, plain: Mapping[str, Any]) -> Roster:
        """From `plain`, the keys of a plan file.

        >>> Roster.from_mapping({"column": "consent", "tiers": {"open": 1.0}}).tiers_nano
        (('open', 1000000000),)
        """
        if plain.get("living"):
            from sfumato.tables.living import LivingRoster

            return LivingRoster.from_keys(plain)
        plain = {name: value for name, value in plain.items() if name != "living"}
        known = ("column", "tiers", "counts", "source", "table", "person", "epsilon", "tier")
        for key in plain:
            if key not in known:
                raise InputError(f"budgets: unknown key {key!r}; {did_you_mean(key, known)}")
        if "source" in plain:
            if unused := {"column", "counts"} & set(plain):
                raise InputError(f"budgets: a roster table has no key {min(unused)!r}")
            if "person" not in plain:
                raise InputError("budgets: a roster table needs person = 'the column that names the person'")
            return cls.table(**plain)
        if "column" not in plain:
            raise InputError("budgets: give column = '...' of the table, or source = 'roster.csv' with person = '...'")
        if unused := {"table", "person", "epsilon", "tier"} & set(plain):
            raise InputError(f"budgets: the key {min(unused)!r} needs source = 'roster.csv'")
        if "tiers" in plain:
            return cls.tiers(plain["tiers"], column=plain["column"], counts=plain.get("counts"))
        if "counts" in plain:
            raise InputError("budgets: counts needs tiers = {name = epsilon}")
        return cls.column(plain["column"])

    def share(self, fraction: Fraction) -> Roster:
        """The same people with `fraction` of their budgets, rounded down as `PersonBudgets.share` does.

        >>> Roster.tiers({"open": 1.0}, column="consent").share(Fraction(1, 3)).tiers_nano
        (('open', 333333333),)
        """
        if not 0 < fraction <= 1 or fraction.denominator > 10**9:
            raise InputError(f"a share lies above 0 and at most 1, with at most nine decimals; got {fraction}")
        return replace(
            self,
            tiers_nano=tuple((name, nano * fraction.numerator // fraction.denominator) for name, nano in self.tiers_nano),
            people=None if self.people is None else self.people.share(fraction),
            fraction=self.fraction * fraction,
        )

    @property
    def in_table(self) -> bool:
        """Whether budgets are a column of the private table; otherwise they are joined on the person."""
        return self.source is None

    @property
    def reads_table(self) -> bool:
        """Whether learning the head counts means reading the private table itself."""
        return self.source is None and self.people is None

    @property
    def least_key(self) -> int:
        """The smallest `key` of anybody who granted something; below the first stated budget nobody is accounted for."""
        stated = self.people is not None and self.source is None and not self.tiers_nano
        return int(self.people.levels[0]) if stated and self.people is not None else 1

    def to_arrow(self, values: list[Any]) -> Any:
        """`values` of the budget column, Python objects, as text (tiers) or numbers (ε)."""
        return text_array(values) if self.tiers_nano else number_array(values)

    def head_counts(self) -> PersonBudgets:
        """The public head count of each budget, without reading the private table."""
        if self.people is not None:
            return self.people
        if self.source is None:
            raise InputError(
                f"the head counts per budget are not stated, and column {self.budget!r} is part of the private table; "
                "give counts (tiers), people (column) or a separate roster table"
            )
        engine = self.connect()
        each = self._per_person(engine)
        return self.summary(engine.fetch(each.group_by("key").agg(n=each.count())))

    def key(self, expr: Expr, engine: Engine) -> Expr:
        """The budget in the column `expr` of `engine`: nano-ε, or the number of the tier plus one; 0 for no budget."""
        import ibis

        what = f"the budget column {self.budget!r}"
        if not self.tiers_nano:
            nano = nano_budget(number_column(expr, engine=engine.name, what=what, text=engine.text))
            return nano if self.fraction == 1 else _part(nano, self.fraction)
        tier = text_column(expr, what=what).expr
        return ibis.cases(*((tier == name, i + 1) for i, (name, _) in enumerate(self.tiers_nano)), else_=0).cast("int64")

    def summary(self, rows: Any) -> PersonBudgets:
        """Head counts from `rows` of (key, n); people without a budget are left out."""
        keys = rows["key"].to_numpy().astype(np.int64)
        counts = rows["n"].to_numpy().astype(np.int64)
        if self.tiers_nano:
            heads = np.zeros(len(self.tiers_nano) + 1, dtype=np.int64)
            heads[keys] = counts
            names = tuple(name for name, _ in self.tiers_nano)
            return PersonBudgets(np.array([nano for _, nano in self.tiers_nano]), heads[1:], names=names)
        order = np.argsort(keys)
        order = order[keys[order] > 0]
        return PersonBudgets(keys[order], counts[order])

    def nano_of_keys(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Budgets in nano-ε for `keys` that `key` computed."""
        if not self.tiers_nano:
            return keys
        budgets: NDArray[np.int64] = np.array([0, *(nano for _, nano in self.tiers_nano)], dtype=np.int64)
        return budgets[keys]

    def joined(self, rows: Expr, engine: Engine) -> Expr:
        """`rows` of `engine` (with column ``person``) with each key from the roster table; people not in it are dropped."""
        import ibis

        other = self.connect(near=engine)
        each = self._per_person(other)
        if engine.backend is not other.backend:
            each = ibis.memtable(other.fetch(each))
        mine, theirs = rows["person"].type(), each["who"].type()
        if other.text and mine.is_integer():
            # "7" and "07" are one person from here on, who would join twice: the smaller budget once more.
            each = each.mutate(who=each["who"].try_cast("int64"))
            each = each.filter(each["who"].notnull()).group_by("who").agg(key=each["key"].min())
        elif engine.text and theirs.is_integer():
            each = each.mutate(who=each["who"].cast("string"))
        elif _kind_of_id(mine) != _kind_of_id(theirs):
            raise SchemaError(
                f"the roster names persons by {_kind_of_id(theirs)}, the table by {_kind_of_id(mine)}: nobody would match; "
                "give them one type"
            )
        return rows.inner_join(each, rows["person"] == each["who"]).drop("who")

    def findings(self, persons: Any = None) -> tuple[str, ...]:
        """What is odd about the roster, in sentences with head counts, from public facts only; no person is named.

        A roster table is read; the private table is not. With `persons`, the declared type of the private table's person
        column, it is also said who can match nobody (see `Dataset.findings`).

        >>> Roster.tiers({"open": 1.0, "strict": 0.01}, column="consent", counts={"open": 90}).findings()
        ("tier 'strict' has no stated head count: previews expect nobody in it",)
        """
        from sfumato.tables.roster_findings import of_statement, of_table

        return of_statement(self) if self.source is None else of_table(self, persons)

    def connect(self, near: Engine | None = None) -> Engine:
        """Open the roster table; `near` is an open engine to share."""
        columns = {str(self.person): person_array, self.budget: self.to_arrow}
        return connect(self.source, self.source_table, columns=columns, near=near)

    def _per_person(self, engine: Engine) -> Expr:
        who = engine.column(str(self.person), "the roster's person column")
        key = self.key(engine.column(self.budget, "the roster's budget column"), engine)
        each = engine.table.select(who=who, key=key)
        each = each.filter(each["who"].notnull())
        return each.group_by("who").agg(key=each["key"].min())


def _kind_of_id(kind: Any) -> str:
    """A type as far as equality goes: whole numbers of any width are alike."""
    return "whole numbers" if kind.is_integer() else "text" if kind.is_string() else str(kind)


def _part(nano: Expr, fraction: Fraction) -> Expr:
    """floor(nano * fraction) in 64 bits: quotient and remainder apart, so that no product overflows."""
    import ibis

    top, bottom = (ibis.literal(n, type="int64") for n in (fraction.numerator, fraction.denominator))
    rest = nano % bottom
    whole = (nano - rest) // bottom
    return (whole * top + (rest * top - (rest * top) % bottom) // bottom).cast("int64")


def _name(column: Any, what: str) -> str:
    if not isinstance(column, str) or not column:
        raise InputError(f"{what} must name a column, got {column!r}")
    return column


def named_tiers(tiers: Mapping[str, Epsilon]) -> tuple[tuple[str, int], ...]:
    """The tiers in nano-ε, in order of budget, then name."""
    if not isinstance(tiers, Mapping) or not tiers:
        raise InputError("name at least one tier, for example tiers={'open': 1.0}")
    named = [(str(name), positive_nano(e, f"epsilon of tier {name!r}")) for name, e in tiers.items()]
    return tuple(sorted(named, key=lambda item: (item[1], item[0])))


def _people(tiers: Mapping[str, Epsilon], counts: Mapping[str, int] | None) -> PersonBudgets | None:
    if counts is None:
        return None
    if not isinstance(counts, Mapping):
        raise InputError(f"counts gives the head count of each tier, for example {{'open': 90}}; got {counts!r}")
    if unknown := [name for name in counts if name not in tiers]:
        raise InputError(f"counts names a tier {unknown[0]!r} without a budget; {did_you_mean(unknown[0], tiers)}")
    for name, heads in counts.items():
        if isinstance(heads, bool) or not isinstance(heads, int) or heads < 0:
            raise InputError(f"counts of tier {name!r} is a public head count, a whole number; got {heads!r}")
    return PersonBudgets.from_tiers({name: (e, counts.get(name, 0)) for name, e in tiers.items()})
