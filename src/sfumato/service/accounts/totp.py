"""One-time codes from a secret and the time: TOTP (RFC 6238) on HOTP (RFC 4226)."""

from __future__ import annotations

import base64
import hmac
from typing import Final
from urllib.parse import quote, urlencode

STEP: Final = 30
DIGITS: Final = 6
WINDOW: Final = 1  # steps before and after the present one, for clocks that differ


def step_at(moment: int) -> int:
    """The time step of a moment."""
    return moment // STEP


def code_at(secret: bytes, step: int, *, digits: int = DIGITS, algorithm: str = "sha1") -> str:
    """The code of a time step.

    Parameters
    ----------
    secret : bytes
    step : int
        Steps of 30 seconds since 1970.
    digits : int
    algorithm : str
        SHA-1 unless told: what every app for codes takes. HMAC does not need it to be free of collisions.

    Examples
    --------
    >>> code_at(b"12345678901234567890", step_at(59), digits=8)
    '94287082'
    """
    digest = hmac.digest(secret, step.to_bytes(8, "big"), algorithm)
    offset = digest[-1] & 15
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFF_FFFF
    return f"{number % 10**digits:0{digits}}"


def matching_step(secret: bytes, code: str, moment: int) -> int | None:
    """The time step near a moment whose code this is; ``None`` if it is none's."""
    now = step_at(moment)
    for step in range(now - WINDOW, now + WINDOW + 1):
        if hmac.compare_digest(code_at(secret, step).encode(), code.encode()):
            return step
    return None


def as_text(secret: bytes) -> str:
    """A secret as people type it."""
    return base64.b32encode(secret).decode().rstrip("=")


def as_address(secret: bytes, account: str, issuer: str) -> str:
    """The ``otpauth:`` address that apps read from a picture."""
    label = f"{quote(issuer, safe='')}:{quote(account, safe='')}"
    told = {"secret": as_text(secret), "issuer": issuer, "algorithm": "SHA1", "digits": DIGITS, "period": STEP}
    return f"otpauth://totp/{label}?{urlencode(told, quote_via=quote)}"
