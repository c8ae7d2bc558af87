"""Peers of the classification bench, with a made-up library: neither a network nor any other package is needed."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sfumato.bench import classify_peers, classify_versus, peer_environments
from sfumato.bench.classify_data import census
from sfumato.bench.classify_methods import METHODS, misclassification, splits
from sfumato.bench.classify_peers import PEERS, Peer, available, best_setting
from sfumato.bench.peer_environments import Library, imports, interpreter, peers_folder
from sfumato.errors import InputError

FAKE = '''
import numpy as np

class Stump:
    """Predicts by one column; insists on what the settings promise."""

    def __init__(self, *, epsilon, random_state, column, bounds=None, classes=None, data_norm=None):
        assert epsilon == 0.5 and random_state >= 7000
        self.column, self.bounds, self.classes, self.data_norm = column, bounds, classes, data_norm

    def fit(self, X, y):
        if self.bounds is not None:
            low, high = self.bounds
            assert (X >= low).all() and (X <= high).all() and list(self.classes) == [0, 1]
        if self.data_norm is not None:
            assert np.linalg.norm(X, axis=1).max() <= self.data_norm
        self.cut = X[:, self.column].mean()
        self.top = round(y[X[:, self.column] > self.cut].mean())

    def predict(self, X):
        return np.where(X[:, self.column] > self.cut, self.top, 1 - self.top)

class Broken:
    def __init__(self, **given):
        raise RuntimeError("out of order")
'''


@pytest.fixture
def library(tmp_path, monkeypatch):
    (tmp_path / "made_up_peer.py").write_text(FAKE, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return Library("made-up", "made_up_peer", ("made-up",))


def _setting(estimator, features, public, **rest):
    return classify_peers._setting(estimator, features, public, **rest)


def test_a_peer_sees_the_same_splits_and_is_reported_at_its_best(library):
    table = census(1500)
    useful = _setting("Stump", "codes", ("bounds", "classes"), column=4)  # married
    useless = _setting("Stump", "codes", ("bounds", "classes"), column=9)
    found = Peer(library, (useless, _setting("Broken", "codes", ()), useful)).misclassification(table, 0.5, repeats=2)
    assert found["setting"] == useful["name"] == "codes, column 4"
    married = (table.frame["married"] == "yes").to_numpy()
    rich = table.labels == "band 1"
    expected = []
    for train, test in splits(table, 2):
        top = round(rich[train][married[train]].mean())
        expected.append(np.mean(np.where(married[test], top, 1 - top) != rich[test]))
    assert found["mean"] == pytest.approx(np.mean(expected))
    assert found["sd"] == pytest.approx(np.std(expected))
    assert misclassification(Peer(library, (useful,)), table, 0.5, repeats=2)["mean"] == found["mean"]


@pytest.mark.parametrize("features", ["one-hot", "design"])
def test_rows_keep_the_norm_that_a_setting_states(library, features):
    for norm in (1.0, 3.0):
        setting = _setting("Stump", features, ("data_norm", "bounds", "classes"), norm=norm, column=2)
        assert Peer(library, (setting,)).misclassification(census(300), 0.5, repeats=1)["mean"] < 1


def test_a_peer_that_always_fails_is_an_error(library):
    with pytest.raises(InputError, match="RuntimeError: out of order"):
        Peer(library, (_setting("Broken", "codes", ()),)).misclassification(census(300), 0.5, repeats=1)
    with pytest.raises(InputError, match="made-up could not be run"):
        Peer(library, (_setting("Stump", "codes", ()), {})).misclassification(census(300), 0.5, repeats=1)


def test_no_row_both_chooses_a_setting_and_measures_it():
    rows, classes = np.arange(8), np.zeros(8, dtype=int)
    even = (rows % 2).astype(int)  # wrong on the odd rows only
    said = {"predicted_0_0": even, "predicted_1_0": 1 - even, "predicted_2_0": (rows >= 6).astype(int)}
    said |= {f"scores_{place}_0": np.eye(2)[said[f"predicted_{place}_0"]] for place in range(3)}
    answers = [{"name": name, "seconds": [1.0]} for name in ("a", "b", "c")]
    lucky = best_setting(answers[:2], said, [(rows, classes)])
    assert lucky["setting"] == "a / b"
    assert lucky["mean"] == 1.0  # each is right on the half that chose it, and wrong on the other
    assert (
        best_setting([answers[2]], {k.replace("_2_", "_0_"): v for k, v in said.items()}, [(rows, classes)])["mean"] == 0.25
    )


def test_the_runner_needs_nothing_of_this_package():
    text = Path(classify_peers.peer_runner.__file__).read_text(encoding="utf-8")
    assert "import sfumato" not in text
    assert "from sfumato" not in text


def _pretend(monkeypatch, failing):
    """Answers of the commands that would make an environment; returns the list of what was asked."""
    asked = []

    def run(command, **_):
        words = [str(word) for word in command]
        asked.append(words)
        if words[1:3] == ["-m", "venv"]:
            python = Path(words[-1]) / ("Scripts" if sys.platform == "win32" else "bin") / "python"
            python.parent.mkdir(parents=True)
            python.touch()
        installed = any(words[1:3] == ["-m", "pip"] for words in asked)
        failed = failing in words or (words[1] == "-c" and not installed)
        return subprocess.CompletedProcess(command, int(failed), "", "noise\nERROR: no such package\n" if failed else "")

    monkeypatch.setattr(peer_environments.subprocess, "run", run)
    return asked


def test_an_environment_is_made_once(tmp_path, monkeypatch):
    asked = _pretend(monkeypatch, failing="nothing")
    monkeypatch.setenv(peer_environments.FOLDER, str(tmp_path))
    wanted = Library("far", "far_away", ("far==1", "near<2"))
    python = interpreter(wanted)
    assert python.is_relative_to(tmp_path / "far")
    assert [words[1:3] for words in asked if "-m" in words] == [["-m", "venv"], ["-m", "pip"]]
    assert asked[2][-2:] == ["far==1", "near<2"] or asked[3][-2:] == ["far==1", "near<2"]


def test_an_environment_that_cannot_be_made_says_what_to_do(tmp_path, monkeypatch):
    _pretend(monkeypatch, failing="far==1")
    with pytest.raises(InputError, match=r"ERROR: no such package; install far==1 there yourself"):
        interpreter(Library("far", "far_away", ("far==1",)), folder=tmp_path)
    _pretend(monkeypatch, failing="far==1")
    monkeypatch.setattr(classify_peers, "PEERS", {"far": Peer(Library("far", "far_away", ("far==1",)), ())})
    monkeypatch.setenv(peer_environments.FOLDER, str(tmp_path / "elsewhere"))
    with pytest.warns(UserWarning, match="no environment for far"):
        assert not available("far")


def test_what_imports_here_runs_here(library, monkeypatch, tmp_path):
    assert interpreter(library, folder=tmp_path) == Path(sys.executable)
    assert not (tmp_path / "made-up").exists()
    assert not imports(tmp_path / "no-python", "json")
    monkeypatch.delenv(peer_environments.FOLDER, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert peers_folder() == tmp_path / "sfumato" / "peers"


def test_every_setting_of_every_peer_is_well_formed():
    for name, peer in PEERS.items():
        assert name not in METHODS
        names = [s["name"] for s in peer.settings]
        assert len(set(names)) == len(names) > 1
        assert all(s["features"] in ("codes", "one-hot", "design") for s in peer.settings)
        # Bounds and classes come from the schema: a peer that could read them off the data is told them.
        needed = {"LogisticRegression": "data_norm", "DPExplainableBoostingClassifier": "privacy_bounds"}
        assert all(needed.get(s["estimator"], "bounds") in s["public"] for s in peer.settings)


def test_estimators_are_compared_name_by_name(library, monkeypatch, capsys):
    peer = Peer(library, tuple(_setting("Stump", "codes", ("bounds", "classes"), column=c) for c in (4, 9)))
    monkeypatch.setattr(classify_versus, "PEERS", {"their stump": peer, "missing": None})
    monkeypatch.setattr(classify_versus, "available", lambda name: name != "missing")
    monkeypatch.setattr(classify_versus, "EPSILONS", (0.5,))
    monkeypatch.setattr(classify_versus, "census", lambda rows: census(1000))
    pairs = {"Majority": "their stump", "PrivateNaiveBayes": "missing"}
    found = classify_versus.run(pairs=pairs)
    assert list(found["figures"]["census"]) == ["Majority", "their stump"]
    (claim,) = found["claims"]
    ours, theirs = (found["figures"]["census"][name]["0.5"]["mean"] for name in ("Majority", "their stump"))
    assert claim["holds"] == (round(ours, 4) <= round(theirs, 4))
    assert claim["figure"] == round(ours, 4)
    assert f"{theirs:.3f}"[1:] in classify_versus.markdown(found["figures"], pairs)
    monkeypatch.setattr(classify_versus, "run", lambda **_: found)
    classify_versus.main(["--json"])
    assert '"holds"' in capsys.readouterr().out
