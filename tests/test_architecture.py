"""Rules of the house, checked on the source: arrows go down and never round, noise lives in one place, files are short.

Each rule is first shown a source that breaks it.
"""

from pathlib import Path

import pytest

from support import architecture
from support.architecture import (
    LEFT_FOR_LATER,
    RANDOMNESS,
    between_families,
    cycle,
    imports_in,
    openers_in,
    part_of,
    too_long,
    upward,
)

SOURCES = architecture.sources_in(Path(__file__).parents[1] / "src" / "sfumato")
IMPORTS = imports_in(SOURCES)
FAMILIES = {"people", "histograms", "statistics", "attributes", "grids", "classifiers"}
LAYERS = (
    {"distribution", "errors", "extras", "palette", "privacy"},
    {"ledger", "tables"},
    {"offers", "records", "registry", "registry_homes", "results"},
    FAMILIES,
    {"demo", "releases", "testing"},
    {"audit", "bench", "client"},
    {"service"},
    {"cli"},
)
DRAW_RANDOMNESS = {"privacy", "bench", "audit", "demo"}

# What a family takes from another one. An import that is not listed here is either a mistake or worth a thought.
STATED = {
    # A histogram over people with budgets of their own is a histogram.
    "people.histogram": {"histograms.bins", "histograms.result"},
    "people.mechanisms.adaptive_cells": {"histograms.bins"},
    "people.offers": {"histograms.offers"},
    # Groups are cells of a schema, as the bins of a histogram are; parts of rows are counted as its bins are, by people too.
    "statistics.groups_result": {"histograms.bins"},
    "statistics.group_question": {"histograms.bins", "histograms.estimation.measurements"},
    "statistics.groups": {"histograms.mechanisms.geb", "people.error_law", "people.gaps"},
    "statistics.groups_offers": {"histograms.bins", "people.lattice"},
    "statistics.line_shrinkage": {"histograms.estimation.npmle"},
    "statistics.shrinking": {"histograms.estimation.npmle"},
    "statistics.shares": {
        "histograms.bins",
        "people.headline",
        "people.histogram",
        "people.mechanisms.adaptive_cells",
    },
    "statistics.figure": {"people.headline"},
    "statistics.figure_offers": {"histograms.bins", "people.lattice"},
    "statistics.quantiles": {"histograms.bins", "people.headline"},
    "statistics.quantile_intervals": {"people.error_law"},
    "statistics.quantile_plan": {"people.gaps", "people.question"},
    "statistics.quantile_offers": {"histograms.bins", "people.gaps"},
    # Tables and lists of values: cells are those of histograms, personal budgets those of people.
    "statistics.crosstab": {"histograms.bins"},
    "statistics.crosstab_offers": {"histograms.bins", "people.answers", "people.gaps"},
    "statistics.crosstab_people": {"histograms.bins", "people.histogram", "people.mechanisms.adaptive_cells"},
    "statistics.crosstab_plots": {"histograms.bins"},
    "statistics.crosstab_result": {"histograms.bins", "people.cells", "people.error_law"},
    "statistics.margin": {"histograms.bins"},
    "statistics.top": {"histograms.bins"},
    "statistics.top_offers": {"histograms.bins", "people.answers", "people.gaps"},
    "statistics.top_people": {"histograms.bins", "people.histogram", "people.mechanisms.adaptive_cells"},
    "statistics.top_result": {"histograms.bins", "people.error_law"},
    # Totals of a table's items are noised as one person's history is.
    "statistics.profiles": {
        "attributes.allocation",
        "attributes.catalogue",
        "attributes.catalogue_file",
        "attributes.policy",
        "attributes.profiled",
        "attributes.release",
        "attributes.utility",
    },
    # Models that are counted on a grid.
    "classifiers.counting.additive": {
        "grids.publishers.stacking",
        "grids.search.pool",
        "grids.search.quality",
        "grids.search.scoring",
    },
    "classifiers.counting.histogram": {
        "grids.published.classifier",
        "grids.published.cuts",
        "grids.published.joint",
        "grids.published.network",
        "grids.published.synopsis",
        "grids.publishers.base",
        "grids.publishers.diffgen",
        "grids.publishers.one_grid",
        "grids.publishers.pph",
        "grids.publishers.privpfc",
        "grids.publishers.task",
        "grids.publishers.uniform",
    },
    # A grid in a model file is written as a grid is anywhere; a publisher's parameters are the same wherever it is named.
    "classifiers.portable_states": {"grids.published.base", "grids.published.cuts", "grids.published.synopsis"},
    "classifiers.registry": {
        "grids.publishers.diffgen",
        "grids.publishers.pph",
        "grids.publishers.privpfc",
        "grids.publishers.uniform",
    },
    # Models of people with budgets of their own.
    "classifiers.weighing": {"people.mechanisms.affine"},
    "classifiers.linear.estimator": {"people.ensembles"},
    "classifiers.linear.personal": {"people.mechanisms.affine", "people.mechanisms.sampling", "people.partition"},
}


def small_house(**extra: str) -> dict[str, str]:
    """Empty modules in some layers, and those of `extra` with what they hold (``people__count`` is ``people.count``)."""
    names = ["", "errors", "people", "people.count", "histograms", "histograms.bins", "tables", "tables.schema", "cli"]
    house = {".".join(["sfumato", *filter(None, [name])]): "" for name in names}
    return house | {f"sfumato.{name.replace('__', '.')}": source for name, source in extra.items()}


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("from sfumato.people.count import x", "sfumato.people.count"),
        ("from sfumato.people import count", "sfumato.people.count"),
        ("from sfumato.people import Estimate", "sfumato.people"),
        ("from sfumato import people", "sfumato.people"),
        ("from sfumato import people as p, tables", "sfumato.people"),
        ("import sfumato.people", "sfumato.people"),
        ("import numpy, sfumato.people.count as c", "sfumato.people.count"),
        ("from ..people import count", "sfumato.people.count"),
        ("from ..people.count import x", "sfumato.people.count"),
        ("from .. import people", "sfumato.people"),
        ("from .plots import x", "sfumato.tables.plots"),
        ("import sfumato as sf", "sfumato"),
        ("from sfumato import PersonBudgets", "sfumato"),
        ("def f():\n    from sfumato import people", "sfumato.people"),
        ("class A:\n    def f(self):\n        import sfumato.people", "sfumato.people"),
        ("try:\n    import sfumato.people\nexcept ImportError:\n    pass", "sfumato.people"),
        ("if TYPE_CHECKING:\n    from sfumato import people", "sfumato.people"),
    ],
)
def test_every_form_of_import_is_seen(source, target):
    house = small_house(tables__schema=source, tables__plots="")
    assert target in {i.target for i in imports_in(house) if i.module == "sfumato.tables.schema"}


def test_imports_that_are_none_of_ours():
    lines = ["import numpy", "from sfumato import __version__", "from sfumatology import people", "text = 'import sfumato'"]
    assert imports_in(small_house(cli="\n".join(lines))) == []


def test_a_package_resolves_its_dots_from_itself():
    (found,) = imports_in(small_house(tables="from .schema import Schema"))
    assert (found.module, found.target) == ("sfumato.tables", "sfumato.tables.schema")


@pytest.mark.parametrize(
    "source", ["from sfumato import people", "from ..people import count", "import sfumato.cli", "import sfumato as sf"]
)
def test_an_import_upwards_is_noticed(source):
    assert len(upward(imports_in(small_house(tables__schema=source)), LAYERS)) == 1
    assert upward(imports_in(small_house(cli="from sfumato.people import count")), LAYERS) == []


def test_imports_go_down():
    placed = {part for layer in LAYERS for part in layer}
    assert {part_of(module) for module in SOURCES} <= placed | {"sfumato"}, "a new part of the package needs a layer"
    assert upward([i for i in IMPORTS if i.module != "sfumato"], LAYERS) == []


@pytest.mark.parametrize(
    "source", ["from sfumato import histograms", "import sfumato.histograms", "from .. import histograms"]
)
def test_an_import_between_families_is_noticed(source):
    assert between_families(imports_in(small_house(people__count=source)), FAMILIES) == {"people.count": {"histograms"}}
    assert between_families(imports_in(small_house(people__count="from sfumato import tables, people")), FAMILIES) == {}


def test_families_import_each_other_as_stated_only():
    assert between_families(IMPORTS, FAMILIES) == STATED


def test_a_cycle_is_noticed():
    ring = {
        "tables": "from .schema import Schema",
        "tables__schema": "from sfumato import errors",
        "errors": "import sfumato.tables",
    }
    assert set(cycle(imports_in(small_house(**ring)))) == {"sfumato.tables", "sfumato.tables.schema", "sfumato.errors"}
    assert cycle(imports_in(small_house(errors="import sfumato.errors"))) == ["sfumato.errors", "sfumato.errors"]
    for later in ("def f():\n    import sfumato.tables", "if TYPE_CHECKING:\n    import sfumato.tables"):
        assert cycle(imports_in(small_house(**(ring | {"errors": later})))) == []


def test_no_cycle():
    assert cycle(IMPORTS) == []


def test_a_long_file_is_noticed():
    assert too_long({"sfumato.cli": "x = 1\n" * 350, "sfumato.demo": "x = 1\n" * 351}) == {"sfumato.demo": 351}


def test_no_file_is_long():
    assert too_long(SOURCES) == {}


@pytest.mark.parametrize(
    "source",
    [
        "x = np.random.default_rng()",
        "import numpy.random",
        "from numpy import random",
        "import random",
        "    from secrets import x",
    ],
)
def test_randomness_is_noticed(source):
    assert RANDOMNESS.search(f"import numpy as np\n{source}\n")
    assert not RANDOMNESS.search("def draw(rng: np.random.Generator) -> float: ...")


def test_randomness_is_drawn_in_privacy_only():
    assert [m for m, source in SOURCES.items() if part_of(m) not in DRAW_RANDOMNESS and RANDOMNESS.search(source)] == [
        "sfumato.service.fresh"  # identifiers and keys, never noise
    ]


@pytest.mark.parametrize("source", ["# TODO: more", "x = 1  # FIXME", "raise NotImplementedError"])
def test_what_is_left_for_later_is_noticed(source):
    assert LEFT_FOR_LATER.search(source)


def test_nothing_is_left_for_later():
    assert [m for m, source in SOURCES.items() if LEFT_FOR_LATER.search(source)] == []


RUNNER = "sfumato.service.runner"


def test_nothing_imports_the_runner():
    inside = [i for i in IMPORTS if i.target.startswith(RUNNER)]
    assert inside, "the runner is made of several modules"
    assert [str(i) for i in inside if not i.module.startswith(RUNNER)] == []


@pytest.mark.parametrize(
    "source",
    [
        "from sfumato import open",
        "import sfumato as sf",
        "import sfumato.tables",
        "import sfumato.releases.batch as b",
        "from sfumato import releases",
        "from sfumato.releases import batch",
        "from sfumato.tables import Dataset",
        "from sfumato.tables import open as describe",
        "from sfumato.tables.dataset import Dataset",
        "from sfumato.releases.batch import preview, release",
        "from sfumato.releases.pipeline import charge_and_run",
        "from sfumato.releases.pipeline import *",
        "from ..releases.batch import release",
        "def f():\n    from sfumato.releases.session import Table",
        "plan.described(schema, None)",
        "getattr(plan, 'described')(schema, None)",
        "import_module('sfumato.releases.batch').release(plan)",
        "importlib.import_module('sfumato.service.runner.work')",
        "import duckdb",
        "from pyarrow import parquet",
        "import_module('pandas').read_parquet(place)",
    ],
)
def test_every_way_to_a_private_table_is_noticed(source):
    assert openers_in(source)


def test_what_is_public_is_no_way_to_a_private_table():
    fine = "from sfumato.tables import Schema\nfrom sfumato.releases.batch import preview\nfrom sfumato.ledger import Ledger"
    assert openers_in(fine) == []


def test_only_the_runner_of_the_service_opens_private_tables():
    service = {m: source for m, source in SOURCES.items() if part_of(m) == "service"}
    ways = {module: openers_in(source) for module, source in service.items()}
    assert any(ways[module] for module in ways if module.startswith(RUNNER))
    invents_its_table = {"sfumato.service.operations.demo"}
    others = {module for module, found in ways.items() if found and not module.startswith(RUNNER)}
    assert others <= invents_its_table
