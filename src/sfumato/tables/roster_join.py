"""How people of a roster table meet the rows of the private one: by name, each person once, at their smallest budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato.errors import SchemaError
from sfumato.tables.columns import Expr
from sfumato.tables.engines import Engine

if TYPE_CHECKING:
    from sfumato.tables.roster import Roster


def joined(roster: Roster, rows: Expr, engine: Engine) -> Expr:
    """See `Roster.joined`."""
    import ibis

    other = roster.connect(near=engine)
    each = matched(roster, rows["person"].type(), other, engine)
    if engine.backend is not other.backend:
        each = ibis.memtable(other.fetch(each))
    return rows.inner_join(each, rows["person"] == each["who"]).drop("who")


def matched(roster: Roster, mine: Any, other: Engine, engine: Engine) -> Expr:
    """Everybody in the roster table of `other` with their key, named as in the table of `engine`, of type `mine`."""
    each = per_person(roster, other)
    theirs = each["who"].type()
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
    return each


def per_person(roster: Roster, engine: Engine) -> Expr:
    """Everybody in the roster table of `engine` with their smallest key."""
    who = engine.column(str(roster.person), "the roster's person column")
    key = roster.key(engine.column(roster.budget, "the roster's budget column"), engine)
    each = engine.table.select(who=who, key=key)
    each = each.filter(each["who"].notnull())
    return each.group_by("who").agg(key=each["key"].min())


def _kind_of_id(kind: Any) -> str:
    """A type as far as equality goes: whole numbers of any width are alike."""
    return "whole numbers" if kind.is_integer() else "text" if kind.is_string() else str(kind)
