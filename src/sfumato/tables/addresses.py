"""Addresses of databases in messages, reports and ledgers: without passwords, whatever the address looks like.

What is shown is put together from the parts that are known to be public: scheme, user, host, port and database. Options
(``?password=...``, ``;token=...``) are never shown, and where a part cannot be told from a password nothing of it is.
"""

from __future__ import annotations

import re

from sfumato.errors import masked

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{1,19}):/{1,2}(.*)", re.DOTALL)  # one slash: a URL that went through a Path
_HOST = r"(?:\[[0-9A-Fa-f:.%]+\]|[^\s:/?#@\[\],]*)(?::\d{1,5})?"
_HOSTS = re.compile(f"{_HOST}(?:,{_HOST})*")
_CREDENTIALS = re.compile(r"(?is):.*@|(?:pass|pwd|passwd|password|token|secret|key)\s*=")
_REASONS = {
    "authentication failed": "the server refused the user or the password",
    "no password supplied": "the server asks for a password",
    "does not exist": "the server has no such database or user",
    "refused": "nothing listens there",
    "no such file": "nothing listens there",
    "timeout": "there was no answer in time",
    "timed out": "there was no answer in time",
    "translate host name": "there is no such host",
    "resolve host": "there is no such host",
    "name or service not known": "there is no such host",
}


def without_secrets(address: str) -> str:
    """A file name or a database URL as it may be shown.

    >>> without_secrets("postgresql://ann:p@ss/w@rd@db.example.org:5432/clinic?sslpassword=x")
    'postgresql://ann@db.example.org:5432/clinic'
    >>> without_secrets("clinic.parquet")
    'clinic.parquet'
    """
    address = masked(address, shortest=2)  # what came from the environment is shown as it was named there
    url = _URL.fullmatch(address)
    if url is None:
        return "(a text with a password, not shown)" if _CREDENTIALS.search(address) else address
    return f"{url[1]}://{_place(url[1], url[2])}"


def _place(scheme: str, rest: str) -> str:
    place, *after = re.split(r"[?;]", rest, maxsplit=1)  # Spark Connect has its options after a semicolon
    options = "".join(after)
    if scheme == "duckdb" and place.startswith("/"):
        return place  # a file
    if "@" in options:
        return "..."  # a password with a question mark in it, or an option with an @: no telling which
    user, at, place = place.rpartition("@")
    shown = re.split(r"(?i)[:/@#]|%3a", user)[0] + at
    host, slash, database = place.partition("#")[0].partition("/")
    if not _HOSTS.fullmatch(host) or ":" in database:
        return f"{shown}..."
    return f"{shown}{host}{slash}{database}"


def reason_to_tell(error: Exception) -> str:
    """Why a connection failed, in our own words: a driver's message may quote a password that it took for a host."""
    text = str(error).lower()
    return next((words for part, words in _REASONS.items() if part in text), type(error).__name__)
