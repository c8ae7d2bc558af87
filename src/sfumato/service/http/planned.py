"""Texts and tables that the routes about datasets, plans and decisions take, each bounded."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints

from sfumato.errors import SfumatoError
from sfumato.releases.plan_request import plain_text


def _plain(text: str) -> str:
    try:
        return plain_text(text, "the text")
    except SfumatoError as error:
        raise ValueError(str(error)) from None


def _one_line(text: str) -> str:
    if any(sign in text for sign in "\r\n\t"):
        raise ValueError("it must be one line")
    return _plain(text)


Line = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_one_line)]
"""A short text of one line, without control characters."""

Words = Annotated[str, StringConstraints(min_length=3, max_length=4000, strip_whitespace=True), AfterValidator(_plain)]
"""A text of some lines, for people."""

Epsilon = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,7}(\.[0-9]{1,9})?$")]
"""An ε as exact decimal text, such as ``"0.25"``."""

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""A SHA-256 in hexadecimal."""

Tables = Annotated[dict[str, Any], Field(max_length=100)]
"""A table of a plan file."""

Releases = Annotated[list[Tables], Field(min_length=1, max_length=100)]
"""The tables of a plan's ``[[release]]``."""
