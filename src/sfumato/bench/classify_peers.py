"""Other libraries in the same table: diffprivlib's models and interpret's DP-EBM, each in its own environment if need be.

A peer sees the same rows and splits, coded by the same public schema, with bounds from that schema and never from the data.
It is measured at each of a few settings and reported at the one with the best mean over the splits, chosen on one half of
the held-out rows and measured on the other: more than a private user could choose, but no row does both. DP-EBM is only
(ε, δ)-private (δ = 1e-9).
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.bench import peer_runner
from sfumato.bench.classify_data import Table
from sfumato.bench.classify_methods import splits, told
from sfumato.bench.metrics import chosen_across, measured_by_halves
from sfumato.bench.peer_environments import Library, interpreter
from sfumato.classifiers.linear.features import design
from sfumato.errors import InputError
from sfumato.records.coding import Coding

DIFFPRIVLIB = Library("diffprivlib", "diffprivlib.models", ("diffprivlib==0.6.6", "scikit-learn<1.6"))
INTERPRET = Library("interpret", "interpret.privacy", ("interpret-core==0.7.8",))
DELTA = 1e-9


def _setting(
    estimator: str, features: str, public: Iterable[str], *, norm: float = 1.0, nominal: bool = False, **rest: Any
) -> Any:
    words = [features, *(["categories"] if nominal else []), *([f"norm {norm:g}"] if norm != 1 else [])]
    words += [f"{name} {value:g}" for name, value in rest.items()]
    shape = {"estimator": estimator, "features": features, "public": list(public), "norm": norm, "nominal": nominal}
    return shape | {"name": ", ".join(words), "parameters": rest}


def _boosting(*, nominal: bool = False, **rest: Any) -> Any:
    public = ("feature_types", "privacy_bounds")
    kind = "DPExplainableBoostingClassifier"
    return _setting(kind, "codes", public, nominal=nominal, delta=DELTA, n_jobs=1, **rest)


SETTINGS: dict[str, tuple[Library, list[Any]]] = {
    "diffprivlib LR": (
        DIFFPRIVLIB,
        [
            _setting("LogisticRegression", features, ("data_norm",), norm=2.0, C=c)
            for features, penalties in (("design", (0.001, 0.003, 0.01, 0.03, 0.1)), ("one-hot", (0.001, 0.003, 0.01)))
            for c in penalties
        ],
    ),
    "diffprivlib NB": (DIFFPRIVLIB, [_setting("GaussianNB", f, ("bounds",)) for f in ("codes", "design", "one-hot")]),
    "diffprivlib tree": (
        DIFFPRIVLIB,
        [
            _setting("DecisionTreeClassifier", features, ("bounds", "classes"), max_depth=depth)
            for features, depth in (("codes", 5), ("codes", 8), ("codes", 11), ("codes", 13), ("design", 8))
        ],
    ),
    "diffprivlib forest": (
        DIFFPRIVLIB,
        [
            _setting("RandomForestClassifier", features, ("bounds", "classes"), n_estimators=trees, max_depth=depth)
            for features, trees, depth in (
                ("codes", 10, 5),  # as it comes
                ("codes", 10, 8),
                ("codes", 10, 11),
                ("codes", 3, 12),
                ("design", 10, 8),
            )
        ],
    ),
    "DP-EBM": (
        INTERPRET,
        [
            _boosting(),  # as it comes
            _boosting(nominal=True),
            _boosting(max_rounds=10, learning_rate=1.0),
            _boosting(max_rounds=20, learning_rate=0.5),
            _boosting(max_rounds=20, learning_rate=0.5, max_bins=16),
            _boosting(max_rounds=20, learning_rate=0.5, max_leaves=6),
            _boosting(max_rounds=20, learning_rate=0.5, max_leaves=6, max_bins=16),
            _boosting(max_rounds=100, learning_rate=0.1),
            _boosting(max_rounds=100, learning_rate=0.2),
            _boosting(max_rounds=100, learning_rate=0.2, max_bins=16),
        ],
    ),
}


@dataclass(frozen=True)
class Peer:
    """One estimator of another library with the settings among which it is reported at its best."""

    library: Library
    settings: tuple[Any, ...]

    def misclassification(self, table: Table, epsilon: float, *, repeats: int, folder: Path | None = None) -> dict[str, Any]:
        """Figures of the setting that does best on the other half of the held-out rows, and its name."""
        python = interpreter(self.library, folder=folder)
        job = {"module": self.library.module, "epsilon": epsilon, "splits": repeats, "settings": list(self.settings)}
        with tempfile.TemporaryDirectory() as temporary:
            here = Path(temporary)
            job["classes"], truth = _write_data(table, repeats, here / "data.npz")
            (here / "job.json").write_text(json.dumps(job), encoding="utf-8")
            command = [python, Path(peer_runner.__file__), *(here / name for name in ("data.npz", "job.json", "out.json"))]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise InputError(f"{self.library.name} could not be run: {done.stderr.strip()[-300:]}")
            answers = json.loads((here / "out.json").read_text(encoding="utf-8"))
            with np.load(here / "out.json.npz") as stored:
                return best_setting(answers, {name: stored[name] for name in stored.files}, truth)


def best_setting(answers: list[dict[str, Any]], arrays: Mapping[str, Any], truth: list[tuple[Any, Any]]) -> dict[str, Any]:
    """The best setting by `chosen_across`; settings that failed are left out unless all did.

    `truth` has for every split the numbers of the held-out rows and their classes.

    >>> said = {"predicted_0_0": np.array([0, 1]), "scores_0_0": np.eye(2)}
    >>> answers = [{"name": "a", "seconds": [1.0]}, {"name": "b", "error": "no"}]
    >>> found = best_setting(answers, said, [(np.array([4, 7]), np.array([0, 0]))])
    >>> found["mean"], found["setting"]
    (0.5, 'a')
    """
    worked = {place: answer for place, answer in enumerate(answers) if "seconds" in answer}
    if not worked:
        raise InputError(f"the peer failed at every setting, first with {answers[0]['error']}")
    candidates = {}
    for place, answer in worked.items():
        candidates[answer["name"]] = [
            measured_by_halves(rows, classes, arrays[f"predicted_{place}_{number}"], arrays[f"scores_{place}_{number}"])
            for number, (rows, classes) in enumerate(truth)
        ]
    draws, name = chosen_across(candidates)
    seconds = [s for answer in worked.values() if answer["name"] in name.split(" / ") for s in answer["seconds"]]
    return told(draws, seconds) | {"setting": name}


def _write_data(table: Table, repeats: int, path: Path) -> tuple[int, list[tuple[Any, Any]]]:
    """Coded rows and splits for the runner; returns the number of classes, and rows and classes held out in every split."""
    coding = Coding.of(table.schema, target=table.target)
    codes = np.maximum(coding.leaves(table.features), 0)
    parts: dict[str, Any] = {
        "codes": codes,
        "sizes": np.array([t.leaves for t in coding.taxonomies]),
        "ordered": np.array([t.edges is not None for t in coding.taxonomies]),
        "design": design(codes, coding.taxonomies)[:, :-1],
        "classes": coding.class_codes(table.labels),
    }
    truth = []
    for number, (train, test) in enumerate(splits(table, repeats)):
        parts |= {f"train_{number}": train, f"test_{number}": test}
        truth.append((test, parts["classes"][test]))
    np.savez(path, **parts)
    return len(coding.classes), truth


PEERS: dict[str, Any] = {name: Peer(library, tuple(settings)) for name, (library, settings) in SETTINGS.items()}


def available(name: str) -> bool:
    """Whether the peer can be run, after making its environment if there is none; says why not in a warning."""
    try:
        interpreter(PEERS[name].library)
    except InputError as why:
        warnings.warn(str(why), stacklevel=2)
        return False
    return True
