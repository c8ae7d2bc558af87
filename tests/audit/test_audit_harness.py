"""The audit catches what is flawed, lets pass what is not, and its bound means what it says."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from sfumato import audit as package
from sfumato.audit import AuditCase, audit, case, names, register, run
from sfumato.audit.events import Event
from sfumato.audit.harness import log_ratio_bound
from sfumato.errors import InputError
from sfumato.privacy import NANO, Seeded, noise


@pytest.mark.parametrize("name", ["control-small-noise", "control-floating-point", "control-exact-heads"])
def test_controls_are_caught(name):
    result = audit(name, trials=40_000)
    assert result.caught, result.summary
    assert result.passed
    assert "caught" in result.summary


def test_floating_point_noise_is_caught_by_its_support_alone():
    result = audit("control-floating-point", trials=20_000, source=Seeded(0))
    assert "multiple of 2^-" in result.event
    assert result.lower > 4  # an output that only one neighbour can give: the bound grows with the trials
    assert audit("control-floating-point", trials=200_000, source=Seeded(0)).lower > result.lower + 1


# Families test their own.
OURS = [n for n in names() if isinstance(case(n), AuditCase) and case(n).draw.__module__ == "sfumato.audit.cases"]


@pytest.mark.parametrize("name", OURS)
def test_our_mechanisms_keep_their_claim(name):
    trials = min(case(name).most, 20_000 if name != "choice" else 6_000)
    result = audit(name, trials=trials)  # fails by chance once in a thousand at the very worst: the claim must be tight
    if result.caught:  # a real excess stays; chance does not come twice
        result = audit(name, trials=trials, confidence=0.9999)
    assert result.passed, result.summary


@pytest.mark.parametrize(
    "name", ["laplace-histogram", "weighted-count-open", "weighted-count-strict", "sampled-count", "choice"]
)
def test_the_primitives_are_tight(name):
    """A claim far above what can be found would make the audit worthless: these pairs lose nearly what they claim."""
    result = audit(name, trials=20_000 if name != "choice" else 6_000, source=Seeded(1))
    assert result.lower > 0.5 * float(result.claimed), result.summary


def laplace_case(epsilon: float, claimed: float) -> AuditCase:
    rate = round(epsilon * NANO)
    return AuditCase(
        "test", round(claimed * NANO), lambda w, n, s: 1 - w + noise.laplace(np.full(n, rate), source=s), "one person"
    )


@pytest.mark.parametrize(("true", "caught"), [(1.0, False), (1 / 0.7, True)])
def test_the_same_test_accepts_right_noise_and_rejects_noise_30_percent_too_small(true, caught):
    assert audit(laplace_case(true, 1.0), trials=60_000).caught is caught


def test_confidence_is_honest():
    """With a tight pair and confidence 0.9 a right mechanism is refuted in at most a tenth of many audits."""
    refuted = sum(audit(laplace_case(1.0, 1.0), trials=2_000, confidence=0.9, source=Seeded(i)).caught for i in range(150))
    assert refuted <= stats.binom.ppf(1 - 1e-6, 150, 0.1)


def test_bound_against_a_direct_search():
    n, hits, others, error = 2000, 700, 260, 0.01
    grid = np.linspace(0.1, 0.5, 40_001)
    low = grid[stats.binom.sf(hits - 1, n, grid) > error / 2].min()  # the smallest p that does not make so many a surprise
    high = grid[stats.binom.cdf(others, n, grid) > error / 2].max()
    assert log_ratio_bound(hits, others, n, error) == pytest.approx(math.log(low / high), abs=1e-3)
    assert log_ratio_bound(n, n, n, error) < 0
    assert log_ratio_bound(n, 0, n, error) == pytest.approx(math.log(n / 5.3), abs=0.01)


def test_an_event_of_the_case_is_tried_too():
    """A flaw that no tail shows: the parity of the output."""

    def draw(which, n, source):
        return 2 * (source.words(n) >> np.uint64(40)).astype(np.int64) + which

    odd = Event("output is odd", lambda x: x % 2 == 1)
    assert not audit(AuditCase("blind", NANO, draw, "", ()), trials=2_000, source=Seeded(0)).caught
    assert audit(AuditCase("seeing", NANO, draw, "", (odd,)), trials=2_000, source=Seeded(0)).event == "output is odd"


def test_results_as_data_and_in_words():
    result = audit("control-small-noise", trials=20_000, source=Seeded(0))
    data = json.loads(json.dumps(result.to_dict()))
    assert data["claimed"] == "1"
    assert data["caught"] is True
    assert data["trials"] == 20_000
    assert data["lower_bound"] > 1
    weak = audit(AuditCase("weak", 10 * NANO, case("control-small-noise").draw, "", control=True), trials=2_000)
    assert not weak.passed
    assert "NOT CAUGHT" in weak.summary
    bad = audit(laplace_case(2.0, 0.5), trials=5_000)
    assert not bad.passed
    assert "REFUTED" in bad.summary


def test_names_are_found_and_unique():
    assert {"choice", "laplace-histogram", "weighted-count-open"} < set(names())
    with pytest.raises(InputError, match="did you mean 'choice'"):
        case("choise")
    with pytest.raises(InputError, match="two audit cases"):
        register(AuditCase("choice", 1, case("choice").draw, ""))
    assert register(case("choice")) is case("choice")
    assert "controls" not in vars(package) or names()[-1].startswith("control-")


def test_run_reports_as_it_goes():
    heard = []
    results = run(["laplace-histogram", "control-small-noise"], trials=5_000, source=Seeded(0), progress=heard.append)
    assert [r.name for r in results] == ["laplace-histogram", "control-small-noise"]
    assert heard == [r.summary for r in results]


@pytest.mark.parametrize("arguments", [{"trials": 10}, {"confidence": 1.0}, {"confidence": 0.1}])
def test_audits_that_would_say_nothing_are_refused(arguments):
    with pytest.raises(InputError):
        audit("laplace-histogram", **arguments)
    with pytest.raises(InputError, match="must draw"):
        audit(AuditCase("odd", 1, lambda w, n, s: np.zeros((n, 2)), ""), trials=1000)
