"""The ledger's clock: the minute in UTC, as text that sorts. A finer time would tell how long a release took."""

from __future__ import annotations

from datetime import UTC, datetime

from sfumato.errors import InputError


def now() -> str:
    """The present minute."""
    return written(datetime.now(UTC))


def written(moment: datetime) -> str:
    """A moment as the ledger writes it.

    >>> written(datetime(2026, 11, 15, 19, 3, 44, tzinfo=UTC))
    '2026-11-15T19:03Z'
    """
    if moment.tzinfo is None:
        raise InputError("say in which time zone that is, for example datetime(2026, 1, 1, tzinfo=UTC)")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ")


def day_of(at: str) -> str:
    """The day (UTC) of a minute as the ledger writes it.

    >>> day_of("2026-11-15T19:03Z")
    '2026-11-15'
    """
    return at[:10]


def period_of(kind: str | None, at: str) -> str | None:
    """The calendar period (UTC) of a minute as the ledger writes it; ``None`` where nothing renews.

    >>> [period_of(kind, "2026-11-15T19:03Z") for kind in ("year", "quarter", "month", None)]
    ['2026', '2026-Q4', '2026-11', None]
    """
    if kind is None:
        return None
    year, month = at[:4], at[5:7]
    return {"year": year, "quarter": f"{year}-Q{(int(month) + 2) // 3}", "month": f"{year}-{month}"}[kind]
