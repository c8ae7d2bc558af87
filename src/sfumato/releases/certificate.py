"""The certificate: what was released, by which mechanism, at which price and with which promise. Never a private value."""

from __future__ import annotations

import datetime
from typing import Any

from sfumato import __version__
from sfumato.privacy.charge import Charge
from sfumato.privacy.units import epsilon_text
from sfumato.releases.kinds.base import Result
from sfumato.releases.pipeline import Priced

CERTIFICATE_VERSION = 1


def certificate(
    priced: Priced, result: Result, *, dataset: str, reservation: int | None, fingerprint: str, files: dict[str, str]
) -> dict[str, Any]:
    """The certificate as JSON-able data; `files` maps the artefact's files to their SHA-256."""
    request = priced.request
    return {
        "certificate_version": CERTIFICATE_VERSION,
        "software": {"name": "sfumato", "version": __version__},
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "dataset": dataset,
        "release": request.name,
        "kind": request.kind,
        "asked": {
            "where": request.where,
            "mechanism": request.mechanism,
            "epsilon": None if request.epsilon is None else str(request.epsilon),
            "share": None if request.share is None else str(request.share),
            **dict(request.options),
        },
        "mechanism": result.mechanism,
        "parameters": dict(result.parameters),
        "expected_rmse": result.expected_rmse,
        "warnings": list(result.warnings),
        "guarantee": result.guarantee.to_dict(),
        "charged": charge_record(priced.chosen.charge),
        "recipient": request.recipient,
        "reservation": reservation,
        "fingerprint": fingerprint,
        "files": files,
    }


def charge_record(charge: Charge) -> dict[str, Any]:
    """A charge in decimals, people as the range of what they are charged."""
    out: dict[str, Any] = {"epsilon": epsilon_text(charge.total)}
    if charge.people is not None:
        out["people"] = [epsilon_text(int(charge.people.min())), epsilon_text(int(charge.people.max()))]
    if charge.attributes:
        out["attributes"] = {k: epsilon_text(v) for k, v in charge.attributes.items()}
    return out
