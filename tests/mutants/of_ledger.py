"""Mutants of the ledgers: the dataset's and the device's."""

from __future__ import annotations

from .model import Mutant

SPENDING = ("tests/ledger/test_ledger_spending.py", "tests/ledger/test_ledger_people.py", "src/sfumato/ledger/caps.py")
HISTORY = ("tests/ledger/test_ledger_history.py", *SPENDING)
TROUBLE = ("tests/ledger/test_ledger_trouble.py",)
DEVICE = ("tests/attributes/test_attribute_ledger.py", "src/sfumato/attributes/device_ledger.py")

MUTANTS = (
    Mutant("people-cap-not-checked", "people spend more than they granted", "ledger/caps.py", "    short = np.flatnonzero(asked > left)", "    short = np.flatnonzero(asked > left + 10**18)", SPENDING),
    Mutant("cap-passed-by-one-release", "a cap lets the last release through whatever it costs", "ledger/caps.py", "            if nano > cap - limit.spent:", "            if limit.spent > cap:", SPENDING),
    Mutant("release-to-all-charges-nobody", "a release to nobody in particular is charged to no recipient", "ledger/caps.py", "recipient not in (None, limit.name)", "recipient != limit.name", SPENDING),
    Mutant("people-of-a-total-pay-nothing", "a charge without people charges none of them", "ledger/caps.py", "            return np.full(len(levels), total, dtype=np.int64)", "            return np.zeros(len(levels), dtype=np.int64)", SPENDING),
    Mutant("fraction-cut-to-nothing", "a fraction of a nano-ε is cut to nothing", "ledger/caps.py", "            return Nano(operator.index(nano))", "            return Nano(int(nano))", ("tests/ledger",)),
    Mutant("unknown-recipient-is-free", "a recipient without a budget is charged nothing", "ledger/caps.py", "        if known and named - known:", "        if False:", SPENDING),
    Mutant("people-not-charged", "what people spend is not written down", "ledger/reserve.py", "        if group is not None and price.people is not None:", "        if False:", SPENDING),
    Mutant("limits-not-charged", "what a release costs is not written down", "ledger/reserve.py", "        _charge_limits(connection, dataset_id, release_id, price.limits)", "        pass", SPENDING),
    Mutant("another-dataset's-answer", "the stored answer of another dataset is handed out", "ledger/reserve.py", "        table.c.dataset_id == dataset_id,\n        table.c.fingerprint", "        table.c.fingerprint", ("tests/ledger/test_ledger_history.py", "tests/ledger/test_ledger_spending.py")),
    Mutant("another-recipient's-answer", "a release to one recipient is handed to another for nothing", "ledger/reserve.py", "or_(everybody, table.c.recipient == recipient)", "or_(everybody, table.c.recipient.is_not(None))", ("tests/ledger",)),
    Mutant("unfinished-answer", "a release that failed counts as paid", "ledger/reserve.py", "        table.c.state == \"committed\",\n", "", HISTORY),
    Mutant("failed-becomes-committed", "a failed release becomes a committed one", "ledger/reserve.py", ".where(table.c.id == release_id, table.c.state == \"reserved\")", ".where(table.c.id == release_id)", HISTORY),
    Mutant("balance-behind-the-lock", "a balance is read before the lock is held", "ledger/database.py", "\"BEGIN IMMEDIATE\" if writing else \"BEGIN\"", "\"BEGIN\"", ("tests/ledger/test_ledger_races.py",)),
    Mutant("synchronous-off", "a power cut forgets a charge", "ledger/database.py", "PRAGMA synchronous = FULL", "PRAGMA synchronous = OFF", ("tests/ledger",)),
    Mutant("ledger-in-memory", "a ledger that forgets", "ledger/database.py", "        if not place or place == \":memory:\":", "        if not place:", TROUBLE),
    Mutant("signature-not-checked", "what people have spent is lowered from outside", "ledger/cohorts.py", " or _unsigned(connection, now):", ":", ("tests/ledger",)),
    Mutant("people-race", "two processes charge the same people once", "ledger/cohorts.py", ".where(table.c.dataset_id == dataset_id, table.c.last_release == cohorts.last_release)", ".where(table.c.dataset_id == dataset_id)", ("tests/ledger",), "the dataset's lock is held: no second process can come between; the condition says it once more"),
    Mutant("device-overall", "a recipient learns more than its ε", "attributes/device_ledger.py", "        checks = [(price.total, one.total, limits.overall, f\"towards {recipient!r}\")]", "        checks = []", DEVICE),
    Mutant("device-together", "colluding recipients learn more than their cap", "attributes/device_ledger.py", "            checks.append((price.total, everybody.total, limits.together, \"towards all recipients together\"))", "            pass", DEVICE),
    Mutant("device-attribute-without-budget", "an attribute without a budget may be spent", "attributes/device_ledger.py", "limits.attributes.get(name, _NOTHING), f\"{who} {recipient!r}\")", "limits.attributes.get(name, asked), f\"{who} {recipient!r}\")", DEVICE),
    Mutant("device-sum-forgets", "the second release to a recipient forgets the first", "attributes/device_ledger.py", "{\"overall\": before.total + price.total, \"attributes\": each}", "{\"overall\": price.total, \"attributes\": each}", DEVICE),
    Mutant("device-not-flushed", "a charge is not on the disk when the history is read", "attributes/device_ledger.py", "            os.fsync(file.fileno())\n", "", DEVICE),
    Mutant("device-stale", "a second process overwrites what the first has charged", "attributes/device_ledger.py", "            _lock(lock)\n            if os.path.exists(self.path):\n                self._read()\n            elif", "            _lock(lock)\n            if", DEVICE),
    Mutant("better-reputation-less", "a less reputed recipient may learn more", "attributes/recipients.py", "            if (other - reputation) * (value - nano) < 0:", "            if False:", (*DEVICE, "tests/attributes/test_attribute_policy.py")),
)
