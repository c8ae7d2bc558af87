"""What has been spent, by whom, for what: SQLite by default, PostgreSQL for a team."""

from sfumato.ledger.allowance import Allowance
from sfumato.ledger.caps import Caps
from sfumato.ledger.foresight import Ask, Foreseen, datasets_at, foresee, recall
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.life import Life
from sfumato.ledger.life_records import Epoch, Line, Pending, Receipt
from sfumato.ledger.records import Balance, Limit, Page, People, Release, Reservation
from sfumato.ledger.standing import Menu, Standing

__all__ = [
    "Allowance",
    "Ask",
    "Balance",
    "Caps",
    "Epoch",
    "Foreseen",
    "Ledger",
    "Life",
    "Limit",
    "Line",
    "Menu",
    "Page",
    "Pending",
    "People",
    "Receipt",
    "Release",
    "Reservation",
    "Standing",
    "datasets_at",
    "foresee",
    "recall",
]
