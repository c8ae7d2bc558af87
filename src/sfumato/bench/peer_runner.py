"""Fits of another library, run by an interpreter that has it: ``python peer_runner.py JOB.npz JOB.json OUT.json``.

This file stands alone: it needs numpy and the peer, nothing of this package, because the peer may live in an environment of
its own. The job holds coded features, splits and settings, all of them public or for the peer's eyes; the answer holds what
was predicted, the scores and the seconds per split. A setting that fails is reported with its error and the others go on.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np


def features(kind: str, codes: Any, sizes: Any, design: Any) -> tuple[Any, Any, Any]:
    """Rows with public lower and upper bounds per feature.

    "codes": the place of each value in its domain. "one-hot": an indicator per value, divided by the root of the number of
    columns, so that a row has norm one. "design": what the bench gives its own linear models.

    >>> rows, low, high = features("one-hot", np.array([[1]]), np.array([2]), None)
    >>> rows.tolist(), low.tolist(), high.tolist()
    ([[0.0, 1.0]], [0.0, 0.0], [1.0, 1.0])
    """
    if kind == "codes":
        return codes.astype(np.float64), np.zeros(len(sizes)), np.maximum(sizes - 1.0, 1.0)
    if kind == "one-hot":
        top = 1 / np.sqrt(len(sizes))
        rows = np.hstack([(codes[:, [j]] == np.arange(size)) * top for j, size in enumerate(sizes)])
        return rows, np.zeros(rows.shape[1]), np.full(rows.shape[1], top)
    if kind == "design":
        top = 1 / np.sqrt(len(sizes) + 1)
        return design, np.full(design.shape[1], -top), np.full(design.shape[1], top)
    raise ValueError(f"unknown features {kind!r}")


def arguments(setting: dict[str, Any], low: Any, high: Any, ordered: Any, classes: int) -> dict[str, Any]:
    """What the setting's estimator is given: its parameters, and the public facts that it asks for by name."""
    known = {
        "bounds": (low, high),
        "classes": np.arange(classes),
        "data_norm": float(setting.get("norm", 1.0)),
        "feature_types": ["continuous" if is_number else "nominal" for is_number in ordered],
        "privacy_bounds": {j: (float(low[j]), float(high[j])) for j, is_number in enumerate(ordered) if is_number},
    }
    return dict(setting["parameters"]) | {name: known[name] for name in setting["public"]}


def scores_of(model: Any, rows: Any, classes: int) -> Any:
    """Scores per row and class, as far as the model gives any; 0 and 1 for what it predicts otherwise."""
    scores = np.zeros((len(rows), classes))
    if hasattr(model, "predict_proba"):
        scores[:, np.asarray(model.classes_, dtype=np.int64)] = model.predict_proba(rows)
    else:
        scores[np.arange(len(rows)), np.asarray(model.predict(rows), dtype=np.int64)] = 1.0
    return scores


def measure(job: dict[str, Any], data: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """One answer per setting, with the seconds of a fit split by split; and by setting and split predictions and scores."""
    answers: list[dict[str, Any]] = []
    arrays: dict[str, Any] = {}
    for place, setting in enumerate(job["settings"]):
        rows, low, high = features(setting["features"], data["codes"], data["sizes"], data["design"])
        rows, low, high = (part * float(setting.get("norm", 1.0)) for part in (rows, low, high))
        # Unless a setting wants categories as such, every column is a number to the peer: the place in its public domain.
        ordered = data["ordered"] if setting.get("nominal") else np.ones(len(low), dtype=bool)
        seconds: list[float] = []
        try:
            kind = getattr(import_module(job["module"]), setting["estimator"])
            given = arguments(setting, low, high, ordered, int(job["classes"]))
            for number in range(int(job["splits"])):
                train, test = data[f"train_{number}"], data[f"test_{number}"]
                model = kind(epsilon=job["epsilon"], random_state=7000 + number, **given)
                start = time.perf_counter()
                model.fit(rows[train], data["classes"][train])
                seconds.append(time.perf_counter() - start)
                arrays[f"predicted_{place}_{number}"] = np.asarray(model.predict(rows[test]), dtype=np.int64)
                arrays[f"scores_{place}_{number}"] = scores_of(model, rows[test], int(job["classes"]))
            answers.append({"name": setting["name"], "seconds": seconds})
        except Exception as failed:  # a peer may fail in any way; the table says so and goes on
            answers.append({"name": setting["name"], "error": f"{type(failed).__name__}: {failed}"})
    return answers, arrays


def main(data: str, job: str, out: str) -> None:
    """Read the job, run it, write the answers, and beside them (with .npz added to the name) what was predicted."""
    warnings.simplefilter("ignore")
    described = json.loads(Path(job).read_text(encoding="utf-8"))
    with np.load(data) as stored:
        answers, arrays = measure(described, {name: stored[name] for name in stored.files})
    Path(out).write_text(json.dumps(answers), encoding="utf-8")
    np.savez(f"{out}.npz", **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
