"""The certificate: what was released, by which mechanism, at which price and with which promise. Never a private value."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sfumato import __version__
from sfumato.privacy.charge import Charge
from sfumato.privacy.units import epsilon_text
from sfumato.releases.assumption import assumption
from sfumato.releases.attribute_charges import attribute_charges, columns_shown
from sfumato.releases.pipeline import Priced, schema_digest
from sfumato.results import Result

CERTIFICATE_VERSION = 3


def certificate(
    priced: Priced,
    result: Result,
    *,
    dataset: str,
    reservation: int | None,
    fingerprint: str,
    log: Mapping[str, Any] | None = None,
    created: str | None = None,
    notes: Sequence[str] = (),
    said_by: str = "the call",
) -> dict[str, Any]:
    """The certificate as JSON-able data; a folder adds the digests of its files, and a signature where there are keys.

    `log` proves that the charge is in the ledger's log (`Ledger.proof`); `created` is the minute to name, where that of its
    end would tell how long it took. `notes` warn beside the result; `said_by` is who asked, and so who made the assumptions
    of the request.
    """
    request = priced.request
    return {
        "certificate_version": CERTIFICATE_VERSION,
        "software": {"name": "sfumato", "version": __version__},
        "created": created or minute(),
        "dataset": dataset,
        "release": request.name,
        "kind": request.kind,
        "asked": {
            "where": request.where,
            "mechanism": request.mechanism,
            "epsilon": None if request.epsilon is None else str(request.epsilon),
            "share": None if request.share is None else str(request.share),
            **({"independent": True} if request.independent else {}),
            **dict(request.parameters),
        },
        "schema": schema_record(priced),
        "mechanism": result.mechanism,
        "parameters": dict(result.parameters),
        "expected_rmse": result.expected_rmse,
        "assumption": assumption(priced, said_by),
        "warnings": [*result.warnings, *notes],
        "guarantee": result.guarantee.to_dict(),
        "held_to": priced.chosen.terms.told(),
        "charged": charge_record(replace(priced.chosen.charge, attributes=attribute_charges(priced))),
        **({} if priced.part is None else {"living": priced.part.record(priced.chosen.charge)}),
        "previewed": [offer_record(o) for o in priced.offers],
        "recipient": request.recipient,
        "reservation": reservation,
        "fingerprint": fingerprint,
        **({} if log is None else {"log": dict(log)}),
    }


def minute() -> str:
    """The minute that it is, in UTC."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes")


def schema_record(priced: Priced) -> dict[str, Any]:
    """The digest of the schema, and the public domains of the columns that the release shows."""
    schema = priced.facts.schema
    names = [name for name in columns_shown(priced.request, priced.facts) if name in schema.names]
    return {
        "digest": schema_digest(priced.facts),
        **schema.about.to_plain(),
        "columns": {name: schema.note(name).sentence(name, schema[name].told()) for name in names},
    }


def charge_record(charge: Charge) -> dict[str, Any]:
    """A charge in decimals, people as the range of what they are charged."""
    out: dict[str, Any] = {"epsilon": epsilon_text(charge.total)}
    if charge.people is not None:
        out["people"] = [epsilon_text(int(charge.people.min())), epsilon_text(int(charge.people.max()))]
    if charge.attributes:
        out["attributes"] = {k: epsilon_text(v) for k, v in charge.attributes.items()}
    return out


def offer_record(offer: Any) -> dict[str, Any]:
    """An offer as JSON: price, expected error, errors by how far budgets and values go together, note."""
    return {
        "mechanism": offer.mechanism,
        "charge": charge_record(offer.charge),
        "expected_rmse": offer.expected_rmse,
        "errors": None if offer.errors is None else offer.errors.to_dict(),
        "note": offer.note,
    }
