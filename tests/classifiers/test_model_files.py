"""A model file says numbers and nothing else: what is wrong with one gives a sentence, runs nothing, allocates little."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import pickle
import zipfile

import numpy as np
import pytest

import sfumato as sf
from sfumato import classifiers
from sfumato.classifiers.model_file import ARRAYS, HEADER, files_of, packed, read_model, unpacked
from sfumato.classifiers.portable import from_portable
from sfumato.classifiers.portable_states import ESTIMATORS
from sfumato.errors import InputError
from sfumato.privacy import Seeded

SCHEMA = sf.Schema(
    {
        "age": sf.Numeric(0, 80, bins=8),
        "job": sf.Categorical(["a", "b", "c", "d"], taxonomy={"white": ["a", "b"], "blue": ["c", "d"]}),
        "ill": sf.Categorical(["no", "yes"]),
    }
)
AGE = np.arange(400) % 80
X = np.column_stack([AGE, np.array(list("abcd"), dtype=object)[AGE % 4]]).astype(object)
Y = np.where(AGE < 40, "no", "yes")
SETTINGS = {
    "PrivateForest": {"trees": 2},
    "PrivateAdditive": {"rounds": 2},
    "HistogramClassifier": {"grids": 2, "rows": 400},
}


@pytest.fixture(scope="module")
def models():
    """A fitted model of every estimator."""
    made = {
        name: kind(epsilon=50, schema=SCHEMA, target="ill", source=Seeded(1), **SETTINGS.get(name, {}))
        for name, kind in ESTIMATORS.items()
    }
    return {name: model.fit(X, Y) for name, model in made.items()}


def test_every_estimator_can_be_written_down():
    assert set(ESTIMATORS) == set(classifiers.__all__) - {"PrivateSearch"}


def places(tree, path=()):
    """Every place in nested lists and mappings."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def changed(tree, path, value):
    tree = copy.deepcopy(tree)
    inner = tree
    for key in path[:-1]:
        inner = inner[key]
    if value is places:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return tree


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_spoilt_header_gives_a_sentence_or_a_model_that_predicts(name, models):
    """Every entry of the header removed, or of another type, or out of range: an InputError, or labels for all rows."""
    header, arrays = models[name].to_portable()
    header = json.loads(json.dumps(header))
    paths = [p for p in places(header) if p[0] != "guarantee"]
    if len(paths) > 60:  # the counts of a grid are many and alike
        few = np.random.default_rng(0).choice(len(paths), 15, replace=False)
        paths = [p for i, p in enumerate(paths) if i in few or ("first_grid" in p and len(p) == 6)]
    refused = 0
    for path in paths:
        for value in (places, [[]]) if path[0] == "settings" else (None, -1, "x", 10**30, {"a": 1}):
            spoilt = changed(header, path, value)
            try:
                model = from_portable(spoilt, dict(arrays), what="model")
            except InputError:
                refused += 1
            else:
                assert set(model.predict(X)) <= set(model.classes_.tolist())
    assert refused > 5


@pytest.mark.parametrize("name", ESTIMATORS)
def test_spoilt_arrays_give_a_sentence(name, models):
    header, arrays = models[name].to_portable()
    for key, array in arrays.items():
        flat = array.reshape(-1)
        for wrong in (flat[:0], np.zeros((2, 2, 2, 2, 2)), array[..., None], array.astype(bool)):
            if wrong.shape != array.shape or wrong.dtype != array.dtype:
                with pytest.raises(InputError, match="another shape"):
                    from_portable(header, {**arrays, key: wrong})
        with pytest.raises(InputError):
            from_portable(header, {k: v for k, v in arrays.items() if k != key} | {"strange": array})


def test_a_tree_that_is_none_gives_a_sentence(models):
    header, arrays = models["PrivateDecisionTree"].to_portable()
    nodes = arrays["nodes"]
    assert nodes[0, 0] == 1, "the tree is not split at all"
    for column, value in ((0, 0), (1, 99), (1, -1), (2, 50), (4, 999), (5, -3)):
        wrong = nodes.copy()
        wrong[0, column] = value
        with pytest.raises(InputError, match="not a model"):
            from_portable(header, {**arrays, "nodes": wrong})
    deep = 600  # a chain: each node has a leaf and the next node
    rows = np.array([[1, 0, -1, 0, 1, 8], [0] * 6] * deep + [[0] * 6], dtype=np.int64)
    with pytest.raises(InputError, match="deeper than any"):
        from_portable(header, {"nodes": rows, "counts": np.ones((len(rows), 2)), "scales": np.ones(len(rows))})


def archive(members, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as made:
        for name, data in members:
            made.writestr(name, data)
    return out.getvalue()


def npy(array, **more):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, **more)
    return out.getvalue()


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("code was run",))


def test_hostile_archives_give_a_sentence_and_run_nothing():
    good = np.arange(6.0).reshape(2, 3)
    listed = {"a": {"dtype": "<f8", "shape": [2, 3]}}
    np.testing.assert_array_equal(unpacked(packed({"a": good}), listed, "x")["a"], good)
    huge = bytearray(npy(good))
    huge = bytes(huge).replace(b"(2, 3)", b"(2000000000, 300000000)")[:128] + bytes(huge)[128:]
    hostile = {
        "pickle": archive([("a.npy", npy(np.array([Bomb()], dtype=object), allow_pickle=True))]),
        "bare pickle": pickle.dumps(Bomb()),
        "compressed": archive([("a.npy", npy(good))], zipfile.ZIP_DEFLATED),
        "another shape": archive([("a.npy", npy(good.T.copy()))]),
        "another type": archive([("a.npy", npy(good.astype(np.float32)))]),
        "columns first": archive([("a.npy", npy(np.asfortranarray(good)))]),
        "not finite": archive([("a.npy", npy(np.where(good > 2, np.nan, good)))]),
        "infinite": archive([("a.npy", npy(np.where(good > 2, np.inf, good)))]),
        "huge": archive([("a.npy", huge)]),
        "too short": archive([("a.npy", npy(good)[:-8])]),
        "too long": archive([("a.npy", npy(good) + b"\0" * 8)]),
        "one more": archive([("a.npy", npy(good)), ("b.npy", npy(good))]),
        "outside": archive([("../a.npy", npy(good))]),
        "none": archive([]),
        "text": b"hello",
        "nothing": b"",
    }
    for name, data in hostile.items():
        with pytest.raises(InputError, match="does not hold the arrays"):
            unpacked(data, listed, name)
    for stated in (
        {"dtype": "|O", "shape": [1]},
        {"dtype": "<f8", "shape": [-1, 3]},
        {"dtype": "<f8", "shape": "2,3"},
        None,
    ):
        with pytest.raises(InputError, match="does not hold the arrays"):
            unpacked(packed({"a": good}), {"a": stated}, "x")


def rewritten(folder, **changes):
    """A model whose header says something else; the digest is made right again."""
    header = json.loads((folder / HEADER).read_text())
    header.update(changes)
    (folder / HEADER).write_text(json.dumps(header))


@pytest.fixture
def saved(models, tmp_path):
    return models["PrivateNaiveBayes"].save(tmp_path / "model")


def test_what_load_refuses(saved, tmp_path):
    assert sf.load(saved / HEADER).predict(X).tolist() == sf.load(saved).predict(X).tolist()
    with pytest.raises(InputError, match="already holds a model"):
        sf.load(saved).save(saved)
    for message, path in {
        "there is no": tmp_path / "none",
        "is no release": tmp_path,
        "is no model": saved / ARRAYS,
    }.items():
        with pytest.raises(InputError, match=message):
            sf.load(path)
    for message, changes in {
        "format is not": {"format": "something"},
        "reads version 1": {"format_version": 2},
        "does not list": {"arrays": None},
        "names no estimator": {"estimator": "os.system"},
        "names no estimator of": {"estimator": "PrivateSearch"},
        "schema": {"schema": str(tmp_path / "schema.toml")},
        "not a model": {"schema": SCHEMA.to_toml().replace("bins = 8", "bins = 1000000000000")},
        "another,": {"arrays_sha256": "0"},
        "asks for a file": {
            "schema": SCHEMA.to_toml() + '[columns.x]\ntype = "categorical"\nvalues_file = "/etc/hostname"\n'
        },
        "do not agree": {"classes": ["no", "perhaps"]},
    }.items():
        folder = tmp_path / message.replace(" ", "-")
        folder.mkdir()
        for name in (HEADER, ARRAYS):
            (folder / name).write_bytes((saved / name).read_bytes())
        rewritten(folder, **changes)
        with pytest.raises(InputError, match=message if message != "another," else "it was changed"):
            sf.load(folder)


def test_broken_json_and_files_that_are_too_large(saved):
    for text in ("{", "[" * 100_000, '{"format": NaN}', "null", "[]", '"x"'):
        (saved / HEADER).write_text(text)
        with pytest.raises(InputError, match="not a Sfumato model"):
            sf.load(saved)
    with (saved / HEADER).open("wb") as file:
        file.truncate(65 << 20)  # a hole, not written
    with pytest.raises(InputError, match="at most"):
        sf.load(saved)
    (saved / HEADER).unlink()
    with pytest.raises(InputError, match="no release"):
        sf.load(saved)


def test_a_schema_with_too_many_cells_is_not_built(saved, monkeypatch):
    made = []
    monkeypatch.setattr("sfumato.classifiers.portable.MOST_LEAVES", 2000)
    honest = sf.Schema.from_mapping
    monkeypatch.setattr(sf.Schema, "from_mapping", lambda plain, **what: made.append(plain) or honest(plain, **what))
    column = 'type = "numeric"\nlow = 0\nhigh = 1\nbins = 900\n'
    rewritten(saved, schema="".join(f"[columns.c{i}]\n{column}" for i in range(9)))
    with pytest.raises(InputError, match="cells one after the other"):
        sf.load(saved)
    assert [list(plain["columns"]) for plain in made] == [["c0"], ["c1"], ["c2"]]


def test_equal_models_are_equal_files(models):
    for model in models.values():
        first = files_of(*model.to_portable())
        assert first == files_of(*model.to_portable())
        assert json.loads(first[HEADER])["arrays_sha256"] == hashlib.sha256(first[ARRAYS]).hexdigest()


def test_models_of_numbers_without_a_schema_come_back_too(tmp_path):
    rows = np.sin(np.arange(600) ** 2).reshape(300, 2)
    labels = np.array([3, 5, 7])[(rows[:, 0] > 0).astype(int) + (rows[:, 1] > 0.5)]
    for name, kind in {"a": classifiers.PrivateLogisticRegression, "b": classifiers.PrivateSVM}.items():
        for how in ({"bounds": (-1, [1, 2])}, {"max_norm": 1.5}):
            model = kind(epsilon=9, classes=[3, 5, 7], source=Seeded(2), **how).fit(rows, labels)
            folder = model.save(tmp_path / f"{name}{'bounds' in how}")
            loaded = sf.load(folder)
            np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))
            np.testing.assert_array_equal(loaded.decision_function(rows), model.decision_function(rows))
            assert loaded.get_params()["epsilon"] == 9
            assert read_model(folder)[0]["schema"] is None
