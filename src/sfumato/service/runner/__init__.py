"""The runner: the one part of the service that opens private tables, and a process of its own.

Nothing imports it. `python -m sfumato.service.runner` starts it. It takes jobs from the queue (`loop`), makes each release
in a process that can be killed (`work`) after it has checked once more that it was approved (`checking`), and settles it in
the ledger when its time is over (`settling`).
"""
