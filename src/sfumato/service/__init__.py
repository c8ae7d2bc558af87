"""The service: one ledger, several kinds of people, an HTTP interface.

Everything here works from public facts and the ledger. A private table is opened by `sfumato.service.runner` only, which is
a process of its own. `sfumato serve` starts both.
"""

from __future__ import annotations

__all__: list[str] = []  # it is used through HTTP, `sfumato serve` and `sfumato.client`
