"""Tables say how sure they are, how many draws there were, and what was tuned on what."""

import pytest

from sfumato.bench import classify, grids, run_bench
from sfumato.bench.classify_methods import METHODS
from sfumato.bench.grids_accuracy import summary
from sfumato.bench.printing import MARK, TUNED, cell, markdown, tuned
from sfumato.errors import InputError


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


def test_a_learner_is_not_chosen_by_the_rows_that_measure_it():
    good, bad = ({"error": e, "auc": 1 - e, "balanced": 1 - e} for e in (0.1, 0.5))
    middle = {"error": 0.3, "auc": 0.7, "balanced": 0.7}
    rows = [[{"tree": (good, bad, middle), "logistic": (bad, good, middle)}]] * 3
    found = summary(rows, ("tree", "logistic"))
    assert found["tree"] == found["logistic"] == 0.3
    assert found["best"] == 0.5  # each was good only where it was chosen
    assert found["best_learner"] == "tree / logistic"
    assert (found["splits"], found["draws"]) == (3, 3)
    one, two = ({"tree": ({"error": e, "auc": 0.5, "balanced": 0.5},) * 3} for e in (0.1, 0.3))
    told = summary([[one, two], [two, two]], ("tree",))  # draws of a split first: .2 and .3
    assert told["tree"] == 0.25
    assert told["tree_se"] == pytest.approx(0.05)
    assert told["draws"] == 4


def test_draws_are_asked_for_where_a_bench_has_them():
    found = run_bench("histograms", quick=True, part="leave-one-out", draws=2)
    assert all(f["draws"] == 2 for by_set in found["figures"]["leave one out"].values() for f in by_set.values())
    assert "| set without it |" in found["tables"]
    with pytest.raises(InputError, match="leave --draws out"):
        run_bench("noise", draws=3)
    with pytest.raises(InputError, match="1 or more"):
        run_bench("histograms", draws=0)
