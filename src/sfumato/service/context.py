"""What every part of the service works with: its settings, its tables, the ledger, and the key that people are under."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.ledger import Ledger
from sfumato.ledger.signing import Keys
from sfumato.service.sealing import Sealer
from sfumato.service.settings import Settings
from sfumato.service.store.database import Store
from sfumato.service.witness import Witness


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
    keys : Keys
        Sign checkpoints, certificates and statements.
    witness : Witness
        Keeps checkpoints of the ledger's logs where its database is not.
    """

    settings: Settings
    store: Store
    ledger: Ledger
    sealer: Sealer
    keys: Keys
    witness: Witness

    @classmethod
    def opened(cls, settings: Settings, *, checked: bool = True) -> Service:
        """Open everything but private tables; made if it is not there.

        A ledger that was set back is refused, unless it is not `checked`: only to mend it.
        """
        for folder in (settings.state, settings.keys):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = settings.keys / "signing"
        ledger = Ledger.open(settings.ledger, key=settings.keys / "people.key", keys=folder)
        keys = Keys.opened(folder)
        witness = Witness.opened(settings.state, keys)
        if checked:
            witness.check(ledger)
        ledger.witness = witness.keep
        sealer = Sealer.opened(settings.keys / "service.key")
        return cls(settings, Store.opened(settings.database), ledger, sealer, keys, witness)
