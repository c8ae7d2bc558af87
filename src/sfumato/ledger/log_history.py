"""The log of a dataset that was there before there were logs, from what its tables hold.

In which order things happened is not known any more, so it is a fixed one: the dataset, the key of its people, its releases
by number, each with its end, the changes of its people, the choices that wait, and last that this was done.
"""

from __future__ import annotations

from sqlalchemy import Connection, select

from sfumato.ledger import clock, log, log_leaves, log_rows, schema


def build(connection: Connection, found: int) -> None:
    """Write the logs of all datasets of a ledger that came from format `found`."""
    table = schema.datasets
    for dataset_id, dataset in connection.execute(select(table.c.id, table.c.name).order_by(table.c.id)).all():
        _build(connection, int(dataset_id), str(dataset), found)


def _build(connection: Connection, dataset_id: int, dataset: str, found: int) -> None:
    log.append(connection, dataset_id, log_leaves.registered(connection, dataset_id), dataset=dataset)
    key = log_leaves.people_key(connection)
    if key.rows:
        log.append(connection, dataset_id, key)
    for each in log_rows.charged(connection, dataset_id):
        release = each.release
        if release["name"] == schema.DEVICE_STATEMENT and release["request"].startswith(schema.DEVICE_BEGINS):
            log.append(connection, dataset_id, log_leaves.bridged(release, each.lines))
            continue
        log.append(connection, dataset_id, log_leaves.reserved(release, each.lines, each.people))
        if release["state"] != "reserved":
            log.append(connection, dataset_id, log_leaves.finished(release))
    for change in log_rows.changes(connection, dataset_id):
        leaf = log_leaves.changed(connection, dataset_id, change.row, change.chunks, change.newcomers, None)
        log.append(connection, dataset_id, leaf)
    waiting = log_rows.waiting(connection, dataset_id)
    if waiting:
        log.append(connection, dataset_id, log_leaves.chosen(waiting))
    log.append(connection, dataset_id, log_leaves.migrated(connection, dataset_id, found, clock.now()))
