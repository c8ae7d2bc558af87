"""A charge on the device is on the disk before anything is read."""

import os

from sfumato.attributes.device_ledger import DeviceLedger, Limits
from sfumato.privacy.charge import Charge


def test_a_charge_is_flushed_before_it_takes_the_place_of_the_old_file(tmp_path, monkeypatch):
    done = []
    flush, place = os.fsync, os.replace

    def seen(descriptor):
        done.append("flush")
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", seen)
    monkeypatch.setattr(os, "replace", lambda *names: done.append("rename") or place(*names))
    ledger = DeviceLedger(tmp_path / "phone.ledger")
    ledger.charge("adnet", Charge(200, attributes={"x": 100}), Limits(overall=300, attributes={"x": 250}))
    assert done == ["flush", "rename", "flush"]  # the file, its new name, and the folder that has it
    assert DeviceLedger(tmp_path / "phone.ledger").spent("adnet").total == 200
