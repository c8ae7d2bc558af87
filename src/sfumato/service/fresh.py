"""New identifiers and secrets: the one place of the service that draws random bits (noise has its own, in `privacy`)."""

from __future__ import annotations

import hashlib
import secrets

_BYTES = 32
_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def fresh_id(kind: str) -> str:
    """An identifier that nobody can guess, such as ``plan_`` and 22 letters."""
    return f"{kind}_{secrets.token_urlsafe(16)}"


def fresh_secret(prefix: str = "") -> str:
    """A secret of 256 bits as text: a session, a token, an invitation."""
    return prefix + secrets.token_urlsafe(_BYTES)


def fresh_code() -> str:
    """A code of 100 bits that people can type: five groups of four letters and digits, without I, L, O and U."""
    letters = "".join(secrets.choice(_LETTERS) for _ in range(20))
    return "-".join(letters[i : i + 4] for i in range(0, 20, 4))


def read_code(typed: str) -> str:
    """A code as `fresh_code` writes it, however it was typed.

    >>> read_code(" 0abc dekl mnpq rstv wxyz")
    '0ABC-DEK1-MNPQ-RSTV-WXYZ'
    """
    letters = "".join(typed.upper().split()).replace("-", "").translate(str.maketrans("OIL", "011"))
    return "-".join(letters[i : i + 4] for i in range(0, len(letters), 4))


def fresh_bytes(size: int = _BYTES) -> bytes:
    """Random bytes, for keys."""
    return secrets.token_bytes(size)


def digest_of(secret: str) -> str:
    """What is stored of a secret of 256 bits: nobody finds it by trying, so a plain SHA-256 is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()
