"""General tables: distances, the floor, what is learned, and a made-up peer in place of dpmm."""

import sys

import numpy as np
import pytest

from sfumato.bench import grids_general, synthesis_peers
from sfumato.bench.aside_tables import aside_table
from sfumato.bench.grids_general import REAL, Coded, compared, distance, general_tables, learned, publisher
from sfumato.bench.peer_environments import Library
from sfumato.errors import InputError

FAKE = '''
import numpy as np

class FactoredInference:
    def __init__(self, domain, iters):
        self.iters = iters

class Copies:
    """Draws the rows it was given in another order; insists on what it is promised."""

    def __init__(self, *, epsilon, delta, domain, random_state, n_jobs, n_iters, max_model_size=None):
        assert (epsilon, delta, n_jobs) == (1.0, 1e-6, 1) and domain["c0"] == 3
        self.random, self.generator, self.n_iters = random_state, self, n_iters

    def _fit(self):
        assert self.n_iters == 500

    def fit(self, frame):
        self._fit()
        assert self.n_iters == 700  # the last fit takes longer
        assert frame.dtypes.unique().tolist() == [np.dtype("int64")]
        assert FactoredInference("domain", iters=10**6).iters == 500
        self.frame = frame

    def generate(self, n_records):
        assert n_records == len(self.frame)
        return self.frame.sample(frac=1, random_state=self.random)

class MSTGM(Copies):
    pass
'''
BROKEN = "class AIMGM:\n    def __init__(self, **given):\n        raise RuntimeError('out of order')\n"


@pytest.fixture
def library(tmp_path, monkeypatch):
    home = tmp_path / "dpmm" / "models"
    home.mkdir(parents=True)
    (home / "__init__.py").touch()
    (home / "mst.py").write_text(FAKE, encoding="utf-8")
    (home / "aim.py").write_text(BROKEN, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return Library("made-up", "dpmm.models", ("made-up",))


def test_distance_is_total_variation_over_the_columns_asked():
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 3, (500, 3)), rng.integers(0, 3, (300, 3))
    assert distance(one, one, [3, 3, 3], (0, 2)) == 0
    assert distance(np.zeros((4, 3), int), np.full((9, 3), 2), [3, 3, 3], (1,)) == 1
    by_hand = sum(abs((one[:, 1] == v).mean() - (other[:, 1] == v).mean()) for v in range(3)) / 2
    assert distance(one, other, [3, 3, 3], (1,)) == pytest.approx(by_hand)
    assert distance(one, other, [3, 3, 3], (0, 1)) >= distance(one, other, [3, 3, 3], (0,))


def test_everybody_is_asked_the_same_questions():
    coded = Coded("wide", aside_table("wide", 50))
    assert coded.questions(3) == coded.questions(3)
    assert len(set(coded.questions(3))) == grids_general.TRIPLES
    assert len(coded.questions(1)) == 61
    assert coded.names[-1] == "class"


def test_a_table_of_the_real_rows_is_near_and_teaches_and_a_shuffled_one_does_not():
    coded = Coded("five", aside_table("five classes", 4_000))
    truth, held = coded.codes[:3_000], coded.codes[3_000:]
    apart = np.column_stack([np.random.default_rng(j).permutation(column) for j, column in enumerate(truth.T)])
    same, mixed = compared(coded, truth, truth, held), compared(coded, truth, apart, held)
    assert same["3-way"] == same["1-way"] == mixed["1-way"] == 0
    assert mixed["3-way"] > 0.1
    assert same["LR error"] < 0.2 < mixed["LR error"] - 0.2
    assert same["LR auc"] > 0.9
    assert abs(mixed["LR auc"] - 0.5) < 0.1


def test_a_table_of_one_class_predicts_it():
    rows = np.array([[0, 1], [1, 1]])
    assert learned(rows, np.array([[0, 0], [1, 1], [1, 1]]), [2, 2]) == {
        "error": pytest.approx(1 / 3),
        "auc": 0.5,
        "balanced": 0.5,
    }


def test_a_peer_gets_codes_and_a_capped_fit_in_its_own_interpreter(library):
    codes = np.random.default_rng(1).integers(0, 3, (60, 2))
    drawn, seconds = synthesis_peers.Synthesizer(library, "MST", {"n_iters": 500}, 700).draw(codes, [3, 3], 1.0, seed=1)
    assert sorted(map(tuple, drawn)) == sorted(map(tuple, codes))
    assert seconds > 0
    with pytest.raises(InputError, match="AIM could not be run: RuntimeError: out of order"):
        synthesis_peers.Synthesizer(library, "AIM", {"n_iters": 500}).draw(codes, [3, 3], 1.0, seed=1)


def test_the_runner_needs_nothing_of_this_package():
    with open(synthesis_peers.peer_synthesis.__file__, encoding="utf-8") as file:
        assert "sfumato" not in file.read()
    assert "dpmm" not in sys.modules


def test_the_bench_puts_mechanisms_beside_real_rows(monkeypatch):
    monkeypatch.setattr(grids_general, "OURS", ("privpfc", "no such mechanism"))
    monkeypatch.setattr(grids_general, "_tables", lambda quick, data: iter([aside_table("small", 600)]))
    (by_epsilon,) = general_tables(quick=True, data=None, peers=False, draws=1, progress=lambda _: None).values()
    assert list(by_epsilon["1"]) == [REAL, "privpfc"]
    assert by_epsilon["1"]["privpfc"]["3-way"] > by_epsilon["1"]["privpfc"]["1-way"]
    assert publisher("privpfc").mechanism == "privpfc"
    assert publisher("no such mechanism") is None
