"""Identifiers of people, sealed: the service must name a person to the ledger, and its database must not tell who they are.

AES-256-GCM under a key that lies beside the configuration, not in the database; a keyed digest finds the same person again.
"""

from __future__ import annotations

import base64
import hmac
import os
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sfumato.errors import InputError
from sfumato.service.fresh import fresh_bytes

_KEY, _NONCE = 32, 12


class Sealer:
    """Seals texts under one key.

    Parameters
    ----------
    key : bytes
        32 of them.

    Examples
    --------
    >>> sealer = Sealer(bytes(32))
    >>> sealer.unseal(sealer.seal("patient 7", "clinic"), "clinic")
    'patient 7'
    """

    def __init__(self, key: bytes) -> None:
        if len(key) != _KEY:
            raise InputError(f"the service's key has {len(key)} bytes and must have {_KEY}; restore it from its copy")
        self._cipher = AESGCM(key)
        self._mac = hmac.digest(key, b"sfumato service: digests", "sha256")

    @classmethod
    def opened(cls, path: Path) -> Sealer:
        """The key in a file, which is made if it is not there."""
        try:
            return cls(path.read_bytes())
        except FileNotFoundError:
            pass
        key = fresh_bytes(_KEY)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:  # another process was faster
            return cls(path.read_bytes())
        with os.fdopen(handle, "wb") as file:
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        return cls(key)

    def seal(self, text: str, place: str) -> str:
        """A text that only this key opens, and only at the same `place`: what is copied to another line does not open."""
        nonce = fresh_bytes(_NONCE)
        return base64.urlsafe_b64encode(nonce + self._cipher.encrypt(nonce, text.encode(), place.encode())).decode()

    def unseal(self, sealed: str, place: str) -> str:
        """The text."""
        raw = base64.urlsafe_b64decode(sealed)
        try:
            return self._cipher.decrypt(raw[:_NONCE], raw[_NONCE:], place.encode()).decode()
        except InvalidTag:
            raise InputError("a sealed text does not open: the service's key or its database was exchanged") from None

    def digest(self, text: str, place: str) -> str:
        """The same for the same text at the same `place`, and nothing else can be told from it without the key."""
        return hmac.digest(self._mac, f"{place}\0{text}".encode(), "sha256").hex()
