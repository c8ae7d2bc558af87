"""The models on the tables kept aside, in small."""

from sfumato.bench import classify, classify_aside
from sfumato.bench.aside_tables import aside_table
from sfumato.bench.classify_methods import METHODS, misclassification


def test_models_are_measured_on_what_was_kept_aside(monkeypatch):
    monkeypatch.setattr(classify_aside, "CHOOSER", "PrivateNaiveBayes")
    monkeypatch.setattr(classify_aside, "aside_tables", lambda rows: [aside_table("small", 600)])
    found = classify.run(quick=True, part="aside")
    figures = found["figures"]["kept aside"]["small"]
    assert set(figures) == {"PrivateNaiveBayes", "Majority"}
    assert len(found["claims"]) == 4
    assert "small, area under the curve" in found["tables"]


def test_the_area_sees_what_the_share_of_errors_hides():
    table = aside_table("rare class", 12_000)
    learned, guessed = (misclassification(METHODS[m], table, 4.0, repeats=1) for m in ("PrivateNaiveBayes", "Majority"))
    assert abs(learned["mean"] - guessed["mean"]) < 0.02  # both nearly always say no
    assert learned["auc"] > 0.7
    assert guessed["auc"] == 0.5
    assert guessed["balanced"] == 0.5


def test_the_chooser_is_compared_with_our_own_models():
    found = classify.run(quick=True, part="auto")
    assert set(found["figures"]["our own"]["census"]) == {"AutoClassifier", "PrivateNaiveBayes", "Majority"}
    assert [claim["name"].split(":")[0] for claim in found["claims"]] == ["our own"] * 4
