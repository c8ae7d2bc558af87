"""Small files that must be whole: a checksum or a seal over what they say, and writing that a crash cannot halve."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from sfumato.errors import LedgerError


def checksum(body: Mapping[str, Any], key: bytes | None = None) -> str:
    """What tells that the fields of `body` are as they were written, or with a `key`, as its holder wrote them.

    >>> checksum({"a": 1})[:14]
    'sha256:015abd7'
    """
    text = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    if key is None:
        return "sha256:" + hashlib.sha256(text).hexdigest()
    return "hmac-sha256:" + hmac.new(key, text, "sha256").hexdigest()


def same(mine: str, theirs: object) -> bool:
    """Whether two checksums are the same, in a time that does not tell where they differ."""
    return isinstance(theirs, str) and hmac.compare_digest(mine.encode(), theirs.encode())


def write_durably(path: str, text: str) -> None:
    """Replace a file so that after a crash either the old or the new one is there, the new one once this returns.

    Only its owner can read it.
    """
    fresh = path + ".new"
    try:
        descriptor = os.open(fresh, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except OSError as error:
        raise LedgerError(f"cannot write {path}: {error.strerror}; nothing was released") from None
    with suppress(OSError):  # a folder cannot be opened everywhere; where it can, the rename is flushed too
        folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
