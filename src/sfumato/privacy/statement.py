"""What a device has spent, written down for somebody else's ledger.

A statement is one small JSON file: per recipient, what it has learnt altogether and through each attribute, in whole nano-ε,
for one item of a person's history. It names the device's ledger, counts its statements, and lists the digests of the
earlier ones, so that a ledger that was put back to an older copy cannot pass for the one that went on. The checksum catches
accidents; with a key that both sides have it also tells who wrote it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.errors import InputError, PrivacyError
from sfumato.privacy.charge import Charge
from sfumato.privacy.sealed import checksum, same
from sfumato.privacy.units import Nano

KIND = "sfumato device statement"
VERSION = 1
_FIELDS = {"kind", "version", "device", "number", "after", "spent"}
_MOST = 1 << 61


@dataclass(frozen=True)
class Statement:
    """What a device has spent.

    Attributes
    ----------
    device : str
        The name that the device's ledger gave itself.
    number : int
        How many statements it has made, with this one.
    after : tuple of str
        Digests of the earlier ones, in order.
    spent : mapping of recipient to Charge
        For one item: what the recipient has learnt, in all and through each attribute.

    Examples
    --------
    >>> made = Statement("a1", 1, (), {"adnet": Charge(Nano(5), attributes={"price": Nano(3)})})
    >>> Statement.from_json(made.to_json()).spent["adnet"].attributes
    {'price': 3}
    """

    device: str
    number: int
    after: tuple[str, ...]
    spent: Mapping[str, Charge]

    def body(self) -> dict[str, Any]:
        """Its fields as plain JSON."""
        spent = {to: {"overall": one.total, "attributes": dict(one.attributes)} for to, one in self.spent.items()}
        head = {"kind": KIND, "version": VERSION, "device": self.device, "number": self.number}
        return {**head, "after": list(self.after), "spent": spent}

    @property
    def digest(self) -> str:
        """What tells it from any other statement."""
        return checksum(self.body())

    def to_json(self, *, key: bytes | None = None) -> str:
        """The statement as text; a `key` also seals it."""
        body = self.body()
        return json.dumps({**body, "checksum": checksum(body, key)}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str, *, key: bytes | None = None) -> Statement:
        """Read `text`, its seal too if a `key` is given; whatever was changed or cannot be is refused."""
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            raise InputError("this is not a device's statement: it does not parse as JSON") from None
        if not isinstance(body, dict) or body.get("kind") != KIND:
            raise InputError(f"this is not a device's statement: its kind is not {KIND!r}")
        if body.get("version") != VERSION:
            raise InputError(f"a statement of version {body.get('version')!r}; this software reads {VERSION}")
        seal = body.pop("checksum", None)
        if not same(checksum(body, key), seal):
            raise PrivacyError("this statement was changed after it was made, or sealed with another key; ask for a new one")
        try:
            if set(body) != _FIELDS:
                raise ValueError
            return cls(
                device=_typed(body["device"], str),
                number=_typed(body["number"], int),
                after=tuple(_typed(digest, str) for digest in _typed(body["after"], list)),
                spent={_typed(to, str): _charge(one) for to, one in _typed(body["spent"], dict).items()},
            )
        except (KeyError, TypeError, ValueError):
            raise InputError("a field of this statement is not what it must be; ask for a new one") from None


def _charge(one: Any) -> Charge:
    attributes = {_typed(name, str): _nano(nano) for name, nano in _typed(one["attributes"], dict).items()}
    return Charge(_nano(one["overall"]), attributes=attributes)


def _nano(value: Any) -> Nano:
    if not 0 <= _typed(value, int) <= _MOST:
        raise ValueError
    return Nano(value)


def _typed(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError
    return value
