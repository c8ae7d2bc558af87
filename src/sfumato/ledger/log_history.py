"""The log of a dataset that was there before there were logs, from what its tables hold.

In which order things happened is not known any more, so it is a fixed one: the dataset, the key of its people, its releases
by number, each with its end, the changes of its people, the choices that wait, and last that this was done. Of a private
roster all changes are one entry, and choices are none (`sfumato.ledger.log_quiet`).
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, select

from sfumato.ledger import clock, log, log_leaves, log_quiet, log_rows, schema


def build(connection: Connection, found: int) -> None:
    """Write the logs of all datasets of a ledger that came from format `found`."""
    table = schema.datasets
    for dataset_id, dataset in connection.execute(select(table.c.id, table.c.name).order_by(table.c.id)).all():
        _build(connection, int(dataset_id), str(dataset), found)


def _build(connection: Connection, dataset_id: int, dataset: str, found: int) -> None:
    log.append(connection, dataset_id, log_leaves.registered(connection, dataset_id), dataset=dataset)
    quiet = log_quiet.is_private(connection, dataset_id)
    log.append_all(connection, dataset_id, _leaves(connection, dataset_id, quiet=quiet))
    if quiet:
        log_quiet.migrate_choices(connection, log_rows.waiting(connection, dataset_id))
    log.append(connection, dataset_id, log_leaves.migrated(connection, dataset_id, found, clock.now()))


def _leaves(connection: Connection, dataset_id: int, *, quiet: bool) -> Iterator[log.Leaf]:
    key = log_leaves.people_key(connection)
    if key.rows and not quiet:
        yield key
    for each in log_rows.charged(connection, dataset_id):
        release = each.release
        if release["name"] == schema.DEVICE_STATEMENT and release["request"].startswith(schema.DEVICE_BEGINS):
            yield log_leaves.bridged(release, each.lines)
            continue
        yield log_leaves.reserved(release, each.lines, each.people)
        if release["state"] != "reserved":
            yield log_leaves.finished(release)
    together: list[log.Row] = []
    epoch, at = 0, ""
    for change in log_rows.changes(connection, dataset_id):
        rows = log_leaves.change_rows(connection, dataset_id, change.row, change.chunks, change.newcomers)
        if not quiet:
            yield log_leaves.changed(change.row, rows, None)
            continue
        together += rows
        if change.row["kind"] == "epoch":
            epoch, at = int(change.row["epoch"]), change.row["at"]
    if quiet:
        if together:
            yield log_leaves.quietly(epoch, at, together, None)
        return
    waiting = log_rows.waiting(connection, dataset_id)
    if waiting:
        yield log_leaves.chosen(waiting)
