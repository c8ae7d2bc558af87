"""A limit is spent once: a Meter cannot be copied, stored or carried over a fork, and neither can a stream it paid for."""

import copy
import multiprocessing
import pickle

import numpy as np
import pytest

from sfumato.errors import PrivacyError
from sfumato.people.mechanisms.sampling import keep_thresholds
from sfumato.privacy import Charge, Meter
from sfumato.privacy.items import laplace_shares
from sfumato.privacy.losses import amplified


@pytest.mark.parametrize("take", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"])
def test_a_copy_is_refused(take):
    with pytest.raises(PrivacyError, match="spend one limit twice"):
        take(Meter(limit=Charge.of(1)))


def in_a_fork(work):
    """The name of the error that `work` raises in a forked process."""
    context = multiprocessing.get_context("fork")
    told = context.SimpleQueue()

    def child():
        try:
            work()
            told.put("nothing")
        except Exception as error:
            told.put(type(error).__name__)

    process = context.Process(target=child)
    process.start()
    process.join(60)
    return told.get()


def test_a_fork_spends_nothing_of_its_parents_limit():
    meter = Meter(limit=Charge.of(1))
    assert in_a_fork(lambda: meter.laplace([5], rate=10**9)) == "PrivacyError"
    assert in_a_fork(lambda: Meter(limit=Charge.of(1)).laplace([5], rate=10**9)) == "nothing"
    meter.laplace([5], rate=10**9)
    assert meter.spent().total == 10**9


def test_a_paid_stream_cannot_be_drawn_from_in_a_fork():
    meter = Meter(neighbours="item")
    draw = laplace_shares(meter, rate=np.array([10**8]), touches=np.array([[1]]), why="each item is in one sum")
    assert in_a_fork(lambda: draw(np.array([5]), 1)) == "PrivacyError"
    assert draw(np.array([5]), 1).shape == (1,)


def test_who_is_never_kept_loses_nothing_and_the_search_ends():
    assert amplified(np.array([10**12]), np.array([0.0])).tolist() == [0]
    levels = np.array([10**8, 10**12])  # ε .1 and 1,000: no probability of a 63-bit lottery is small enough for the first
    kept = keep_thresholds(levels, 10**12)
    assert kept[1] == 1 << 63
    assert (amplified(np.full(2, 10**12), kept / 2.0**63) <= levels).all()
