"""Tables say how sure they are, how many draws there were, and what was tuned on what."""

import pytest

from sfumato.bench import classify, grids
from sfumato.bench.classify_methods import METHODS
from sfumato.bench.printing import MARK, TUNED, cell, markdown, tuned


def test_a_single_draw_has_no_error_and_says_so():
    assert cell({"mean": 0.25, "se": 0.0, "draws": 1}) == ".250"
    assert cell({"mean": 0.25, "se": 0.0123, "draws": 2}) == ".250 ± .012"


@pytest.mark.parametrize(("method", "data_set", "marked"), [("AutoClassifier", "adult", True), ("DP-EBM", "adult", False),
                                                            ("AutoClassifier", "rare class", False)])  # fmt: skip
def test_only_what_was_tuned_there_is_marked(method, data_set, marked):
    text = markdown(data_set, {method: {"1": {"mean": 0.2, "se": 0.01, "draws": 5}}})
    assert (MARK in text) == marked == tuned(method, data_set)


def test_marked_classifiers_exist():
    known = {name.split(",")[0] for name in METHODS} | {"HistogramClassifier", "privpfc", "auto"}
    assert set(TUNED) <= known


def test_the_benches_tell_all_measures():
    figure = {"mean": 0.2, "se": 0.01, "draws": 5, "auc": 0.87, "auc_se": 0.02, "balanced": 0.71, "balanced_se": 0.03}
    text = classify.tables({"misclassification": {"bank": {"Majority": {"1": figure}}}})
    assert all(words in text for words in (".200 ± .010", ".870 ± .020", ".710 ± .030", "balanced accuracy"))
    general = {"census": {"1": {"marginals": {"3-way": 0.0512, "3-way_se": 0.002, "draws": 2}}}}
    assert ".0512 ± .0020" in grids.tables({"general tables": general})
