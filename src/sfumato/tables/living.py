"""A roster that changes: the menu of tiers is fixed, who chose which is kept by the ledger, person by person.

Nothing here knows a ledger. Whoever makes a release charges it first, and then gives the roster a `lookup`: what each person
was charged for, by their identifier. The table's distinct persons are read inside the engine's own aggregate, after the
charge, looked up at once, and joined as a small table of (person, budget). So a row weighs what its person was charged for,
and the rows of somebody who was not charged weigh nothing.

A person is the text of their identifier: 7 in a column of whole numbers and "7" in a column of text are one person, "07" is
another. Text is compared in Unicode's NFC, as the ledger does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, SchemaError, SfumatoError
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.exact import Exact
from sfumato.privacy.units import Epsilon, NanoArray, positive_nano
from sfumato.tables.columns import Expr
from sfumato.tables.csv_options import CsvOptions
from sfumato.tables.engines import Engine
from sfumato.tables.roster import Roster
from sfumato.tables.roster_keys import named_tiers, private_of
from sfumato.tables.words import did_you_mean

PERIODS = ("year", "quarter", "month")
KEYS = ("living", "tiers", "person", "period", "per_period", "key", "roster", "head_share", "csv")

Lookup = Callable[[Any], NDArray[np.int64]]
"""From persons, an Arrow array of text, to what of their budget the release may use, in nano-ε; 0 for who takes no part."""

Counted = Callable[[], Exact[NDArray[np.int64]]]
"""The number of people of each tier of a private roster that a release was charged to."""


@dataclass(frozen=True)
class LivingRoster(Roster):
    """Budgets that people change; made by `Roster.living`.

    Attributes
    ----------
    period : "year", "quarter", "month" or None
        The period that caps per period are for.
    per_period : tuple of (name, int)
        What a person of a tier may lose in a period, in nano-ε.
    key_file : path or None
        The key that identifiers are hashed with; beside the ledger if left out.
    lookup : callable or None
        Who was charged what; None until a release was charged.
    counted : callable or None
        The heads that a release from a private roster was charged to, as a private value; None until it was charged.

    Examples
    --------
    >>> roster = Roster.living({"open": 1.0, "strict": "0.01"}, period="year", per_period={"open": "0.5"})
    >>> roster.menu()
    PersonBudgets(0 people in 2 groups, ε 0.01 to 1)
    """

    period: str | None = None
    per_period: tuple[tuple[str, int], ...] = ()
    key_file: Path | None = None
    lookup: Lookup | None = field(default=None, compare=False, repr=False)
    counted: Counted | None = field(default=None, compare=False, repr=False)
    _joined: list[Any] = field(default_factory=list, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        tiers: Mapping[str, Epsilon],
        *,
        person: str | None = None,
        period: str | None = None,
        per_period: Mapping[str, Epsilon] | None = None,
        key: str | Path | None = None,
        private: bool = False,
        head_share: Epsilon | None = None,
        csv: CsvOptions | Mapping[str, Any] | None = None,
    ) -> Self:
        """See `Roster.living`."""
        menu = named_tiers(tiers)
        if period is not None and period not in PERIODS:
            raise InputError(f"period is {', '.join(map(repr, PERIODS))}; got {period!r}")
        caps = per_period or {}
        if not isinstance(caps, Mapping):
            raise InputError(f"per_period gives each tier's cap in a period, as {{'open': 0.5}}; got {per_period!r}")
        if bool(caps) != (period is not None):
            raise InputError("caps per period need both, period = 'year' and per_period = {tier = epsilon}")
        if unknown := [name for name in caps if name not in dict(menu)]:
            raise InputError(f"per_period names an unknown tier {unknown[0]!r}; {did_you_mean(unknown[0], dict(menu))}")
        each = tuple(sorted((name, positive_nano(e, f"epsilon per {period} of tier {name!r}")) for name, e in caps.items()))
        if person is not None and (not isinstance(person, str) or not person):
            raise InputError(f"person names the column with people's identifiers, got {person!r}")
        where = None if key is None else Path(key)
        if head_share is not None and not private:
            raise InputError("head_share is what counting the heads of a private roster costs; this one is public")
        written = CsvOptions.of(csv, "[people.csv]")
        caps_and_key: dict[str, Any] = {"period": period, "per_period": each, "key_file": where, "csv": written}
        return cls("tier", tiers_nano=menu, person=person, **caps_and_key, **private_of(private, head_share))

    @classmethod
    def from_keys(cls, plain: Mapping[str, Any]) -> Self:
        """From `plain`, the keys of a plan file."""
        for name in plain:
            if name not in KEYS:
                raise InputError(
                    f"a living roster has no key {name!r} (who chose which tier is in the ledger: "
                    f"`sfumato people PLAN import FILE`); {did_you_mean(name, KEYS)}"
                )
        if "tiers" not in plain:
            raise InputError("a living roster needs tiers = {name = epsilon}, the menu that people choose from")
        if (kind := plain.get("roster", "public")) not in ("public", "private"):
            raise InputError(f"roster is 'public' or 'private', got {kind!r}")
        rest = {k: v for k, v in plain.items() if k not in ("living", "tiers", "roster")}
        return cls.of(plain["tiers"], **rest, private=kind == "private")

    @property
    def in_table(self) -> bool:
        """No: budgets are joined on the person."""
        return False

    @property
    def reads_table(self) -> bool:
        """No: head counts are the ledger's."""
        return False

    def head_counts(self) -> PersonBudgets:
        """Refused: they change, and the ledger keeps them."""
        raise InputError("the people of a living roster are in the ledger: see Table.people.standing()")

    def charged(self, lookup: Lookup) -> Self:
        """The roster for one release that was charged: `lookup` says who may be used for how much, whatever their tier."""
        return replace(self, tiers_nano=(), lookup=lookup, _joined=[])

    def charged_by_tier(self, nano: NanoArray, lookup: Lookup, counted: Counted) -> Self:
        """The same for a private roster: `lookup` gives a person's tier, counted from 1, and `nano` what it may use of each.

        `counted` gives the heads that were charged. What may be told of them was settled when the release was priced.
        """
        usable = tuple((name, level) for (name, _), level in zip(self.tiers_nano, nano.tolist(), strict=True))
        return replace(self, tiers_nano=usable, lookup=lookup, counted=counted, _joined=[])

    def heads(self) -> Exact[NDArray[np.int64]]:
        """How many people of each tier were charged, in the order of the menu."""
        if self.counted is None:
            raise SfumatoError("the heads of a living roster were asked for before a release was charged to them")
        return self.counted()

    def findings(self, persons: Any = None) -> tuple[str, ...]:
        """None: what there is to say about the people, the ledger says."""
        return ()

    def check_person_type(self, persons: Any) -> None:
        """Refuse persons of a type whose text is not one for all engines; `persons` is the column's declared type."""
        if not (persons.is_integer() or persons.is_string() or persons.is_uuid()):
            raise SchemaError(
                f"the table names persons by {persons}; a living roster knows people by whole numbers or text: give the "
                "person column one of these types"
            )

    def joined(self, rows: Expr, engine: Engine) -> Expr:
        """`rows` of `engine` (with column ``person``) with what each person was charged for; who was not is dropped."""
        import ibis

        kind = rows["person"].type()
        self.check_person_type(kind)
        person = rows["person"] if kind.is_integer() else rows["person"].cast("string")
        if not self._joined:  # once for a release, however many aggregates it needs
            self._joined.append(ibis.memtable(self._each(rows.select(who=person).distinct(), engine)))
        each = self._joined[0]
        return rows.inner_join(each, person == each["who"]).drop("who")

    def _each(self, persons: Expr, engine: Engine) -> Any:
        """Everybody in the table who was charged, as an Arrow table of (who, key)."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.lookup is None:
            raise SfumatoError("a living roster was read before its release was charged; nothing is published")
        who = engine.fetch(persons)["who"].combine_chunks().drop_null()
        spelt = pc.utf8_normalize(who.cast(pa.string()), form="NFC")
        # Two spellings of one person, which the engine takes for two: only one may stand for the rows that they may have.
        first = np.zeros(len(spelt), dtype=bool)
        first[np.unique(spelt.to_numpy(zero_copy_only=False), return_index=True)[1]] = True
        named = pa.array(first & np.asarray(pc.not_equal(spelt, "")))
        who, spelt = who.filter(named), spelt.filter(named)
        nano = np.asarray(self.lookup(spelt), dtype=np.int64)
        taking_part = pa.array(nano > 0)
        return pa.table({"who": who.filter(taking_part), "key": pa.array(nano).filter(taking_part)})
