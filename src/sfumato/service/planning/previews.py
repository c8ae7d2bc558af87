"""What a preview says: price, promise, errors, who is affected, and what is left after; from public facts and the ledger.

Everything here runs in a process of its own (`worker`), which is stopped when it takes too long or too much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from sfumato.errors import BudgetError, InputError
from sfumato.ledger import Ask, Caps, Ledger
from sfumato.privacy.charge import Charge
from sfumato.privacy.promised import promised, promised_together
from sfumato.privacy.source import SECURE
from sfumato.privacy.units import NanoArray, epsilon_text
from sfumato.releases.assumption import assumption
from sfumato.releases.attribute_charges import attribute_charges, to_attributes
from sfumato.releases.batch import preview
from sfumato.releases.certificate import charge_record, offer_record
from sfumato.releases.pipeline import HEAD_COUNTS, Priced, request_text
from sfumato.releases.plan_facts import asks_of, facts_of
from sfumato.releases.plan_people import standing_in
from sfumato.service.planning.assembling import AssembledPlan
from sfumato.tables.living import LivingRoster

FEW = 50
"""Rows of a table of tiers; more of them are told as ranges."""


def told(
    plan: AssembledPlan, notes: Sequence[str] = (), *, analyst: str | None = None, purpose: str | None = None
) -> dict[str, Any]:
    """The preview of a plan, ready for JSON.

    Parameters
    ----------
    plan : AssembledPlan
        Whose source may be no place.
    notes : sequence of str
        What is to be said beside what is found: about the engine, for example.
    analyst, purpose : str, optional
        Whose allowance would be charged, and for what.
    """
    whose: dict[str, Any] = {"analyst": analyst, "purpose": purpose}
    _ledger(plan.ledger)
    seen = preview(plan, **whose)
    paying = [p for p in seen if p.foreseen is None or not (p.foreseen.refusal or p.foreseen.paid)]
    total = sum(int(p.chosen.charge.total) for p in paying)
    refused = seen.refused
    found: dict[str, Any] = finite(
        {
            "price": epsilon_text(total),
            "guarantee": _together(paying, total),
            "fits": refused is None,
            "refused": None if refused is None else refused.request.name,
            "waits_for_head_counts": seen.counting is not None,
            "findings": [*notes, *seen.findings],
            "releases": [_release(p) for p in seen],
            **_left(plan, paying, whose),
        }
    )
    return found


@lru_cache(maxsize=8)
def _ledger(location: str) -> Ledger:
    """The ledger, held by the worker: what SQL was compiled for it stays compiled, also for whoever opens it beside."""
    return Ledger.open(location, create=False)


def _release(priced: Priced) -> dict[str, Any]:
    request, chosen = priced.request, priced.chosen
    promise = promised(chosen.terms)
    return {
        "name": request.name,
        "kind": request.kind,
        "where": request.where,
        "recipient": request.recipient,
        "epsilon": None if request.epsilon is None else str(request.epsilon),
        "share": None if request.share is None else str(request.share),
        "mechanism": chosen.mechanism,
        "price": charge_record(replace(chosen.charge, attributes=attribute_charges(priced))),
        "guarantee": promise.sentence(),
        "tiers": [] if promise.groups is None else promise.groups.merged(FEW).to_list(),
        "expected_rmse": chosen.expected_rmse,
        "errors": None if chosen.errors is None else chosen.errors.to_dict(),
        "independent": request.independent,
        "assumption": assumption(priced, "the plan"),
        "offers": [offer_record(offer) for offer in priced.offers],
        "notes": list(priced.notes),
        "refusal": None if priced.foreseen is None else priced.foreseen.refusal,
        "already_paid": priced.foreseen is not None and priced.foreseen.paid,
    }


def _together(paying: Sequence[Priced], total: int) -> str:
    """The promise of all releases that are to be paid: losses in sequence add up where they are compared alike."""
    if not paying:
        return "Nothing of this plan is to be paid: each of its releases was made before, or would be refused."
    promise = promised_together([p.chosen.terms for p in paying])
    if promise is None:
        return (
            "What these releases promise is not compared alike, and is said beside each of them; their prices add up to "
            f"ε = {epsilon_text(total)}."
        )
    return promise.sentence().replace("this release", "all of these releases", 1)


def _left(plan: AssembledPlan, paying: Sequence[Priced], whose: dict[str, Any]) -> dict[str, Any]:
    """Every cap with what is left now and after the plan, and every tier with what it loses."""
    roster = plan.roster()
    ledger = _ledger(plan.ledger)
    before = ledger.caps(plan.dataset, **whose)
    if isinstance(roster, LivingRoster):
        capped = ledger.attributes(plan.dataset)
        before = replace(before, people=None)
        asks = [
            Ask(
                to_attributes(Charge(p.chosen.charge.total), p, capped),
                request_text(p, dataset_name=plan.dataset, source=SECURE),
                p.request.recipient,
                **whose,
            )
            for p in paying
        ]
        people = _tiers_of_living(plan, paying)
    else:
        facts, _ = facts_of(plan, roster, SECURE)
        asks = asks_of(plan, paying, facts, SECURE, **whose)
        people = None
    after = before
    for ask in asks:
        try:
            after = after.after(ask.charge, ask.recipient, **whose)
        except (BudgetError, InputError):  # the preview has said so already, beside the release
            continue
    return {"left": _caps(before, after), "people": _tiers(before, after) if people is None else people}


def _caps(before: Caps, after: Caps) -> list[dict[str, Any]]:
    def text(nano: int | None) -> str | None:
        return None if nano is None else epsilon_text(nano)

    return [
        {
            "kind": now.kind,
            "name": now.name,
            "cap": text(now.cap),
            "spent": text(now.spent),
            "left": text(now.left),
            "left_after": text(then.left),
        }
        for now, then in zip(before.limits, after.limits, strict=True)
    ]


def _tiers(before: Caps, after: Caps) -> list[dict[str, Any]]:
    """The groups of a fixed roster: how many they are is public, or is not said."""
    if before.people is None or after.people is None:
        return []
    now, then = before.people, after.people
    heads = None if now.private else now.counts
    return _rows(now.names, heads, now.levels, now.left, then.left)


def _tiers_of_living(plan: AssembledPlan, paying: Sequence[Priced]) -> list[dict[str, Any]]:
    """The tiers of people who change, each from the least to the most of its cohorts."""
    standing = standing_in(plan)
    if standing is None:
        return []
    left = np.asarray(standing.left, dtype=np.int64)
    after = left
    for item in paying:
        if item.part is not None and item.request.kind != HEAD_COUNTS:
            paid = item.part.charge(item.chosen.charge).people
            assert paid is not None
            after = np.maximum(after - paid, 0) if paid.shape == after.shape else after
    heads = None if standing.private else np.asarray(standing.heads)
    rows = []
    for tier in dict.fromkeys(standing.tiers):
        of = np.array([name == tier for name in standing.tiers])
        grants = np.asarray(standing.grants)[of]
        rows.append(
            {
                "tier": tier,
                "people": None if heads is None else int(heads[of].sum()),
                "budget": _range(grants),
                "left": None if heads is None else _range(left[of]),
                "left_after": None if heads is None else _range(after[of]),
                "loses": _range((left - after)[of]),
            }
        )
    return rows[:FEW]


def _rows(names: Any, heads: Any, levels: NanoArray, left: NanoArray, after: NanoArray) -> list[dict[str, Any]]:
    parts = np.array_split(np.arange(len(levels)), min(FEW, len(levels)) or 1)
    return [
        {
            "tier": names[part[0]] if names and len(part) == 1 else None,
            "people": None if heads is None else int(heads[part].sum()),
            "budget": _range(levels[part]),
            "left": _range(left[part]),
            "left_after": _range(after[part]),
            "loses": _range((left - after)[part]),
        }
        for part in parts
        if len(part)
    ]


def _range(nano: NanoArray) -> list[str]:
    return [epsilon_text(int(nano.min())), epsilon_text(int(nano.max()))]


def finite(value: Any) -> Any:
    """The same value with ``None`` for each number that JSON cannot say, and NumPy's numbers as plain ones."""
    if isinstance(value, dict):
        return {str(key): finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
