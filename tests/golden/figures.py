"""What seeded releases gave before a redesign: the same seeds must give the same figures after it.

`python tests/golden/figures.py` writes the file anew: only where new figures are meant, with the reason in the commit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import sfumato as sf
from sfumato import attributes, classifiers, grids, histograms, people
from sfumato.people.histogram import plan_histogram
from sfumato.people.mechanisms.adaptive_cells import plan_adaptive_histogram
from sfumato.privacy import Exact, Meter, PersonBudgets, Seeded
from sfumato.registry import mechanisms

FILE = Path(__file__).with_name("figures.json")
TIERS = PersonBudgets.from_tiers({"strict": (0.01, 2700), "standard": (0.2, 1850), "open": (1.0, 450)})
GROUPS = np.repeat([0, 1, 2], [2700, 1850, 450])


def plain(value: Any) -> Any:
    """Arrays and decimals as JSON, floats with ten digits."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return float(f"{value:.10g}")
    return value if isinstance(value, int | str | bool | None) else str(value)


def patients(n: int = 3000) -> pd.DataFrame:
    draw = np.random.default_rng(5)
    age, job = draw.integers(0, 80, n), draw.integers(4, size=n)
    ill = draw.random(n) < 0.1 + 0.6 * (age > 40) + 0.2 * (job >= 2)
    return pd.DataFrame(
        {
            "age": age,
            "job": np.array(["a", "b", "c", "d"], dtype=object)[job],
            "visits": draw.integers(0, 16, n),
            "consent": np.array(["strict", "standard", "open"], dtype=object)[np.arange(n) % 3],
            "ill": np.array(["no", "yes"], dtype=object)[ill.astype(int)],
        }
    )


SCHEMA = sf.Schema(
    {
        "age": sf.Numeric(0, 79, bins=16, integer=True),
        "job": sf.Categorical(["a", "b", "c", "d"], taxonomy={"white": ["a", "b"], "blue": ["c", "d"]}),
        "visits": sf.Numeric(0, 15, bins=4, integer=True),
        "ill": sf.Categorical(["no", "yes"]),
    }
)


def personal() -> dict[str, Any]:
    """Counts, sums, means and histograms over tiers, by every mechanism."""
    found: dict[str, Any] = {}
    draw = np.random.default_rng(1)
    ones = people.ArrayReader.of(GROUPS, draw.integers(0, 2, GROUPS.size))
    values = draw.integers(0, 21, GROUPS.size)
    measure = people.ArrayReader.of(GROUPS, values, high=20)
    pair = people.PairReader(people.ArrayReader.of(GROUPS, 2 * values - 20, low=-20, high=20), ones)
    mechanisms = (
        "affine",
        "adaptive",
        "partition",
        "privacy-aware",
        "sampling",
        "threshold",
        "stretching",
        "exponential",
        "robust",
        "minimum",
    )
    for name in mechanisms:
        made = people.answer(ones, people.Question(TIERS), mechanism=name, source=Seeded(3))
        found[f"count {name}"] = [made.value, *made.interval(), made.expected_rmse, made.guarantee.people]
        if name != "exponential":
            made = people.total(measure, TIERS, high=20, unit=0.5, mechanism=name, source=Seeded(4))
            found[f"sum {name}"] = [made.value, made.expected_rmse, made.guarantee.people]
            made = people.mean(pair, TIERS, low=0, high=10, steps=20, mechanism=name, source=Seeded(5))
            found[f"mean {name}"] = [made.value, made.expected_rmse, made.guarantee.people]
    cells = np.stack([draw.multinomial(n, np.arange(1, 13) / 78) for n in TIERS.counts])
    for make in (plan_histogram, plan_adaptive_histogram):
        plan = make(TIERS, histograms.Bins.numbered(12))
        meter = Meter(limit=plan.charge, budgets=TIERS, source=Seeded(14))
        made = plan.run(lambda weights: Exact(weights @ cells), meter)
        found[f"histogram {made.mechanism}"] = [made.flat, *made.interval(), plan.expected_rmse, made.guarantee.people]
    for rounds in (2, 3):
        made = people.answer(ones, people.Question(TIERS), mechanism="partition", rounds=rounds, source=Seeded(6))
        found[f"count in {rounds} rounds"] = [made.value, made.guarantee.people]
    return found


def shapes() -> dict[str, Any]:
    """Histograms by every mechanism, on three shapes."""
    found: dict[str, Any] = {}
    draw = np.random.default_rng(2)
    tables = {
        "steps": np.repeat([3, 50, 0, 12], 20),
        "spikes": np.where(draw.random(100) < 0.05, 400, 1),
        "long": draw.poisson(np.exp(2 + np.sin(np.arange(600) / 60))),
    }
    names = (
        "auto",
        "auto_ranges",
        "covariate",
        "geb",
        "dawa_shape",
        "dawa",
        "hierarchical",
        "ahp",
        "noisefirst",
        "identity",
        "dpa",
        "sdpa",
        "uniform",
    )
    for shape, counts in tables.items():
        for name in names:
            made = histograms.release_histogram(
                counts, epsilon=0.5, bins=counts.size, meter=Meter(source=Seeded(7)), mechanism=name
            )
            found[f"{shape} {name}"] = [made.flat[::7], made.bin_losses.max(), made.guarantee.nano]
    made = histograms.release_histogram(
        [5, 0, 12], epsilon=1, bins=3, meter=Meter(source=Seeded(8)), mechanism="identity", bin_budgets=[1, 0.1, 1]
    )
    found["bin budgets"] = [made.flat, made.bin_losses]
    return found


def published() -> dict[str, Any]:
    """Grids and synthetic rows by every publisher."""
    found: dict[str, Any] = {}
    table = patients()
    for kind in (grids.PrivPfC, grids.DiffGen, grids.PPH, grids.PrivBayes, grids.PrivMarginals, grids.UniformGrid):
        made = kind(epsilon=1, target="ill").fit(table, schema=SCHEMA, source=Seeded(9))
        if isinstance(made, grids.PrivMarginals):
            found[kind.__name__] = before_the_fit(made.synopsis)
        else:
            found[kind.__name__] = [made.synopsis.guarantee.nano, made.sample(40).astype(str).to_numpy().tolist()]
    return found


def before_the_fit(joint: grids.Joint) -> list[Any]:
    """Every column by itself: its rate and its noisy counts.

    A distribution is fitted to them until it hardly moves. Its last digits may differ from one processor to the next, and
    with them all choices that follow, the drawn rows, and what is lost to whole numbers when ε is shared.
    """
    return [[levels.name, one.rate, one.noisy.tolist()] for levels, one in zip(joint.columns, joint.ones, strict=True)]


def models() -> dict[str, Any]:
    """Class probabilities of every estimator."""
    found: dict[str, Any] = {}
    table = patients()
    X, y = table[["age", "job", "visits"]], table["ill"].to_numpy()
    for name in classifiers.__all__:
        if name in ("NoiseFree", "PrivateSearch"):
            continue
        model = getattr(classifiers, name)(epsilon=2, schema=SCHEMA, target="ill", source=Seeded(10)).fit(X, y)
        told = model.decision_function(X.head(25)) if name == "PrivateSVM" else model.predict_proba(X.head(25))[:, 1]
        found[name] = [model.guarantee_.nano, [float(f"{p:.5g}") for p in told]]
    return found


def own_budgets() -> dict[str, Any]:
    """Class probabilities of every estimator whose people have budgets of their own."""
    found: dict[str, Any] = {}
    table = patients()
    X, y = table[["age", "job", "visits"]], table["ill"].to_numpy()
    granted = table["consent"].map({"strict": 0.05, "standard": 0.5, "open": 2.0}).to_numpy()
    for name in classifiers.__all__:
        kind = getattr(classifiers, name)
        if not getattr(kind, "takes_budgets", False):
            continue
        for tiers in ("as granted", 5):
            model = kind(schema=SCHEMA, target="ill", tiers=tiers, source=Seeded(15)).fit(X, y, budgets=granted)
            told = model.decision_function(X.head(25)) if name == "PrivateSVM" else model.predict_proba(X.head(25))[:, 1]
            found[f"{name} {tiers}"] = [model.guarantee_.people, [float(f"{p:.5g}") for p in told]]
    return found


def histories() -> dict[str, Any]:
    """Attribute histograms: policy, release and stream."""
    shop = attributes.Catalogue.of(
        {"a": {"x": 1, "y": 2}, "b": {"y": 1, "z": 3}, "c": {"x": 2}, "e": {"x": 1, "y": 1, "z": 1}}
    )
    policy = attributes.allocate(shop, budgets={"x": 0.4, "y": 0.5, "z": 0.2}, epsilon=0.3)

    def meter(seed: int) -> Meter:
        return Meter(limit=policy.charge, attributes=policy.attributes, neighbours="item", source=Seeded(seed))

    made = attributes.release_histogram(shop.histogram(["a", "b", "b"]), policy, meter(11))
    return {"policy": policy.rates, "release": [made.counts, made.guarantee.nano]}


def profiled() -> dict[str, Any]:
    """Totals of attributes over a table: price, rates and totals of both mechanisms."""
    jobs = {"a": {"desk": 1, "travel": 1}, "b": {"desk": 2}, "c": {"outdoors": 1, "travel": 1}, "d": {"outdoors": 1}}
    table = sf.open(patients(), schema=SCHEMA, epsilon=10, rows=3000, noise=Seeded(14))
    found: dict[str, Any] = {}
    for name in ("multilevel", "composition"):
        made = table.profile("job", catalogue=jobs, budgets={"desk": 0.2}, epsilon=0.5, mechanism=name, where="age >= 20")
        found[name] = [made.counts, made.policy.rates, made.guarantee.nano, made.expected_rmse]
    return found


def opened() -> dict[str, Any]:
    """Through the front door: previews, charges and answers of `sf.open`."""
    found: dict[str, Any] = {}
    roster = sf.Roster.tiers(
        {"strict": 0.05, "standard": 0.5, "open": 2.0},
        column="consent",
        counts={"strict": 1000, "standard": 1000, "open": 1000},
    )
    tiers = sf.open(patients(), schema=SCHEMA, budgets=roster, noise=Seeded(12))
    for kind, asked in {
        "count": {"where": "age >= 40"},
        "mean": {"column": "visits"},
        "histogram": {"columns": ["age"]},
    }.items():
        preview = tiers.preview(kind, share=0.2, **asked)
        found[f"preview {kind}"] = [[o.mechanism, o.charge.total, o.charge.people, o.expected_rmse] for o in preview]
        found[f"tiers {kind}"] = tiers.release(kind, share=0.2, **asked).value
    everyone = sf.open(patients(), schema=SCHEMA, epsilon=10, rows=3000, noise=Seeded(13))
    for kind, asked in {
        "count": {"where": "job = 'a'"},
        "sum": {"column": "visits"},
        "mean": {"column": "age"},
        "histogram": {"columns": ["job", "visits"]},
    }.items():
        preview = everyone.preview(kind, epsilon=0.5, **asked)
        found[f"uniform preview {kind}"] = sorted(
            [o.mechanism, o.charge.total, o.expected_rmse]
            for o in preview
            if o.mechanism not in ("auto", "auto_shape", "auto_ranges", "dpa", "sdpa", "uniform")
        )
        found[f"uniform {kind}"] = everyone.release(kind, epsilon=0.5, **asked).value
    return found


def crosstabs() -> dict[str, Any]:
    """Tables and lists of the most frequent values by every mechanism, with one ε and over tiers."""
    found: dict[str, Any] = {}
    counts = {"strict": 1000, "standard": 1000, "open": 1000}
    roster = sf.Roster.tiers({"strict": 0.05, "standard": 0.5, "open": 2.0}, column="consent", counts=counts)
    tables = {
        "one": (sf.open(patients(), schema=SCHEMA, epsilon=20, rows=3000, noise=Seeded(15)), {"epsilon": 0.5}),
        "tiers": (sf.open(patients(), schema=SCHEMA, budgets=roster, noise=Seeded(16)), {"share": 0.1}),
    }
    for who, (table, price) in tables.items():
        questions: dict[str, Any] = {
            "table": {"columns": ["age", "job", "ill"] if who == "one" else ["job", "visits"]},
            "table of singles": {"columns": ["age", "job"], "margins": 1},
            "top": {"column": "visits", "k": 2, "counts": True},
        }
        for kind, asked in questions.items():
            of = kind.split()[0]
            for offer in table.preview(of, **asked, **price):
                made = table.release(of, **asked, **price, mechanism=offer.mechanism)
                value = made.value if of == "top" else made.value.reshape(-1)[::5]
                more = made.counts if of == "top" else made.interval("job")
                told = [offer.expected_rmse, offer.charge.total, value, more]
                found[f"{who} {kind} {offer.mechanism}"] = told
    tidy = tables["one"][0].table("job", "ill", "visits", epsilon=0.05, nonnegative=True, whole=True)
    found["whole"] = tidy.value
    return found


def grouped() -> dict[str, Any]:
    """Figures per group by every mechanism, variances and proportions, at one ε and at everybody's own budget."""
    found: dict[str, Any] = {}
    roster = sf.Roster.tiers(
        {"strict": 0.05, "standard": 0.5, "open": 2.0},
        column="consent",
        counts={"strict": 1000, "standard": 1000, "open": 1000},
    )
    everyone = sf.open(patients(), schema=SCHEMA, epsilon=100, rows=3000, noise=Seeded(21), ledger=":memory:")
    tiers = sf.open(patients(), schema=SCHEMA, budgets=roster, noise=Seeded(22), ledger=":memory:")
    asked: dict[str, dict[str, Any]] = {
        "count": {},
        "sum": {"column": "visits"},
        "mean": {"column": "age"},
        "proportion": {"where": "ill = 'yes'"},
    }
    for kind, given in asked.items():
        for name in ("shrunk", "separate", "adding-up"):
            made = everyone.release(kind, epsilon=0.5, by=["job", "visits"], mechanism=name, **given)
            found[f"{kind} {name}"] = [made.values, made.low, made.high, made.errors, made.guarantee.nano]
        made = tiers.release(kind, share=0.05, by=["job"], **given)
        found[f"tiers {kind}"] = [made.values, made.low, made.high, made.guarantee.people]
    for kind, given in {"variance": {"column": "age"}, "proportion": {"where": "ill = 'yes'", "of": "age > 40"}}.items():
        made = everyone.release(kind, epsilon=0.5, **given)
        found[kind] = [made.value, made.low, made.high, made.expected_rmse, made.guarantee.nano]
        made = tiers.release(kind, share=0.05, **given)
        found[f"tiers {kind}"] = [made.value, made.low, made.high, made.expected_rmse, made.guarantee.people]
    return found


def ranks() -> dict[str, Any]:
    """Quantiles of everybody, of groups and of tiers."""
    found: dict[str, Any] = {}
    everyone = sf.open(patients(), schema=SCHEMA, epsilon=20, rows=3000, noise=Seeded(15))
    roster = sf.Roster.tiers(
        {"strict": 0.05, "standard": 0.5, "open": 2.0},
        column="consent",
        counts={"strict": 1000, "standard": 1000, "open": 1000},
    )
    tiers = sf.open(patients(), schema=SCHEMA, budgets=roster, noise=Seeded(16))
    asked: dict[str, dict[str, Any]] = {
        "quantile": {"column": "age", "quantiles": [0.1, 0.25, 0.5, 0.75, 0.9]},
        "median": {"column": "visits", "by": ["job"]},
        "min": {"column": "age"},
        "max": {"column": "age", "where": "job = 'a'"},
    }
    for kind, keys in asked.items():
        for table, price in (
            (everyone, {"epsilon": 0.5}),
            (tiers, {"share": 0.1}),
            (tiers, {"share": 0.1, "independent": True}),
        ):
            made = table.release(kind, **price, **keys)
            told = [made.values, made.low, made.high, made.outside, made.expected_rmse, made.guarantee.nano]
            found[f"{kind} {made.mechanism} {'epsilon' in price}"] = told
    return found


def released_models() -> dict[str, Any]:
    """Models through the front door, by every estimator, with one ε and with budgets of their own."""
    found: dict[str, Any] = {}
    table = sf.open(patients(), schema=SCHEMA, epsilon=100, noise=Seeded(15), ledger=":memory:")
    roster = sf.Roster.tiers(
        {"strict": 0.5, "standard": 1.0, "open": 2.0},
        column="consent",
        counts={"strict": 1000, "standard": 1000, "open": 1000},
    )
    tiers = sf.open(patients(), schema=SCHEMA, budgets=roster, noise=Seeded(16), ledger=":memory:")
    rows = patients().head(25)

    def told(made: Any) -> list[Any]:
        model = made.estimator
        say = model.decision_function(rows) if made.mechanism == "svm" else model.predict_proba(rows)[:, 1]
        return [made.guarantee.nano, [float(f"{p:.5g}") for p in say]]

    for entry in mechanisms("model"):
        found[entry.name] = told(table.model(target="ill", estimator=entry.name, epsilon=2, where="visits < 12"))
        if entry.name in ("tree", "additive", "svm"):
            found[f"tiers {entry.name}"] = told(tiers.model(target="ill", estimator=entry.name, share=0.1))
    return found


PARTS = {
    f.__name__: f
    for f in (
        *(personal, shapes, published, models, own_budgets, histories, opened),
        *(crosstabs, grouped, profiled, ranks, released_models),
    )
}


def measured(part: str) -> Any:
    """The figures of one part, as they are stored."""
    return json.loads(json.dumps(plain(PARTS[part]())))


if __name__ == "__main__":
    FILE.write_text(json.dumps({name: measured(name) for name in PARTS}, indent=0) + "\n", encoding="utf-8")
