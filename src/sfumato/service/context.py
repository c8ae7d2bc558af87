"""What every part of the service works with: its settings, its tables, the ledger, and the key that people are under."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.ledger import Ledger
from sfumato.service.sealing import Sealer
from sfumato.service.settings import Settings
from sfumato.service.store.database import Store


@dataclass(frozen=True)
class Service:
    """An open service.

    Attributes
    ----------
    settings : Settings
    store : Store
        The service's own tables.
    ledger : Ledger
        What was spent.
    sealer : Sealer
        Seals identifiers of people.
    """

    settings: Settings
    store: Store
    ledger: Ledger
    sealer: Sealer

    @classmethod
    def opened(cls, settings: Settings) -> Service:
        """Open everything but private tables; made if it is not there."""
        for folder in (settings.state, settings.keys):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return cls(
            settings,
            Store.opened(settings.database),
            Ledger.open(settings.ledger, key=settings.keys / "people.key"),
            Sealer.opened(settings.keys / "service.key"),
        )
