"""Persons of a separate roster table and of the private table, named alike, so that an engine can join them."""

from __future__ import annotations

from typing import Any

from sfumato.errors import SchemaError
from sfumato.tables.columns import Expr
from sfumato.tables.engines import Engine


def named_alike(each: Expr, mine: Any, other: Engine, engine: Engine) -> Expr:
    """`each` person of the roster table of `other` (``who``, ``key``), named as in the table of `engine`, of type `mine`."""
    theirs = each["who"].type()
    if other.text and mine.is_integer():
        # "7" and "07" are one person from here on, who would join twice: the smaller budget once more.
        each = each.mutate(who=each["who"].try_cast("int64"))
        return each.filter(each["who"].notnull()).group_by("who").agg(key=each["key"].min())
    if engine.text and theirs.is_integer():
        return each.mutate(who=each["who"].cast("string"))
    if _kind_of_id(mine) != _kind_of_id(theirs):
        raise SchemaError(
            f"the roster names persons by {_kind_of_id(theirs)}, the table by {_kind_of_id(mine)}: nobody would match; "
            "give them one type"
        )
    return each


def _kind_of_id(kind: Any) -> str:
    """A type as far as equality goes: whole numbers of any width are alike."""
    return "whole numbers" if kind.is_integer() else "text" if kind.is_string() else str(kind)
