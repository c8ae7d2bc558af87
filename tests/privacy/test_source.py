"""Where bits come from: no stream is ever seen twice, and a seed is never private."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sfumato.privacy import Charge, Meter, noise, source
from sfumato.privacy.source import SECURE, Secure, Seeded

fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


def in_child(work) -> bytes:
    """What `work()` returns in a forked child."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, work())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        found = pipe.read()
    os.waitpid(pid, 0)
    return found


@fork
def test_a_forked_child_draws_other_noise():
    SECURE.words(4096)  # the parent's stream is open: this is what a child would repeat
    children = [in_child(lambda: SECURE.words(8).tobytes()) for _ in range(3)]
    seen = {*children, SECURE.words(8).tobytes()}
    assert len(seen) == 4
    assert all(len(bits) == 64 for bits in seen)


@fork
def test_a_child_with_the_parents_pid_draws_other_noise(monkeypatch):
    """As pid 1 of a new container: the pid does not change with the fork."""
    monkeypatch.setattr(source.os, "getpid", lambda: 1)
    mine = Secure()
    mine.words(4096)
    assert in_child(lambda: mine.words(8).tobytes()) != mine.words(8).tobytes()


def test_threads_never_share_a_stream():
    start = threading.Barrier(8)

    def draw(_: int) -> list[int]:
        start.wait()
        return np.concatenate([SECURE.words(500) for _ in range(20)]).tolist()

    with ThreadPoolExecutor(8) as pool:
        words = [w for part in pool.map(draw, range(8)) for w in part]
    assert len(set(words)) == 80_000  # 64-bit words: a repetition by chance has probability 2e-10


def test_words_are_uniform_bits_and_never_repeat():
    words = SECURE.words(1 << 16)
    ones = np.unpackbits(words.view(np.uint8)).reshape(-1, 64).sum(axis=0)
    assert np.abs(ones / (1 << 16) - 0.5).max() < 6 * 0.5 / 256
    assert np.unique(words).size == 1 << 16
    assert SECURE.words(0).size == 0
    assert SECURE.words(300_001).size == 300_001  # more than one piece of the cipher's input


def test_the_key_is_renewed(monkeypatch):
    monkeypatch.setattr(source, "_REKEY_AFTER", 100)
    keys = []
    monkeypatch.setattr(source.os, "urandom", lambda n, real=os.urandom: keys.append(n) or real(n))
    mine = Secure()
    for _ in range(3):
        mine.words(4096)
    assert keys.count(32) == 3


def test_a_seed_is_reproducible_and_marked():
    rates = np.arange(1, 5000) * 1000
    assert (noise.laplace(rates, source=Seeded(3)) == noise.laplace(rates, source=Seeded(3))).all()
    assert (noise.laplace(rates, source=Seeded(3)) != noise.laplace(rates, source=Seeded(4))).any()
    assert noise.choose([0, 0, 0, 0], rate=1, source=Seeded(3)) == noise.choose([0, 0, 0, 0], rate=1, source=Seeded(3))
    meter = Meter(limit=Charge.of(1), source=Seeded(3))
    meter.laplace([1], rate=10**9)
    assert not meter.private
    promise = meter.guarantee()
    assert not promise.private
    assert promise.sentence().startswith("NOT PRIVATE")
    assert promise.to_dict()["private"] is False
    assert Meter().private


def test_post_processing_is_reproducible_under_a_seed_only():
    assert Meter(source=Seeded(1)).post_processing().random() == Meter(source=Seeded(1)).post_processing().random()
    assert Meter().post_processing().random() != Meter().post_processing().random()


def test_parts_are_dealt_by_the_source_of_the_noise_evenly_and_one_record_at_a_time():
    parts = Meter(source=Seeded(1)).deal(30_000, 3)
    assert parts.min() == 0
    assert parts.max() == 2
    assert np.abs(np.bincount(parts) - 10_000).max() < 500  # six standard deviations
    assert (Meter(source=Seeded(1)).deal(30_000, 3) == parts).all()
    assert (Meter().deal(100, 3) != Meter().deal(100, 3)).any()
