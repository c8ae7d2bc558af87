"""Streams in a file: the same stream after a restart, whatever was killed when, and never two of it."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import stat

import numpy as np
import pytest

from sfumato.attributes import DeviceLedger, Profile
from sfumato.errors import LedgerError, PrivacyError
from sfumato.privacy import Meter, Seeded, sealed
from sfumato.testing import reveal

SHOP = {"a": ["x", "y"], "b": ["y"], "c": ["x"]}


def profile(folder, **more) -> Profile:
    return Profile(SHOP, budgets={"x": 2, "y": 2}, ledger=DeviceLedger(folder / "me.json"), **more)


def state(stream):
    told = (stream.time, stream._finished.tolist(), stream._noisy.tolist(), stream._fresh, stream._draws, stream._past)
    return told, reveal(stream._state).tolist()


def test_a_stream_goes_on_where_it_was_and_nothing_is_charged_again(tmp_path):
    mine = profile(tmp_path, source=Seeded(1))
    stream = mine.stream(to="shop", epsilon=1, fanout=2)
    stream.add(["a"])
    stream.save(tmp_path / "stream.json")
    for item in "abcab":
        stream.add([item])
        before = stream.release()
    spent = mine.ledger.spent("shop")
    again = profile(tmp_path, source=Seeded(2)).resume_stream(tmp_path / "stream.json")
    assert state(again) == state(stream)
    told = again.release()
    assert told.counts.tolist() == before.counts.tolist()
    assert told.deviations.tolist() == before.deviations.tolist()
    assert (told.recipient, told.guarantee.nano) == ("shop", before.guarantee.nano)
    assert DeviceLedger(tmp_path / "me.json").spent("shop").total == spent.total
    again.skip(30)
    again.add(["c"])
    assert again.time == stream.time + 31
    assert stat.S_IMODE(os.stat(tmp_path / "stream.json").st_mode) == 0o600


def test_an_older_file_is_refused_and_so_are_copies_that_go_on_beside(tmp_path):
    mine = profile(tmp_path)
    stream = mine.stream(to="shop", epsilon=1)
    stream.save(tmp_path / "stream.json")
    shutil.copy(tmp_path / "stream.json", tmp_path / "old.json")
    other = profile(tmp_path).resume_stream(tmp_path / "stream.json")
    stream.add(["a"])
    stream.release()
    for act in (lambda: other.add(["b"]), other.release, other.release):  # not even after it was refused once
        with pytest.raises(LedgerError, match="another process went on"):
            act()
    with pytest.raises(LedgerError, match="older than what the ledger knows"):
        profile(tmp_path).resume_stream(tmp_path / "old.json")
    with pytest.raises(LedgerError, match="already; in two files"):
        stream.save(tmp_path / "second.json")
    with pytest.raises(LedgerError, match="exists"):
        mine.stream(to="club", epsilon=1).save(tmp_path / "old.json")
    with pytest.raises(PrivacyError, match="cannot be copied"):
        stream.__reduce_ex__(2)


def test_files_of_other_ledgers_damaged_ones_and_unpaid_ones_are_refused(tmp_path):
    stream = profile(tmp_path).stream(to="shop", epsilon=1)
    stream.save(tmp_path / "stream.json")
    away = tmp_path / "away"
    away.mkdir()
    with pytest.raises(LedgerError, match="another ledger"):
        profile(away).resume_stream(tmp_path / "stream.json")
    text = (tmp_path / "stream.json").read_text()
    for damaged in (text[:-9], text.replace('"clock": 0', '"clock": 1'), "[]", '{"kind": "x"}'):
        (tmp_path / "damaged.json").write_text(damaged)
        with pytest.raises(LedgerError, match="not readable, or was changed"):
            profile(tmp_path).resume_stream(tmp_path / "damaged.json")
    ledger = json.loads((tmp_path / "me.json").read_text())
    ledger["spent"]["shop"]["overall"] = 5
    (tmp_path / "me.json").write_text(json.dumps(ledger))
    with pytest.raises(LedgerError, match="never charged for"):
        profile(tmp_path).resume_stream(tmp_path / "stream.json")
    with pytest.raises(LedgerError, match="ledger in a file"):
        Profile(SHOP, budgets={"x": 2, "y": 2}).stream(to="shop", epsilon=1).save(tmp_path / "no.json")


def live_until_killed(folder, write, place):
    """A process of its own: steps and answers until the given write, at which it dies without a word."""
    stream = profile(folder, source=Seeded(4)).resume_stream(folder / "stream.json")
    writes = itertools.count(1)
    really = os.replace

    def deadly(source, target):
        number = next(writes)
        if number == write and place == "before":
            os._exit(9)
        really(source, target)
        if number == write:
            os._exit(9)

    os.replace = deadly
    with open(folder / "told.txt", "a", encoding="utf-8", buffering=1) as told:
        for item in itertools.cycle("abc"):
            stream.add([item])
            told.write(json.dumps(["added", stream.time, []]) + "\n")
            told.write(json.dumps(["told", stream.time, stream.release().counts.tolist()]) + "\n")


# A step and an answer take four writes: file and ledger, file and ledger.
@pytest.mark.parametrize(
    ("write", "place"), [*itertools.product((1, 2, 3, 4), ("before", "after")), (13, "before"), (14, "after")]
)
def test_a_kill_loses_one_step_at_most_and_nothing_is_told_twice_with_other_noise(tmp_path, write, place):
    profile(tmp_path).stream(to="shop", epsilon=1, fanout=2).save(tmp_path / "stream.json")
    (tmp_path / "told.txt").touch()
    for number in (write, write + 1):  # and again: killed, resumed, killed
        child = os.fork()
        if not child:
            live_until_killed(tmp_path, number, place)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    lines = [json.loads(line) for line in (tmp_path / "told.txt").read_text().splitlines()]
    again = profile(tmp_path, source=Seeded(5)).resume_stream(tmp_path / "stream.json")
    added = max((time for what, time, _ in lines if what == "added"), default=0)
    told = {}
    for what, time, counts in lines:
        assert what == "added" or told.setdefault(time, counts) == counts
    assert added <= again.time <= added + 2  # each kill may have come after a step was kept and before it was said
    if again.time in told:
        assert again.release().counts.tolist() == told[again.time]
    again.add(["a"])
    again.release()
    assert DeviceLedger(tmp_path / "me.json").spent("shop").total <= 10**9


def test_the_private_sums_are_written_by_the_meter_alone(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr("sfumato.privacy.items.write_durably", lambda path, text: written.append((path, text)))
    stream = profile(tmp_path).stream(to="shop", epsilon=1, fanout=2)
    stream.add(["a"])
    stream.save(tmp_path / "stream.json")
    assert [path for path, _ in written] == [str(tmp_path / "stream.json")]
    assert np.array(json.loads(written[0][1])["private"]).sum() > 0
    assert isinstance(stream.meter, Meter)
    assert sealed.checksum({}) != sealed.checksum({}, b"key")
