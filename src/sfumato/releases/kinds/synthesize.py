"""Synthetic tables for classification, from a grid that is chosen and counted privately."""

from __future__ import annotations

from typing import Any

from sfumato.errors import InputError
from sfumato.releases.kinds.base import Facts, Option, need_epsilon
from sfumato.releases.plan import Request


class SynthesizeKind:
    """kind = "synthesize": `target` (the column to predict), `attributes`, `grids`, `most`, `order`, `split`."""

    name = "synthesize"
    keys = ("target", "attributes", "grids", "most", "order", "split", "cleaning")
    personal = True

    def options(self, request: Request, facts: Facts) -> list[Option]:
        from sfumato.grids.preview import preview_synthesize
        from sfumato.tables import parse_where

        given: dict[str, Any] = dict(request.options)
        target = given.pop("target", None)
        if not isinstance(target, str):
            raise InputError(f"release {request.name!r} needs `target`, the column to predict")
        attributes = given.pop("attributes", None)
        if attributes is not None and (not isinstance(attributes, list | tuple) or not attributes):
            raise InputError(f"`attributes` of release {request.name!r} is a list of columns, got {attributes!r}")
        parse_where(request.where, facts.schema)
        found = preview_synthesize(
            schema=facts.schema,
            target=target,
            epsilon=need_epsilon(request) if facts.budgets is None else None,
            rows=facts.rows if facts.budgets is None and request.where is None else None,
            budgets=facts.budgets,
            where=request.where,
            attributes=None if attributes is None else tuple(attributes),
            **given,
        )
        return [Option(o.mechanism, o.charge, o.expected_rmse, o.note, o.run, budgets=o.budgets) for o in found]


KINDS = (SynthesizeKind(),)
