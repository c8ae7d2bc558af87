"""The service: one ledger, several kinds of people, an HTTP interface.

Everything here works from public facts and the ledger. A private table is opened by `sfumato.service.runner` only, which is
a process of its own. `sfumato serve` starts both.
"""
