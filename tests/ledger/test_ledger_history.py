"""What a line of the history tells: name, question, recipient, who asked and the minute; and what it does not tell."""

from __future__ import annotations

import getpass
import json
import re
from pathlib import Path

import pytest
from sqlalchemy import text

from sfumato.errors import InputError, LedgerError
from sfumato.ledger import Ledger
from sfumato.privacy.charge import Charge

MINUTE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\dZ")


@pytest.fixture
def ledger(where: str) -> Ledger:
    ledger = Ledger.open(where)
    ledger.register("clinic", epsilon=1)
    return ledger


def test_a_line_says_what_was_asked_by_whom_for_whom(ledger: Ledger) -> None:
    request = {"kind": "histogram", "where": "age >= 65", "parameters": {"columns": ["ward", "sex"]}, "chosen": "ahp"}
    reserved = ledger.reserve("clinic", Charge.of("0.1"), request=request, recipient="board", name="wards", by="ana")
    (line,) = ledger.history("clinic")
    assert line == ledger.entry("clinic", reserved.id)
    assert (line.name, line.kind, line.columns, line.where) == ("wards", "histogram", ("ward", "sex"), "age >= 65")
    assert (line.recipient, line.by, line.state, line.total) == ("board", "ana", "reserved", 10**8)
    shown = json.loads(json.dumps(ledger.balance("clinic").to_dict()))["releases"][0]
    expected = {"name": "wards", "kind": "histogram", "columns": ["ward", "sex"], "where": "age >= 65"}
    expected |= {"recipient": "board", "by": "ana", "state": "reserved", "total": "0.1"}
    assert shown.items() >= {k: v for k, v in expected.items() if k != "columns"}.items()
    assert shown["columns"] == expected["columns"]
    assert MINUTE.fullmatch(shown["reserved_at"])


@pytest.mark.parametrize(
    ("request_", "found"),
    [
        ({"kind": "mean", "options": {"column": "age"}}, ("mean", ("age",), None)),
        ({"kind": "grid", "parameters": {"target": "ill", "attributes": ["age", "ill"]}}, ("grid", ("ill", "age"), None)),
        ({"kind": "count", "where": None, "options": {}}, ("count", (), None)),
        ({"kind": "sum", "column": "age", "where": "age < 5"}, ("sum", ("age",), "age < 5")),
        ({"kind": 3, "where": ["x"], "options": ["column"], "columns": [1]}, (None, (), None)),
        ("not JSON", (None, (), None)),
        ("[1]", (None, (), None)),
        ("[" * 100_000, (None, (), None)),
    ],
)
def test_kind_columns_and_condition_come_from_the_request(ledger: Ledger, request_: object, found: tuple) -> None:  # type: ignore[type-arg]
    ledger.reserve("clinic", Charge(1), request=request_)  # type: ignore[arg-type]
    (line,) = ledger.history("clinic")
    assert (line.kind, line.columns, line.where) == found


def test_the_name_is_not_part_of_the_request(ledger: Ledger) -> None:
    first = ledger.reserve("clinic", Charge(1), request="a", name="one")
    ledger.commit(first.id, "out")
    assert ledger.reserve("clinic", Charge(1), request="a", name="two").id == first.id
    assert [line.name for line in ledger.history("clinic")] == ["one"]


def test_nobody_is_recorded_who_did_not_say_so(where: str, ledger: Ledger) -> None:
    ledger.reserve("clinic", Charge(1), request="a")
    (line,) = ledger.history("clinic")
    assert (line.name, line.by, line.recipient) == (None, None, None)
    if ledger._store.is_sqlite and len(getpass.getuser()) > 3:
        assert getpass.getuser().encode() not in Path(where).read_bytes()


@pytest.mark.parametrize("given", ["", "  ", "a\nb", "\x1b[2J", "a\0b"])
@pytest.mark.parametrize("key", ["name", "by", "recipient"])
def test_what_is_shown_in_a_list_must_be_printable(ledger: Ledger, key: str, given: str) -> None:
    with pytest.raises(InputError, match="printable"):
        ledger.reserve("clinic", Charge(1), request="a", **{key: given})  # type: ignore[arg-type]
    assert ledger.history("clinic") == ()


def test_times_are_kept_to_the_minute(where: str, ledger: Ledger) -> None:
    done = ledger.reserve("clinic", Charge(1), request="a")
    ledger.commit(done.id, "out")
    ledger.fail(ledger.reserve("clinic", Charge(1), request="b").id)
    ledger.reserve("clinic", Charge(1), request="c")
    for line in ledger.history("clinic"):
        assert MINUTE.fullmatch(line.reserved_at)
        assert line.finished_at is None if line.state == "reserved" else MINUTE.fullmatch(str(line.finished_at))
    with ledger._store.read() as connection:
        assert MINUTE.fullmatch(connection.execute(text("SELECT created_at FROM ledger_datasets")).scalar_one())
    if ledger._store.is_sqlite:
        assert not re.search(rb"\d\d:\d\d:\d\d", Path(where).read_bytes())


FINER = "2026-01-31T12:34:56.789+00:00"


@pytest.mark.parametrize(
    "statement",
    [
        f"UPDATE ledger_releases SET state = 'failed', finished_at = '{FINER}'",
        "UPDATE ledger_releases SET state = 'failed'",
        f"INSERT INTO ledger_datasets (name, created_at) VALUES ('x', '{FINER}')",
        "INSERT INTO ledger_releases (dataset_id, fingerprint, request, total, state, reserved_at) "
        f"VALUES (1, 'f', 'r', 1, 'reserved', '{FINER}')",
        "INSERT INTO ledger_releases (dataset_id, fingerprint, request, total, state, reserved_at, finished_at) "
        f"VALUES (1, 'f', 'r', 1, 'failed', '2026-01-31T12:34Z', '{FINER}')",
    ],
)
def test_the_tables_take_no_finer_time(ledger: Ledger, statement: str) -> None:
    ledger.reserve("clinic", Charge(1), request="a")
    before = ledger.history("clinic")

    def write() -> None:
        with ledger._store.write() as connection:
            connection.execute(text(statement.replace(":", r"\:")))

    with pytest.raises(LedgerError, match="refused a change"):
        write()
    assert ledger.history("clinic") == before


def test_an_entry_is_found_only_in_its_own_dataset(ledger: Ledger) -> None:
    ledger.register("ward", epsilon=1)
    here, there = (ledger.reserve(name, Charge(1), request="a").id for name in ("clinic", "ward"))
    assert ledger.entry("clinic", there) is None
    found = ledger.entry("ward", there)
    assert found is not None
    assert found.charges == (("total", "", 1),)
    for number in (here + there + 1, 0, -1, 10**30):
        assert ledger.entry("clinic", number) is None


def test_messages_are_true_for_the_command_line_and_for_python(tmp_path: Path, ledger: Ledger) -> None:
    said = []
    for ask in (
        lambda: Ledger.open(tmp_path / "none.ledger", create=False),
        lambda: ledger.balance("clinc"),
        lambda: ledger.reserve("clinic", Charge.of(2), request="a"),
    ):
        with pytest.raises(ValueError, match=r"check the name|lower its epsilon or share") as refusal:
            ask()
        said.append(str(refusal.value))
    assert not re.search(r"create=|the plan|\[dataset\]|register\(", " ".join(said))


def test_the_answer_of_another_dataset_is_not_handed_out(ledger: Ledger) -> None:
    """The same words asked of two datasets are two questions: each is charged, and each has its own answer."""
    ledger.register("school", epsilon=1)
    first = ledger.reserve("clinic", Charge.of("0.1"), request={"kind": "count"})
    ledger.commit(first.id, {"answer": "of the clinic"})
    second = ledger.reserve("school", Charge.of("0.1"), request={"kind": "count"})
    assert not second.repeated
    assert second.artefact is None
    assert ledger.balance("school").to_dict()["releases"][0]["state"] == "reserved"
    again = ledger.reserve("clinic", Charge.of("0.1"), request={"kind": "count"})
    assert again.repeated
    assert again.artefact == {"answer": "of the clinic"}
