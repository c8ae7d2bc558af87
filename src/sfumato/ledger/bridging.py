"""What people's own devices have told recipients, counted beside what the custodian released.

A recipient who gets releases of a dataset and, from somebody's device, releases of that person's own history learns both,
and guarantees add up. A device states what it has spent (`sfumato.privacy.statement`); here it is charged to the caps of the
dataset.

*What is charged.* A release of the dataset costs everybody; a device's costs its owner alone. So what nobody exceeds is the
sum of the releases plus the **largest** sum of devices that any one person has. For each cap (a recipient, an attribute, all
recipients together, the total) let M be the largest, over people, of what all their devices have spent there. A new
statement raises M or does not, and the difference is charged; the charges of all statements add up to M. One statement
replaces an earlier one of the same device, entry by entry by the larger, so that nothing is ever lowered. With `items` > 1
the amounts, which are for one item, are multiplied.

*Once.* All of it happens in one transaction under the dataset's lock, and the statement itself is in the ledger's entry: the
same one again, or one that was made before it, changes nothing. A device whose ledger was put back to an older copy makes
statements that do not list all that are known here; its spending then counts beside that of before, as if it were a second
device, because nobody can tell what both have in common.

Recipients that the dataset does not know learn nothing of it, and are left out; if it names no recipients, all count.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, literal_column, select, update

from sfumato.errors import InputError
from sfumato.ledger import clock, log, log_leaves, schema
from sfumato.ledger.database import Store
from sfumato.ledger.limits import charge_limits, shared
from sfumato.ledger.persons import hashes, key_of
from sfumato.ledger.records import Limit
from sfumato.ledger.requests import canonical, fingerprint_of
from sfumato.ledger.reserve import lock
from sfumato.privacy.loss import FAR
from sfumato.privacy.statement import Statement
from sfumato.privacy.units import Nano

NAME = schema.DEVICE_STATEMENT
Cap = tuple[str, str]  # kind and name of a limit


@dataclass(frozen=True)
class Bridged:
    """What became of a statement.

    Attributes
    ----------
    charged : mapping of (kind, name) to Nano
        What each cap was charged.
    passed : mapping of (kind, name) to Nano
        By how much a cap is passed: it is used up.
    known : bool
        Whether this statement, or a later one of the device, was counted before.
    """

    charged: Mapping[Cap, Nano]
    passed: Mapping[Cap, Nano]
    known: bool = False


def bridge(store: Store, dataset: str, statement: Statement, *, person: object, items: int) -> Bridged:
    """See `sfumato.ledger.Ledger.bridge`."""
    if isinstance(items, bool) or not isinstance(items, int) or items < 1:
        raise InputError(
            f"items is how many items of a history are protected together, a whole number from 1, got {items!r}"
        )
    with store.write() as connection:
        dataset_id = lock(connection, dataset)
        limits = shared(connection, dataset_id)
        who = hashes(key_of(connection, store.key, make=True, dataset_id=dataset_id), dataset, [person])[0]
        whose = f"{int(who['high']):016x}{int(who['low']):016x}"
        earlier = _entries(connection, dataset_id)
        mine = [e for e in earlier if (e["person"], e["device"]) == (whose, statement.device)]
        if any(statement.digest in (e["digest"], *e["after"]) for e in mine):
            return Bridged({}, {}, known=True)
        new = {
            "person": whose,
            "device": statement.device,
            "branch": _branch(mine, statement),
            "digest": statement.digest,
            "after": list(statement.after),
            "spent": _amounts(statement, items),
        }
        before, after = _largest(earlier, limits), _largest([*earlier, new], limits)
        return _charge(connection, dataset_id, new, limits, {cap: after[cap] - before[cap] for cap in after})


def _branch(mine: Iterable[Mapping[str, Any]], statement: Statement) -> int:
    """Which line of a device's statements this one goes on with: one it lists in full, or a new one."""
    lines: defaultdict[int, set[str]] = defaultdict(set)
    for entry in mine:
        lines[entry["branch"]].add(entry["digest"])
    return next((branch for branch, known in lines.items() if known <= set(statement.after)), len(lines))


def _amounts(statement: Statement, items: int) -> dict[str, dict[str, Any]]:
    out = {}
    for recipient, one in statement.spent.items():
        each = {name: int(nano) * items for name, nano in one.attributes.items()}
        if max([one.total * items, *each.values()]) > FAR:
            raise InputError("this statement says that more was spent than any budget holds; check it, and check `items`")
        out[recipient] = {"overall": int(one.total) * items, "attributes": each}
    return out


def _largest(entries: Iterable[Mapping[str, Any]], limits: Iterable[Limit]) -> dict[Cap, int]:
    """For each cap the largest, over people, of what all their devices have spent there."""
    limits = list(limits)
    known = {limit.name for limit in limits if limit.kind == "recipient"}
    devices: defaultdict[tuple[str, str, int], defaultdict[tuple[str, str], int]] = defaultdict(lambda: defaultdict(int))
    for entry in entries:
        device = devices[entry["person"], entry["device"], entry["branch"]]
        for recipient, one in entry["spent"].items():
            for part, nano in (("", one["overall"]), *(("." + name, n) for name, n in one["attributes"].items())):
                device[recipient, part] = max(device[recipient, part], nano)
    people: defaultdict[str, defaultdict[Cap, int]] = defaultdict(lambda: defaultdict(int))
    for (person, _, _), device in devices.items():
        mine = people[person]
        for (recipient, part), nano in device.items():
            if known and recipient not in known:
                continue
            for cap in [("attribute", part[1:])] if part else [("recipient", recipient), ("together", ""), ("total", "")]:
                mine[cap] += nano
    return {
        (limit.kind, limit.name): max((mine[limit.kind, limit.name] for mine in people.values()), default=0)
        for limit in limits
    }


def _charge(
    connection: Connection, dataset_id: int, new: Mapping[str, Any], limits: Iterable[Limit], asked: Mapping[Cap, int]
) -> Bridged:
    charged, passed = {}, {}
    for limit in limits:
        cap, nano = (limit.kind, limit.name), asked[limit.kind, limit.name]
        room = nano if limit.cap is None else max(0, min(nano, limit.cap - limit.spent))
        charged[cap] = Nano(room)
        if nano > room:
            passed[cap] = Nano(nano - room)
    text = canonical({"bridge": dict(new), "kind": NAME})
    row = {
        "dataset_id": dataset_id,
        "name": NAME,
        "fingerprint": fingerprint_of(text),
        "request": text,
        "total": charged.get(("total", ""), 0),
        "state": "reserved",
        "reserved_at": clock.now(),
    }
    release_id = int(connection.execute(insert(schema.releases).values(row).returning(schema.releases.c.id)).scalar_one())
    asked_of = [(limit, charged[limit.kind, limit.name]) for limit in limits]
    lines = charge_limits(connection, dataset_id, release_id, asked_of)
    kept = json.dumps({"passed": {" ".join(cap).strip(): nano for cap, nano in passed.items()}}, sort_keys=True)
    done = {"state": "committed", "artefact": kept, "finished_at": clock.now()}
    connection.execute(update(schema.releases).where(schema.releases.c.id == release_id).values(done))
    log.append(connection, dataset_id, log_leaves.bridged({**row, **done, "id": release_id}, lines))
    return Bridged({cap: nano for cap, nano in charged.items() if nano}, passed)


def _entries(connection: Connection, dataset_id: int) -> list[dict[str, Any]]:
    table = schema.releases
    told = table.c.name == literal_column(f"'{NAME}'")  # spelt out: only then is the index of these lines used
    mine = (table.c.dataset_id == dataset_id, told, table.c.request.startswith(schema.DEVICE_BEGINS, autoescape=True))
    rows = connection.execute(select(table.c.request).where(*mine).order_by(table.c.id)).scalars()
    return [json.loads(text)["bridge"] for text in rows]
