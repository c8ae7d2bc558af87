"""Where each person's budget is written. The roster (person -> budget) is public input; the rows are not. Unless it is said
to be private: then only the menu of budgets is public, and who chose which is part of a person's record (`private_roster`).

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.units import Epsilon
from sfumato.tables.columns import Expr, nano_budget, number_column, part_of, text_column
from sfumato.tables.connecting import Engine, TableName, check_source, connect
from sfumato.tables.csv_options import CsvOptions
from sfumato.tables.frames import number_array, person_array, text_array
from sfumato.tables.roster_keys import HEAD_SHARE, menu_of, name_of, named_tiers, people_of, private_of

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
    source, source_table
        The roster table, if it is a separate one, and its name in a database.
    person : str or None
        The column of the roster table that names the person.
    fraction : Fraction
        The part of everyone's budget that it stands for; see `share`.
    private : bool
        Whether who granted which budget is part of their record. `people` is then a public guess, for previews.
    head_share : Fraction
        The part of everyone's budget that counting the heads of a private roster costs.
    reaches : tuple of int
        Where the budget column of a private roster holds ε: the menu in nano-ε. A budget counts as the largest it reaches.
    csv : CsvOptions or None
        How a roster in a text file is written.

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
    source: Any = field(default=None, compare=False, repr=False)  # a password may stand in it
    source_table: TableName | None = None
    person: str | None = None
    fraction: Fraction = Fraction(1)
    private: bool = False
    head_share: Fraction = HEAD_SHARE
    reaches: tuple[int, ...] = ()
    csv: CsvOptions | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.private and not self.tiers_nano:
            raise InputError(
                "a private roster needs a public menu: name tiers, or give menu=[0.01, 0.1, 1] for budgets in ε"
            )
        if self.reaches and not self.private:
            raise InputError("a menu of budgets belongs to a private roster: say private=True, or leave the menu out")
        if not 0 < self.head_share < 1 or self.head_share.denominator > 10**9:
            raise InputError(f"head_share lies between 0 and 1, with at most nine decimals; got {self.head_share}")

    @classmethod
    def column(
        cls,
        epsilon: str,
        *,
        people: PersonBudgets | None = None,
        menu: Sequence[Epsilon] | None = None,
        private: bool = False,
        head_share: Epsilon | None = None,
    ) -> Roster:
        """Budgets in the numeric column `epsilon` of the table; `people` states the public head counts, for previews.

        With `private`, budgets are rounded down to the public `menu`; `head_share` is as for `tiers`.
        """
        about = private_of(private, head_share) | menu_of(menu)
        return cls(name_of(epsilon, "epsilon"), people=people, **about)

    @classmethod
    def tiers(
        cls,
        tiers: Mapping[str, Epsilon],
        *,
        column: str,
        counts: Mapping[str, int] | None = None,
        private: bool = False,
        head_share: Epsilon | None = None,
    ) -> Roster:
        """Consent `tiers` (ε by name) named in `column` of the table; `counts` states the public head counts, if known.

        With `private`, who is in which tier is protected too; `counts` are then a guess, for previews, and a part
        `head_share` of everyone's budget (0.05 unless given) pays for noisy head counts.
        """
        about = private_of(private, head_share)
        return cls(name_of(column, "column"), tiers_nano=named_tiers(tiers), people=people_of(tiers, counts), **about)

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
        menu: Sequence[Epsilon] | None = None,
        counts: Mapping[str, int] | None = None,
        private: bool = False,
        head_share: Epsilon | None = None,
        csv: CsvOptions | Mapping[str, Any] | None = None,
    ) -> Roster:
        """A separate table with one row per person: public, unless it is said to be private.

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
        menu : sequence of ε, optional
            The public budgets to which those of a private roster in ε are rounded down.
        counts : mapping of str to int, optional
            A public guess of the head counts of a private roster with tiers, for previews.
        private : bool
            Whether who granted which budget is part of their record.
        head_share : float, optional
            The part of everyone's budget that the noisy head counts of a private roster cost; 0.05 unless given.
        csv : mapping or CsvOptions, optional
            How a text file is written: delimiter, quote, encoding, decimal.

        Returns
        -------
        Roster
        """
        written = CsvOptions.of(csv, "the csv of a roster")
        check_source(source, table, written)
        if (epsilon is None) == (tier is None) or (tier is None) != (tiers is None):
            raise InputError("a roster table needs epsilon='column', or tier='column' with tiers={'name': epsilon}")
        budget = name_of(epsilon if tier is None else tier, "epsilon or tier")
        if counts is not None and not (private and tiers):
            raise InputError("a public roster table is counted; counts are a guess for a private one with tiers")
        return cls(
            budget,
            people=None if counts is None else people_of(tiers or {}, counts),
            **({"tiers_nano": named_tiers(tiers)} if tiers is not None else menu_of(menu)),
            **private_of(private, head_share),
            source=source,
            source_table=table,
            person=name_of(person, "person"),
            csv=written,
        )

    @staticmethod
    def living(
        tiers: Mapping[str, Epsilon],
        *,
        person: str | None = None,
        period: str | None = None,
        per_period: Mapping[str, Epsilon] | None = None,
        key: str | Path | None = None,
        private: bool = False,
        head_share: Epsilon | None = None,
    ) -> LivingRoster:
        """People who join, change their grant and withdraw; the ledger keeps who chose what (see `Table.people`).

        They choose from the menu of `tiers` (ε by name), each with a cap `per_period` beside it, if one is given with the
        `period` ("year", "quarter" or "month"). `person` names people in files that are imported, by default as the schema's
        unit does; `key` is their key file, by default beside the ledger; `private` and `head_share` are as in `tiers`.
        """
        from sfumato.tables.living import LivingRoster

        about: dict[str, Any] = {"key": key, "private": private, "head_share": head_share}
        return LivingRoster.of(tiers, person=person, period=period, per_period=per_period, **about)

    @classmethod
    def from_mapping(cls, plain: Mapping[str, Any]) -> Roster:
        """From `plain`, the keys of a plan file.

        >>> Roster.from_mapping({"column": "consent", "tiers": {"open": 1.0}}).tiers_nano
        (('open', 1000000000),)
        """
        from sfumato.tables.roster_keys import from_mapping

        return from_mapping(cls, plain)

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
        """Whether learning the head counts means reading what is private."""
        return self.private or (self.source is None and self.people is None)

    @property
    def least_key(self) -> int:
        """The smallest `key` of anybody who granted something; below the first stated budget nobody is accounted for."""
        stated = self.people is not None and self.source is None and not self.tiers_nano
        return int(self.people.levels[0]) if stated and self.people is not None else 1

    def to_arrow(self, values: list[Any]) -> Any:
        """`values` of the budget column, Python objects, as text (tiers) or numbers (ε)."""
        return text_array(values) if self.tiers_nano and not self.reaches else number_array(values)

    def menu(self) -> PersonBudgets:
        """The tiers and what each grants; nobody is counted."""
        names = tuple(name for name, _ in self.tiers_nano)
        levels = np.array([nano for _, nano in self.tiers_nano])
        return PersonBudgets(levels, np.zeros_like(levels), names)

    def head_counts(self) -> PersonBudgets:
        """The public head count of each budget, without reading the private table."""
        if self.private:
            raise InputError(
                "this roster is private: its head counts are told with noise only, by Table.head_counts() or the first "
                "release of a plan"
            )
        if self.people is not None:
            return self.people
        if self.source is None:
            raise InputError(
                f"the head counts per budget are not stated, and column {self.budget!r} is part of the private table; "
                "give counts (tiers), people (column) or a separate roster table"
            )
        from sfumato.tables.roster_findings import heads

        return self.summary(heads(self, self.connect()))

    def key(self, expr: Expr, engine: Engine) -> Expr:
        """The budget in the column `expr` of `engine`: nano-ε, or the number of the tier plus one; 0 for no budget."""
        import ibis

        what = f"the budget column {self.budget!r}"
        if not self.tiers_nano or self.reaches:
            nano = nano_budget(number_column(expr, engine=engine.name, what=what, text=engine.text))
            if self.reaches:  # numbered like tiers; shares are taken of the menu, not of what people wrote
                return sum(((nano >= level).cast("int64") for level in self.reaches), nano * 0)
            return nano if self.fraction == 1 else part_of(nano, self.fraction)
        tier = text_column(expr, what=what).expr
        return ibis.cases(*((tier == name, i + 1) for i, (name, _) in enumerate(self.tiers_nano)), else_=0).cast("int64")

    def summary(self, rows: Any) -> PersonBudgets:
        """Head counts from `rows` of (key, n); people without a budget are left out."""
        keys, counts = (np.asarray(rows[name], dtype=np.int64) for name in ("key", "n"))
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
        from sfumato.tables.roster_join import joined

        return joined(self, rows, engine)

    def findings(self, persons: Any = None) -> tuple[str, ...]:
        """What is odd about the roster, in sentences with head counts, from public facts only; no person is named.

        A roster table is read; the private table is not. With `persons`, the declared type of the private table's person
        column, it is also said who can match nobody (see `Dataset.findings`).

        >>> Roster.tiers({"open": 1.0, "strict": 0.01}, column="consent", counts={"open": 90}).findings()
        ("tier 'strict' has no stated head count: previews expect nobody in it",)
        """
        from sfumato.tables.roster_findings import of_statement, of_table

        if self.private:  # nothing of it may be told
            return ()
        return of_statement(self) if self.source is None else of_table(self, persons)

    def connect(self, near: Engine | None = None) -> Engine:
        """Open the roster table; `near` is an open engine to share."""
        columns = {str(self.person): person_array, self.budget: self.to_arrow}
        return connect(self.source, self.source_table, columns=columns, near=near, csv=self.csv)
