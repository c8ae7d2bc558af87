"""The log of a private roster tells nobody that somebody chose, and still covers every line."""

from __future__ import annotations

import itertools
import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import LedgerError
from sfumato.ledger import Ledger, schema
from sfumato.ledger.life import Life
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge

TIERS = PersonBudgets.from_tiers({"strict": ("0.1", 0), "open": (1, 0)})
SALTED = {"seal", "standing", "root", "leaf", "artefact"}
MINUTE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\dZ")

# What somebody does at each of four moments: before and after the first epoch, before a charge, and at the end.
LIVES: dict[str, tuple[Callable[[Life], object] | None, ...]] = {
    "nobody": (None, None, None, None),
    "joins": (lambda life: life.join("zoe", "open"), None, None, None),
    "late": (None, lambda life: life.join("zoe", "strict"), None, None),
    "lowers": (lambda life: life.join("zoe", "open"), None, lambda life: life.change("zoe", "strict"), None),
    "leaves": (lambda life: life.join("zoe", "open"), lambda life: life.withdraw("zoe"), None, None),
    "returns": (
        lambda life: life.join("zoe", "open"),
        lambda life: life.withdraw("zoe"),
        lambda life: life.join("zoe", "open"),
        lambda life: life.withdraw("zoe"),
    ),
    "twice": (
        lambda life: [life.choose("zoe", tier) for tier in ("open", "strict")],
        None,
        lambda life: [life.choose("zoe", tier) for tier in ("open", None)],
        None,
    ),
    "brought": (
        lambda life: life.bring(["zoe"], ["open"]),
        None,
        lambda life: life.bring([], [], missing="withdraw"),
        None,
    ),
}


def lived(folder: Path, acts: tuple[Callable[[Life], object] | None, ...]) -> list[Any]:
    """Everything that others see of a life in the log."""
    folder.mkdir()
    ledger = Ledger.open(folder / "a.ledger", keys=folder / "keys")
    told: list[Any] = []
    ledger.witness = lambda checkpoint: told.append(checkpoint["size"])
    ledger.register("ward", epsilon=5, people=TIERS, living=True, private=True)
    life, requests = ledger.people("ward"), itertools.count()

    def at(moment: int) -> None:
        before = len(told)
        act = acts[moment]
        if act is not None:
            act(life)
        assert set(told[before:]) <= {ledger.checkpoint("ward").size}  # a witness keeps the same as before
        del told[before:]
        told.append(ledger.checkpoint("ward").size)

    def charged() -> None:
        made = ledger.reserve("ward", Charge.of_people([10**6, 10**7]), request=str(next(requests)))
        told.append(ledger.proof("ward", made.id))
        ledger.commit(made.id, {"folder": "x"})

    told.append(repr(life.bind()))
    at(0)
    told.append(repr(life.epoch()))
    at(1)
    charged()
    told.append(repr(life.epoch()))
    at(2)
    told.append(repr(life.bind()))
    charged()
    at(3)
    charged()
    charged()
    told.append(repr(life.epoch()))
    told.append([(entry.index, entry.kind, json.loads(entry.body)) for entry in ledger.log_page("ward", limit=500)])
    ledger.verify("ward")
    return json.loads(MINUTE.sub("NOW", json.dumps(bare(told))))  # type: ignore[no-any-return]


def bare(told: Any) -> Any:
    """Without hashes that a salt went into, and signatures over them."""
    if isinstance(told, dict):
        return {key: "hash" if key in SALTED and value else bare(value) for key, value in told.items() if key != "signature"}
    if isinstance(told, list | tuple):
        return [bare(one) for one in told]
    if isinstance(told, str) and told.startswith("{"):
        return bare(json.loads(told))
    return "hash" if isinstance(told, str) and re.fullmatch("[0-9a-f]{64}", told) else told


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    return lived(tmp_path_factory.mktemp("quiet") / "nobody", LIVES["nobody"])


@pytest.mark.parametrize("life", [name for name in LIVES if name != "nobody"])
def test_what_somebody_chooses_is_not_told(swift: Path, without: list[Any], life: str) -> None:
    told = lived(swift / life, LIVES[life])
    assert told == without
    kinds = [kind for _, kind, _ in told[-1]]
    charge = ["changed", "reserved", "finished"]
    assert kinds == ["registered", "changed", "changed", *charge, *["changed"] * 2, *charge * 3, "changed"]


def quiet(folder: Path) -> Ledger:
    """A private roster with an epoch, something that bound at a charge, a bind of nothing, and three lines that wait."""
    ledger = Ledger.open(folder / "a.ledger")
    ledger.register("ward", epsilon=5, people=TIERS, living=True, private=True)
    life = ledger.people("ward")
    life.bring(["ana", "ben", "eve"], ["open", "strict", "open"])
    life.epoch()
    life.change("ana", "strict")
    ledger.reserve("ward", Charge.of_people([10**6, 10**7]), request="a")
    life.bind()
    life.withdraw("eve")
    life.join("zoe", "open")
    life.change("ben", "open")
    ledger.verify("ward")
    return ledger


def loose(folder: Path) -> sqlite3.Connection:
    """The database, which refuses nothing any more."""
    connection = sqlite3.connect(folder / "a.ledger", isolation_level=None)
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    return connection


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE ledger_choices SET lowers = 0 WHERE lowers > 0",
        "UPDATE ledger_choices SET entries = (SELECT entries FROM ledger_choices ORDER BY id LIMIT 1)",
        "UPDATE ledger_choices SET id = id + 100 WHERE id = (SELECT max(id) FROM ledger_choices)",
        "UPDATE ledger_choices SET salt = substr(salt, 1, 95) || 'x' WHERE id = (SELECT max(id) FROM ledger_choices)",
        "UPDATE ledger_choices SET salt = ''",
        "DELETE FROM ledger_choices WHERE id = (SELECT min(id) FROM ledger_choices)",
        "DELETE FROM ledger_choices WHERE id = (SELECT min(id) + 1 FROM ledger_choices)",
        "UPDATE ledger_changes SET joined = joined + 1 WHERE number = 1",
        "UPDATE ledger_changes SET at = '2026-01-01T00:00Z' WHERE number = 2",
        "DELETE FROM ledger_changes WHERE number = 2",
        "INSERT INTO ledger_changes SELECT dataset_id, 3, 99, 'bind', epoch, at, people, 0, 0, 0, 0, 0, applied, after"
        " FROM ledger_changes WHERE number = 2",
        "UPDATE ledger_change_chunks SET entries = entries || x'00' WHERE number = 2",
        "UPDATE ledger_meta SET value = '00' WHERE name = 'people_key'",
        "DELETE FROM ledger_meta WHERE name = 'people_key'",
        "UPDATE ledger_lives SET private = 0",
    ],
)
def test_a_changed_line_is_found(swift: Path, harm: str) -> None:
    ledger = quiet(swift)
    assert loose(swift).execute(harm).rowcount > 0
    with pytest.raises(LedgerError):
        ledger.verify("ward")


def test_lines_that_changed_places_are_found(swift: Path) -> None:
    ledger = quiet(swift)
    connection = loose(swift)
    first, second, _ = (number for (number,) in connection.execute("SELECT id FROM ledger_choices ORDER BY id"))
    for old, new in ((first, 1000), (second, first), (1000, second)):
        connection.execute("UPDATE ledger_choices SET id = ? WHERE id = ?", (new, old))
    with pytest.raises(LedgerError, match="chosen"):
        ledger.verify("ward")


def test_it_is_so_on_both_databases(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_PEOPLE_KEY", str(tmp_path / "people.key"))
    ledger = Ledger.open(where)
    for dataset, private in (("ward", True), ("open", False)):
        ledger.register(dataset, people=TIERS, living=True, private=private)
    for number in range(3):  # lines of both are numbered together
        for dataset in ("ward", "open"):
            ledger.people(dataset).bring([f"a{number}", f"b{number}"], ["open", "strict"])
            ledger.people(dataset).join(f"c{number}", "strict")
    for dataset in ("ward", "open"):
        ledger.verify(dataset)
        ledger.people(dataset).epoch()
        ledger.people(dataset).change("a0", "strict")
        ledger.people(dataset).bind()
        ledger.people(dataset).join("a0", "open")
        ledger.verify(dataset)
    assert [entry.kind for entry in ledger.log_page("ward")] == ["registered", "changed", "changed"]


def back_to_format_4(folder: Path) -> Ledger:
    """The same ledger as if it had been made before there were logs, brought up to date again."""
    connection = loose(folder)
    for table in schema.SINCE_5:
        connection.execute(f"DROP TABLE {table.name}")
    connection.execute("ALTER TABLE ledger_choices DROP COLUMN salt")
    connection.execute("UPDATE ledger_meta SET value = '4' WHERE name = 'version'")
    connection.close()
    return Ledger.open(folder / "a.ledger")


def test_the_key_is_there_before_anybody_comes(swift: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.open(swift / "a.ledger")
    with monkeypatch.context() as patch:
        patch.setattr(ledger._store, "key", None)  # as on a server, where nobody said where it is
        with pytest.raises(LedgerError, match="needs a key file"):
            ledger.register("ward", people=TIERS, living=True, private=True)
    ledger.register("ward", people=TIERS, living=True, private=True)
    assert (swift / "a.ledger.key").exists()


def test_a_key_that_came_after_the_registration_is_in_no_entry(swift: Path) -> None:
    """As with a ledger from before there were logs, in which nobody was yet."""
    Ledger.open(swift / "a.ledger").register("ward", people=TIERS, living=True, private=True)
    loose(swift).execute("DELETE FROM ledger_meta WHERE name = 'people_key'")
    (swift / "a.ledger.key").unlink()
    ledger = back_to_format_4(swift)
    ledger.people("ward").join("ana", "open")
    assert [entry.kind for entry in ledger.log_page("ward")] == ["registered", "migrated"]
    ledger.verify("ward")


def test_a_ledger_from_before_the_log_tells_as_little(swift: Path) -> None:
    told = []
    for name in ("zoe", None):
        folder = swift / str(name)
        folder.mkdir()
        ledger = Ledger.open(folder / "a.ledger")
        ledger.register("ward", epsilon=5, people=TIERS, living=True, private=True)
        life = ledger.people("ward")

        def theirs(tier: str | None, life: Life, here: bool = name is not None) -> None:
            if here:
                life.choose("zoe", tier)

        for number in range(2):
            theirs("open", life)
            life.epoch()
            theirs("strict", life)
            ledger.reserve("ward", Charge.of_people([10**6, 10**7]), request=str(number))
        theirs(None, life)
        life.bind()
        theirs("open", life)
        ledger = back_to_format_4(folder)
        ledger.verify("ward")
        life = ledger.people("ward")
        theirs("strict", life)
        ledger.verify("ward")
        ledger.reserve("ward", Charge.of_people([10**6, 10**7]), request="more")
        life.epoch()
        ledger.verify("ward")
        told.append([bare(json.loads(MINUTE.sub("NOW", entry.body))) for entry in ledger.log_page("ward")])
    assert told[0] == told[1]
    kinds = [body["kind"] for body in told[0]]
    assert kinds == ["registered", "reserved", "reserved", "changed", "migrated", "changed", "reserved", "changed"]


@pytest.mark.parametrize("private", [True, False])
def test_numbers_of_choices_go_on_after_a_ledger_was_brought_up_to_date(swift: Path, private: bool) -> None:
    """A line with a number that came into force already would pass for one of those."""
    ledger = Ledger.open(swift / "a.ledger")
    ledger.register("ward", epsilon=5, people=TIERS, living=True, private=private)
    ledger.people("ward").join("ana", "open")
    ledger.people("ward").epoch()
    ledger = back_to_format_4(swift)
    ledger.people("ward").join("ben", "open")
    ledger.verify("ward")
