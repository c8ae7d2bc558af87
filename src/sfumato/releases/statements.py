"""A signed statement for one person: what they grant, what was spent on them and by what, as of a minute and a checkpoint.

They keep it, and whoever they show it to can check it offline: the service's signature, that the lines add up to what was
spent, that no line cost more than was granted then, and the checkpoint of the dataset's log, which must be part of every
later one. A ledger that was set back, or from which a release was taken out, then disagrees with what people hold.
"""

from __future__ import annotations

import hashlib
import html
import itertools
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import InputError
from sfumato.ledger.proofs import Checkpoint
from sfumato.ledger.signing import trusted, verify_signed
from sfumato.privacy.units import epsilon_text, nano_of
from sfumato.releases.receipts import receipt_page
from sfumato.releases.verification import Check, Verification

if TYPE_CHECKING:
    from sfumato.ledger import Receipt

__all__ = ["statement_of", "statement_page", "verify_statement", "verify_statement_file"]

KIND = "sfumato statement for a person"
VERSION = 1
_MINUTE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\dZ")
_AMOUNTS = ("grant", "spent", "left_for_life", "left")
_KEPT = (
    *("dataset", "person", "tier", *_AMOUNTS, "period", "per_period", "spent_in_period", "left_in_period"),
    *("withdrawn", "withdrawn_at", "waiting", "epoch"),
)
_FIELDS = {"kind", "version", "at", *_KEPT, "earlier", "lines", "checkpoint", "signature"}
_LINE = {
    *("release", "name", "recipient", "at", "state", "epoch", "tier"),
    *("grant", "charged", "kind", "columns", "where", "purpose", "by"),
}


def statement_of(receipt: Receipt, *, at: str, checkpoint: Mapping[str, Any]) -> dict[str, Any]:
    """What is to be signed.

    Parameters
    ----------
    receipt : Receipt
        Where the person stands, with all of their releases or the newest ones.
    at : str
        The minute, in UTC.
    checkpoint : mapping
        The signed checkpoint of the dataset's log, taken after the receipt.

    Returns
    -------
    dict
        Without a signature.
    """
    made = receipt.to_dict()
    body = {"kind": KIND, "version": VERSION, "at": at} | {name: made[name] for name in _KEPT}
    body["earlier"] = epsilon_text(receipt.spent - sum(line.charged for line in receipt.lines))
    body["lines"] = made["lines"]
    return body | {"checkpoint": dict(checkpoint)}


def verify_statement(body: Any, public_keys: Iterable[Any]) -> tuple[Check, ...]:
    """Check a statement without the ledger it is from.

    Parameters
    ----------
    body : dict
        The statement as it was read from JSON.
    public_keys : list
        The service's public keys, as it publishes them; take them from somewhere else than the statement.

    Returns
    -------
    tuple of Check
        It is to be believed if all of them hold.
    """
    if not isinstance(body, dict) or body.get("kind") != KIND:
        raise InputError("this is not a statement for a person: its kind is another one")
    if body.get("version") != VERSION:
        raise InputError(f"a statement of version {body.get('version')!r}; this software reads {VERSION}: update it")
    keys = list(public_keys)
    signed = _tried(lambda: verify_signed(body, keys))
    form = _tried(lambda: _form(body))
    point = _tried(lambda: verify_signed(body["checkpoint"], keys))
    checks = [
        Check("signature", signed is None, signed or "made with a key of the service"),
        Check("form", form is None, form or "every part is there"),
        Check("checkpoint", point is None, point or "signed by the service; compare it with the one that others keep"),
    ]
    if form is None:
        checks += [_adds_up(body), _granted(body), _in_order(body)]
    return tuple(checks)


def verify_statement_file(path: str | Path, *, keys: str | Path | None) -> Verification:
    """Check a statement in a file.

    Parameters
    ----------
    path : path
        What ``GET /v1/me/{dataset}/statement`` gave.
    keys : path
        The service's public keys, as ``GET /v1/keys`` gives them.

    Returns
    -------
    Verification
        Its digest is that of the file.
    """
    if keys is None:
        raise InputError("a statement is checked with the public keys of the service: --keys keys.json (GET /v1/keys)")
    raw = _bytes_of(path, "the statement")
    checks = verify_statement(_json_in(raw, "the statement"), trusted(_json_in(_bytes_of(keys, "the keys"), "the keys")))
    return Verification(Path(path), hashlib.sha256(raw).hexdigest(), checks)


def _bytes_of(path: str | Path, what: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {what} {path}: {error.strerror}") from None


def _json_in(raw: bytes, what: str) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        raise InputError(f"{what} is not JSON; save it as the service sent it") from None


def statement_page(body: Mapping[str, Any], receipt: Receipt) -> str:
    """A signed statement as a page to print: the receipt, and below it what makes it checkable.

    Parameters
    ----------
    body : mapping
        The signed statement.
    receipt : Receipt
        What it was made of.

    Returns
    -------
    str
        HTML, complete in itself.
    """
    page = receipt_page(receipt)
    signature, checkpoint = body["signature"], body["checkpoint"]
    rows = {
        "stated at": str(body["at"]),
        "the log then had": f"{checkpoint['size']} entries",
        "its root": str(checkpoint["root"]),
        "signed with key": str(signature["key_id"]),
        "signature": str(signature["ed25519"]),
    }
    pairs = "".join(f"<dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd>" for k, v in rows.items())
    said = "The signature is over the same statement as JSON, which can be checked without asking anybody: sfumato verify."
    return page.replace("</body>", f"<h2>Signed</h2><dl>{pairs}</dl><p class=soft>{said}</p>\n</body>")


def _tried(check: Any) -> str | None:
    """Why a check does not hold; a statement may hold anything at all."""
    try:
        check()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return str(error) or "it is not of the form that it must have"
    return None


def _form(body: dict[str, Any]) -> None:
    if set(body) != _FIELDS:
        raise InputError("a statement has other parts than these")
    if not _MINUTE.fullmatch(body["at"]):
        raise InputError("a statement is of a minute")
    if Checkpoint.from_dict(body["checkpoint"]).dataset != body["dataset"]:
        raise InputError("the checkpoint is of another dataset")
    for name in (*_AMOUNTS, "earlier"):
        nano_of(body[name])
    for line in body["lines"]:
        if set(line) != _LINE or type(line["release"]) is not int or not _MINUTE.fullmatch(line["at"]):
            raise InputError("a line is not of the form that it must have")
        nano_of(line["charged"]), nano_of(line["grant"])


def _adds_up(body: dict[str, Any]) -> Check:
    listed = sum(nano_of(line["charged"]) for line in body["lines"])
    spent, earlier = nano_of(body["spent"]), nano_of(body["earlier"])
    left = max(0, nano_of(body["grant"]) - spent)
    holds = listed + earlier == spent and nano_of(body["left_for_life"]) == left and nano_of(body["left"]) <= left
    before = f" and {epsilon_text(earlier)} before them" if earlier else ""
    found = f"{len(body['lines'])} lines, ε {epsilon_text(listed)}{before}; ε {epsilon_text(spent)} are stated as spent"
    return Check("sum", holds, found)


def _granted(body: dict[str, Any]) -> Check:
    """What was spent up to each line is within what the person granted then."""
    running, passed = nano_of(body["earlier"]), []
    for line in body["lines"]:
        running += nano_of(line["charged"])  # type: ignore[assignment]
        if running > nano_of(line["grant"]):
            passed.append(line["release"])
    return Check("grants", not passed, f"passed by release {passed[0]}" if passed else "none of the releases passed one")


def _in_order(body: dict[str, Any]) -> Check:
    numbers = [line["release"] for line in body["lines"]]
    rising = all(first < second for first, second in itertools.pairwise(numbers))
    early = all(line["at"] <= body["at"] for line in body["lines"])
    return Check("order", rising and early, "oldest first, none after the statement" if rising and early else "out of order")
