"""A charge is on the disk when it was taken, and what one dataset paid for is never handed to another."""

import pandas as pd
import pytest

import sfumato as sf
from sfumato.ledger import Ledger
from sfumato.ledger.database import Store
from sfumato.privacy import Charge


def test_every_connection_waits_for_the_disk(tmp_path):
    Ledger.open(tmp_path / "x.ledger")
    store = Store.opened(tmp_path / "x.ledger", create=False)
    for way in (store.read, store.write):
        with way() as connection:
            settings = {
                name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("synchronous", "journal_mode")
            }
        assert settings == {"synchronous": 2, "journal_mode": "wal"}  # 2 is FULL


def test_a_request_that_another_dataset_paid_for_is_charged(tmp_path):
    ledger = Ledger.open(tmp_path / "x.ledger")
    for name in ("east", "west"):
        ledger.register(name, epsilon=1)
    first = ledger.reserve("east", Charge.of("0.5"), request={"kind": "count"})
    ledger.commit(first.id, {"value": 17})
    assert ledger.reserve("east", Charge.of("0.5"), request={"kind": "count"}).artefact == {"value": 17}
    assert ledger.find("west", {"kind": "count"}) is None
    assert not ledger.reserve("west", Charge.of("0.5"), request={"kind": "count"}).repeated
    assert ledger.balance("west").total.spent == 500_000_000


@pytest.mark.parametrize("kind", ["count", "histogram"])
def test_the_same_question_to_two_tables_of_one_ledger_is_answered_from_each(tmp_path, kind):
    schema = sf.Schema({"age": sf.Numeric(0, 100, bins=2, integer=True)})

    def ask(name, rows):
        frame = pd.DataFrame({"age": [10] * rows})
        table = sf.open(
            frame, schema=schema, epsilon=2000, rows=100, ledger=tmp_path / "x.ledger", name=name, noise=sf.Seeded(1)
        )
        keys = {"columns": ["age"], "mechanism": "identity"} if kind == "histogram" else {}
        made = table.release(kind, epsilon=900, **keys)
        return made, (made.value if kind == "count" else float(made.counts.sum()))

    few, many = ask("few", 3), ask("many", 90)
    assert not many[0].repeated
    assert many[0].receipt.certificate["fingerprint"] != few[0].receipt.certificate["fingerprint"]
    assert round(few[1]) == 3
    assert round(many[1]) == 90
    assert ask("few", 90)[0].repeated
