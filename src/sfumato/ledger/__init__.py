"""What has been spent, by whom, for what: SQLite by default, PostgreSQL for a team."""

from sfumato.ledger.ledger import Ledger
from sfumato.ledger.records import Balance, Limit, People, Release, Reservation

__all__ = ["Balance", "Ledger", "Limit", "People", "Release", "Reservation"]
