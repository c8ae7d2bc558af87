"""Who a person is to the ledger: a keyed hash of their identifier, and a place that never changes.

Identifiers are never stored. A person is the first 16 bytes of BLAKE2b of their identifier under a key of the dataset's own,
which is derived from the ledger's key: the same person in two datasets has two hashes that nobody without the key can join.
The key lies in a file beside the ledger and never in it, so a copy of the ledger alone tells how many people there are and
what each pseudonym granted and spent, and not who anybody is. With the key, anyone who guesses an identifier can look it up.

The number 7 and the text "7" are the same person. Text is brought to Unicode's NFC, so that "é" typed on two keyboards is
one person; nothing else is changed: "07" is not "7", and " 7" is somebody else again.
"""

from __future__ import annotations

import hashlib
import operator
import os
import unicodedata
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, insert, select, update

from sfumato.errors import InputError, LedgerError
from sfumato.ledger import log, log_leaves, log_quiet, schema

ENVIRONMENT = "SFUMATO_PEOPLE_KEY"
KEY_BYTES = 32
MEMBER = np.dtype([("high", "<u8"), ("low", "<u8"), ("place", "<u4")])
_FEW = 24  # for more people than this all buckets are read at once
_CHECK = "people_key"  # the line of ledger_meta that tells one key from another


def key_path(store_name: str, is_sqlite: bool, given: str | Path | None) -> Path | None:
    """Where the key of a ledger is: where it was said to be, or beside the file."""
    said = given or os.environ.get(ENVIRONMENT)
    if said:
        return Path(said).expanduser().absolute()
    return Path(f"{store_name}.key") if is_sqlite else None


def key_of(connection: Connection, path: Path | None, *, make: bool, dataset_id: int | None = None) -> bytes:
    """The ledger's key; made (mode 600) if there is none, `make` says so and no person was ever hashed with another.

    Who makes it says for which dataset, whose log keeps the key's mark.
    """
    check = connection.execute(select(schema.meta.c.value).where(schema.meta.c.name == _CHECK)).scalar()
    if path is None:
        raise LedgerError(
            "a ledger in PostgreSQL needs a key file for its people, which is kept elsewhere: "
            f"Ledger.open(..., key='people.key') or the environment's {ENVIRONMENT}"
        )
    key = _read(path)
    if key is None:
        if check is not None:
            raise LedgerError(
                f"the key of the ledger's people is not at {path}: without it nobody can be found again, so no receipt, "
                "change or withdrawal is possible and no release can tell who is who. Bring the key back from a backup "
                f"(or say where it is: Ledger.open(..., key=...), or {ENVIRONMENT}); a new key cannot replace it"
            )
        if not make:
            return bytes(KEY_BYTES)  # nobody was ever brought: whoever is looked for is not there
        key = _make(path)
    mark = hashlib.blake2b(b"sfumato people", key=key, digest_size=16).hexdigest()
    if check is not None and check != mark:
        raise LedgerError(
            f"the key at {path} is not the one with which the people of this ledger were hashed; "
            "bring the right one back: with another key everybody would be somebody new"
        )
    if check is None and make:
        assert dataset_id is not None
        connection.execute(insert(schema.meta).values(name=_CHECK, value=mark))
        if not log_quiet.is_private(connection, dataset_id):  # whose log does not tell that somebody came
            log.append(connection, dataset_id, log_leaves.people_key(connection))
    return key


def _read(path: Path) -> bytes | None:
    try:
        written = path.read_text(encoding="ascii").strip()
        key = bytes.fromhex(written)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerError(f"cannot read the key of the ledger's people at {path}: {error.strerror}") from error
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise LedgerError(f"{path} does not hold a key: it is one line of {2 * KEY_BYTES} hexadecimal digits")
    return key


def _make(path: Path) -> bytes:
    key = os.urandom(KEY_BYTES)
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(key.hex() + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)  # whole or not at all, and never over another key
        except FileExistsError:
            return _read(path) or key
        finally:
            draft.unlink()
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise LedgerError(f"cannot write the key of the ledger's people to {path}: {error.strerror}") from error
    return key


def spelt(person: Any) -> str:
    """The one spelling of an identifier.

    >>> spelt(7), spelt("7"), spelt("Zoe\\u0301") == spelt("Zo\\u00e9")
    ('7', '7', True)
    """
    if type(person) is str or isinstance(person, str):
        if not person:
            raise InputError("a person needs an identifier; an empty text is none")
        return person if person.isascii() else unicodedata.normalize("NFC", person)
    if isinstance(person, uuid.UUID):
        return str(person)
    if not isinstance(person, bool | np.bool_):
        try:
            return str(operator.index(person))
        except TypeError:
            pass
    kind = "missing" if person is None or person != person else f"a {type(person).__name__}"
    raise InputError(f"a person's identifier is text or a whole number; one of those given is {kind}")


def hashes(key: bytes, dataset: str, people: Iterable[Any]) -> NDArray[np.void]:
    """Each person as an entry of `MEMBER`, with no place yet."""
    own = hashlib.blake2b(dataset.encode(), key=key, digest_size=32).digest()
    blake = hashlib.blake2b
    raw = b"".join(
        [blake(spelt(person).encode("utf-8", "surrogatepass"), key=own, digest_size=16).digest() for person in people]
    )
    halves = np.frombuffer(raw, dtype=">u8").reshape(-1, 2)
    found = np.zeros(len(halves), dtype=MEMBER)
    found["high"], found["low"] = halves[:, 0], halves[:, 1]
    return found


def places(connection: Connection, dataset_id: int, wanted: NDArray[np.void]) -> NDArray[np.int64]:
    """The place of each person in this dataset, -1 for whom it does not know."""
    table = schema.persons
    query = select(table.c.members).where(table.c.dataset_id == dataset_id)
    if len(wanted) <= _FEW:
        query = query.where(table.c.bucket.in_(sorted({int(high) >> 56 for high in wanted["high"]})))
    members = [np.frombuffer(bytes(row), dtype=MEMBER) for row in connection.execute(query).scalars()]
    there = np.concatenate(members) if members else np.zeros(0, dtype=MEMBER)
    return match(there, wanted)


def match(there: NDArray[np.void], wanted: NDArray[np.void]) -> NDArray[np.int64]:
    """For each of `wanted` the place of the same hash in `there`, or -1."""
    if not len(there) or not len(wanted):
        return np.full(len(wanted), -1, dtype=np.int64)
    high, low = there["high"].astype(np.uint64), there["low"].astype(np.uint64)
    order = np.lexsort((low, high))
    high, low = high[order], low[order]
    ask_high, ask_low = wanted["high"].astype(np.uint64), wanted["low"].astype(np.uint64)
    at = np.minimum(np.searchsorted(high, ask_high), len(high) - 1)
    # Halves that are equal by chance: step on while the first half is the same and the second is not.
    while True:
        behind = (high[at] == ask_high) & (low[at] < ask_low) & (at + 1 < len(high))
        behind[behind] = high[at[behind] + 1] == ask_high[behind]
        if not behind.any():
            break
        at = at + behind
    same = (high[at] == ask_high) & (low[at] == ask_low)
    return np.where(same, there["place"][order][at].astype(np.int64), -1)


def settle(connection: Connection, dataset_id: int, newcomers: NDArray[np.void]) -> None:
    """Write down newcomers, who have their places, each in the bucket of their hash."""
    table = schema.persons
    buckets = (newcomers["high"].astype(np.uint64) >> np.uint64(56)).astype(np.int64)
    order = np.argsort(buckets, kind="stable")
    numbers, starts = np.unique(buckets[order], return_index=True)
    parts = np.split(newcomers[order].astype(MEMBER), starts[1:])
    query = select(table.c.bucket, table.c.members).where(table.c.dataset_id == dataset_id)
    there = {int(bucket): bytes(members) for bucket, members in connection.execute(query)}
    grown, new = [], []
    for number, part in zip(numbers.tolist(), parts, strict=True):
        if number in there:
            grown.append({"at": number, "members": there[number] + part.tobytes()})
        else:
            new.append({"dataset_id": dataset_id, "bucket": number, "members": part.tobytes()})
    if grown:
        here = (table.c.dataset_id == dataset_id) & (table.c.bucket == bindparam("at"))
        connection.execute(update(table).where(here).values(members=bindparam("members")), grown)
    if new:
        connection.execute(insert(table), new)


def in_order(connection: Connection, dataset_id: int, arrivals: NDArray[np.int64], people: int) -> bool:
    """Whether everybody is at the place they were given: who came together stands in the order of their hashes.

    `arrivals` are the first places of those who came with one change. Two people whose places were swapped from outside, and
    with them their histories, are out of order.
    """
    query = select(schema.persons.c.members).where(schema.persons.c.dataset_id == dataset_id)
    members = [np.frombuffer(bytes(row), dtype=MEMBER) for row in connection.execute(query).scalars()]
    there = np.concatenate(members) if members else np.zeros(0, dtype=MEMBER)
    there = there[np.argsort(there["place"], kind="stable")]
    if not np.array_equal(there["place"], np.arange(people)):
        return False
    high, low = there["high"].astype(np.uint64), there["low"].astype(np.uint64)
    rises = (high[1:] > high[:-1]) | ((high[1:] == high[:-1]) & (low[1:] > low[:-1]))
    rises[arrivals[(arrivals > 0) & (arrivals < people)] - 1] = True
    return bool(rises.all())
