"""What a certificate proves about the ledger it was charged to: checked with nothing but the certificate and public keys.

The certificate carries the entry of the log with which its release was charged, and the path from that entry to the root of
the log. So the entry is in the log that has this root, and it must say what the certificate says. Where the certificate is
signed, whoever holds the key has stood for all of it; a checkpoint that somebody kept, with a proof from the service, shows
that the log was not rewritten between the two.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.errors import InputError, SfumatoError
from sfumato.ledger.merkle import leaf_hash
from sfumato.ledger.proofs import Checkpoint, consistent, included
from sfumato.ledger.requests import canonical
from sfumato.ledger.signing import trusted, verify_signed
from sfumato.privacy.units import nano_of

FIRST_WITH_LOG = 3
_LARGEST = 10_000_000


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes
    ----------
    what : str
        In a few words.
    holds : bool
    found : str
        What was seen.
    """

    what: str
    holds: bool
    found: str

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"what": self.what, "holds": self.holds, "found": self.found}


@dataclass(frozen=True)
class Known:
    """What whoever checks has by themselves.

    Attributes
    ----------
    keys : sequence, optional
        Public keys.
    checkpoint : mapping, optional
        A checkpoint that was kept.
    path : sequence, optional
        The proof that the older of the two logs is the beginning of the newer one.
    between : tuple
        The two states that the proof says it is between.
    """

    keys: Sequence[Mapping[str, Any]] | None = None
    checkpoint: Mapping[str, Any] | None = None
    path: Any = None
    between: tuple[Any, Any] = (None, None)

    @classmethod
    def read(cls, keys: Any, checkpoint: Any, consistency: Any) -> Known:
        """From files, or from what is in them."""
        found = _loaded(consistency, "a proof of consistency")
        proof = found if isinstance(found, Mapping) else {}
        return cls(
            None if keys is None else trusted(_loaded(keys, "a file of keys")),
            _loaded(checkpoint, "a checkpoint"),
            proof.get("path"),
            (proof.get("old"), proof.get("new")),
        )


def _loaded(given: Any, what: str) -> Any:
    if not isinstance(given, str | Path):
        return given
    try:
        with Path(given).open(encoding="utf-8") as file:
            return json.loads(file.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        raise InputError(f"{given} cannot be read as {what}: it is a JSON file, as the service gives it") from None


def log_checks(made: Mapping[str, Any], known: Known) -> Iterator[Check]:
    """Everything about log and signature."""
    yield from _signature(made, known)
    version = made.get("certificate_version")
    charged = made.get("reservation") is not None
    section = made.get("log")
    if section is None and (not charged or not isinstance(version, int) or version < FIRST_WITH_LOG):
        if known.checkpoint is not None:
            yield Check(
                "the charge is in the log", False, "a certificate of this format, or without a ledger, proves nothing"
            )
        return
    if not isinstance(section, Mapping):
        yield Check("the charge is in the log", False, "the certificate does not say where")
        return
    try:
        state = Checkpoint(str(made.get("dataset")), section["size"], section["root"])
        state = Checkpoint.from_dict(state.to_dict())
        text = section["body"]
        leaf = leaf_hash(text.encode()).hex()
    except (KeyError, AttributeError, UnicodeEncodeError, InputError):
        yield Check("the charge is in the log", False, "what the certificate says of the log is not in its form")
        return
    there = included(leaf, section.get("index"), state, section.get("path"))
    where = f"entry {section.get('index')!r} of {state.size}"[:80]
    yield Check("the charge is in the log", there, where if there else "the path does not lead to the root")
    yield _says(made, text)
    yield from _checkpoint(section, state, known)
    yield from _kept(state, known)


def _says(made: Mapping[str, Any], text: str) -> Check:
    """The entry of the log is that of this release, at this price."""
    what = "the log says what the certificate says"
    try:
        body = json.loads(text)
        price = made["charged"]
        attributes = price.get("attributes", {})
        pairs = {
            "form": (canonical(body), text),
            "kind": (body["kind"], "reserved"),
            "dataset": (body["dataset"], made["dataset"]),
            "number": (body["entry"], made["reservation"]),
            "request": (body["fingerprint"], made["fingerprint"]),
            "name": (body["name"], made["release"]),
            "recipient": (body["recipient"], made["recipient"]),
            "price": (nano_of(body["epsilon"]), nano_of(price["epsilon"])),
        }
        for kind, name, epsilon in body["charges"]:
            if kind == "attribute" and name in attributes:
                pairs[f"attribute {name}"] = (nano_of(epsilon), nano_of(attributes[name]))
    except (SfumatoError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Check(what, False, "the entry is not that of a charge")
    wrong = [name for name, (one, other) in pairs.items() if one != other or type(one) is not type(other)]
    return Check(what, not wrong, f"they differ in {', '.join(wrong)}"[:200] if wrong else f"ε {price['epsilon']} charged")


def _checkpoint(section: Mapping[str, Any], state: Checkpoint, known: Known) -> Iterator[Check]:
    signed = section.get("checkpoint")
    if signed is None:
        return
    what = "the checkpoint is that of the log"
    try:
        same = Checkpoint.from_dict(signed) == state
        if known.keys is not None:
            verify_signed(signed, known.keys)
    except InputError as error:
        yield Check(what, False, str(error))
        return
    yield Check(what, same, f"{state.size} entries" if same else "it is that of another state")


def _signature(made: Mapping[str, Any], known: Known) -> Iterator[Check]:
    what = "the certificate is signed"
    if known.keys is None:
        stated = made.get("signature")
        if isinstance(stated, Mapping):
            key = str(stated.get("key_id"))[:64]
            yield Check(
                "a signature is there", True, f"by the key {key}; NOT checked: give the custodian's keys, --keys FILE"
            )
        return
    try:
        key = verify_signed(made, known.keys)
    except InputError as error:
        yield Check(what, False, str(error))
        return
    yield Check(what, True, f"by the key {key}")


def _kept(state: Checkpoint, known: Known) -> Iterator[Check]:
    """The log of the certificate and that of a checkpoint which somebody kept are one."""
    if known.checkpoint is None:
        return
    what = "the log is the one of the checkpoint you kept"
    try:
        if known.keys is not None:
            verify_signed(known.checkpoint, known.keys)
        other = Checkpoint.from_dict(known.checkpoint)
    except InputError as error:
        yield Check(what, False, str(error))
        return
    if other.dataset != state.dataset:
        yield Check(what, False, f"the checkpoint is of {other.dataset!r}"[:120])
        return
    old, new = sorted((other, state), key=lambda one: one.size)
    if old.size == new.size:
        yield Check(what, old.root == new.root, "the same state" if old.root == new.root else "the same size, another root")
        return
    if known.path is None:
        ask = f"GET /v1/log/{state.dataset}/consistency?old={old.size}&new={new.size}"
        yield Check(what, False, f"a proof is needed that {new.size} entries begin with those {old.size}: {ask}")
        return
    if known.between != (old.to_dict(), new.to_dict()):
        yield Check(what, False, "the proof is one between other states of the log")
        return
    holds = consistent(old, new, known.path)
    found = f"{old.size} and {new.size} entries" if holds else "the proof does not lead from one to the other"
    yield Check(what, holds, found)
