"""A Meter that shows what a mechanism asks for, and replays the same answers to a neighbour.

Fitting on a table and on its neighbour with *equal answers* gives, call by call, the exact privacy loss of that output: the
distance of the two vectors times the noise rate, or the spread of the score changes times the rate of the choice.
"""

import numpy as np
import pytest

from sfumato.privacy import Meter


class Probe(Meter):
    answers = None  # list of answers to replay; None while they are being made
    log = None

    @classmethod
    def fresh(cls, answers=None):
        return type("Probe", (cls,), {"answers": answers, "log": []})

    def _answer(self, made):
        if self.answers is None:
            self.log.append(("answer", made))
            return made
        kind, kept = self.answers.pop(0)
        assert kind == "answer"
        return kept

    def laplace(self, values, *, rate, **rest):
        seen = []

        def look():
            exact = np.array(values() if callable(values) else values, dtype=np.int64)
            seen.append(exact)
            return exact

        noisy = super().laplace(look, rate=rate, **rest)
        self.log.append(("laplace", seen[0], np.broadcast_to(np.asarray(rate), seen[0].shape), self._steps[-1].loss))
        return self._answer(noisy)

    def choose(self, scores, *, rate, **rest):
        seen = []

        def look():
            seen.append(np.array(scores() if callable(scores) else scores, dtype=np.float64))
            return seen[0]

        index = super().choose(look, rate=rate, **rest)
        self.log.append(("choose", seen[0], rate, self._steps[-1].loss))
        return self._answer(index)


def losses_of(make, tables, monkeypatch):
    """(loss, charged) of every call for two neighbouring tables, and the total charge."""
    first, second = tables
    one = Probe.fresh()
    monkeypatch.setattr("sfumato.classifiers.base.Meter", one)
    guarantee = make().fit(*first).guarantee_
    answers = [entry for entry in one.log if entry[0] == "answer"]
    two = Probe.fresh(list(answers))
    monkeypatch.setattr("sfumato.classifiers.base.Meter", two)
    make().fit(*second)
    assert two.answers == [], "the neighbour was asked fewer questions: its path does not follow from the answers"
    calls = [e for e in one.log if e[0] != "answer"]
    others = [e for e in two.log if e[0] != "answer"]
    found = []
    for (kind, here, rate, charged), (same, there, rate_there, charged_there) in zip(calls, others, strict=True):
        assert kind == same
        assert charged == charged_there
        assert np.all(rate == rate_there)
        change = here - there
        loss = float((np.abs(change) * rate).sum()) if kind == "laplace" else float((change.max() - change.min()) * rate)
        found.append((loss, charged))
    return found, guarantee.nano


@pytest.fixture
def exact_losses(monkeypatch):
    return lambda make, tables: losses_of(make, tables, monkeypatch)
