"""What has been spent, by whom, for what: SQLite by default, PostgreSQL for a team."""

from sfumato.ledger.caps import Caps
from sfumato.ledger.foresight import Ask, Foreseen, datasets_at, foresee, recall
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.records import Balance, Limit, People, Release, Reservation

__all__ = [
    "Ask",
    "Balance",
    "Caps",
    "Foreseen",
    "Ledger",
    "Limit",
    "People",
    "Release",
    "Reservation",
    "datasets_at",
    "foresee",
    "recall",
]
