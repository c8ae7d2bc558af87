"""What the tree does with its noisy counts: pruning, and the criterion of its root."""

import numpy as np
import pandas as pd
import pytest

from sfumato import classifiers as c
from sfumato.classifiers.counting.tree import Node, _inner, _pruned
from sfumato.classifiers.counting.tree_scores import Part, Split, Splitter, all_splits, spread_of
from sfumato.privacy import Seeded
from sfumato.records.levels import Levels
from sfumato.records.records import Records
from sfumato.tables import Categorical, Schema


def leaf(no, yes, scale=1.0):
    return Node(None, (), np.array([no, yes], dtype=float), scale)


ANY = Split(0, 1, 0, 0, 1)


def test_noise_of_a_sum_adds_up_in_squares():
    node = _inner(ANY, tuple(leaf(5, 5, scale=3.0) for _ in range(4)))
    assert node.scale == pytest.approx(6.0)
    assert node.counts.tolist() == [20, 20]
    assert node.leaves == 4


def test_a_useless_split_is_cut_and_a_useful_one_stays():
    useless = _inner(ANY, (leaf(50, 10), leaf(50, 11)))
    assert _pruned(useless).split is None
    assert _pruned(_inner(ANY, (leaf(50, 10), leaf(10, 51)))).split is not None
    # 8 more correct records are worth something at a noise of 1, nothing at a noise of 10.
    small = [_inner(ANY, (leaf(50, 10, s), leaf(10, 18, s))) for s in (1.0, 10.0)]
    assert [_pruned(node).split is None for node in small] == [False, True]


def test_subtrees_that_were_cut_do_not_drown_the_splits_above_them():
    """Noise must not be counted once per level: the root's split classifies a thousand records better."""

    def twig(no, yes, depth):
        if depth == 0:
            return leaf(no, yes)
        return _inner(ANY, tuple(twig(no / 3, yes / 3, depth - 1) for _ in range(3)))

    kept = _pruned(_inner(ANY, (twig(5000, 1000, 5), twig(1000, 2000, 5))))
    assert kept.split is not None
    assert all(child.split is None for child in kept.children)
    assert kept.scale == pytest.approx(np.sqrt(2 * 3**5))


def test_a_shallow_tree_finds_a_split_that_only_prepares_another():
    """No single column classifies anybody better than the majority class does; the first two together do."""
    draw = np.random.default_rng(0)
    n = 40_000
    X = pd.DataFrame(
        {"home": draw.choice(["a", "b"], n), "work": draw.choice(["a", "b"], n), "hair": draw.choice(["a", "b"], n)}
    )
    both = (X["home"] == "a") & (X["work"] == "a")
    y = np.where(draw.random(n) < np.where(both, 0.9, 0.05), "yes", "no")
    schema = Schema({name: Categorical(["a", "b"]) for name in X.columns} | {"ill": Categorical(["no", "yes"])})

    def score(criterion):
        tree = c.PrivateDecisionTree(
            epsilon=0.2, depth=2, criterion=criterion, schema=schema, target="ill", source=Seeded(1)
        )
        return tree.fit(X, y).score(X, y)

    assert score("auto") > 0.92
    blind = np.mean([(y[(X[name] == "a").to_numpy()] == "yes").mean() < 0.5 for name in X.columns])
    assert blind == 1.0


def test_splits_and_scores_agree_with_counting_by_hand():
    taxonomy = Levels.tree("job", {"office": ["clerk", "boss"], "field": {"farm": ["herd"], "sea": ["fish", "pearl"]}})
    leaves = np.array([[0], [1], [1], [2], [3], [4], [4]])
    classes = np.array([0, 1, 1, 0, 1, 0, 0])
    records = Records((taxonomy,), leaves.astype(np.int32), classes, ("no", "yes"))
    splitter = Splitter(spread_of("max", 10), tuple(all_splits((taxonomy,))))
    sides = [frozenset(np.flatnonzero(s.groups(leaves[:, 0])).tolist()) for s in splitter.candidates]
    everybody = frozenset(range(7))
    assert len({frozenset([side, everybody - side]) for side in sides}) == len(sides) == 7
    for side, score in zip(sides, splitter.scores(Part.whole(records)), strict=True):
        expected = sum(np.bincount(classes[sorted(part)], minlength=2).max() for part in (side, everybody - side))
        assert score == expected
