"""Brute force over neighbouring tiny tables: whole releases of every publisher, replayed to the neighbour.

After the same answers the neighbour must be asked the same questions and publish the same thing, no call may lose more than
it was charged, and all of them together no more than the guarantee says.
"""

import pickle

import numpy as np
import pytest

from sfumato.audit.cases_rivals import release
from sfumato.grids import PPH, DiffGen, PrivBayes, PrivMarginals, PrivPfC, UniformGrid
from sfumato.privacy import NANO, Meter
from sfumato.records.records import Records
from sfumato.tables import PrivacyUnit, Schema
from sfumato.testing import replay
from support import grids as helpers

MAKERS = {
    "diffgen": lambda: DiffGen(epsilon=2, target="ill", steps=3),
    "pph": lambda: PPH(epsilon=2, target="ill"),
    "privbayes": lambda: PrivBayes(epsilon=2, target="ill"),
    "privbayes, public rows": lambda: PrivBayes(epsilon=2, target="ill", rows=3000),
    "privbayes, vanilla": lambda: PrivBayes(epsilon=2, target="ill", rows=3000, encoding="vanilla"),
    "privbayes, binary": lambda: PrivBayes(epsilon=2, target="ill", rows=3000, encoding="binary"),
    "privbayes, gray": lambda: PrivBayes(epsilon=2, target="ill", rows=3000, encoding="gray"),
    "marginals": lambda: PrivMarginals(epsilon=2, target="ill"),
    "marginals, public rows": lambda: PrivMarginals(epsilon=2, target="ill", rows=3000, select=0.5),
    "uniform grid": lambda: UniformGrid(epsilon=2, target="ill"),
    "one grid": lambda: PrivPfC(epsilon=2, target="ill", grids=1, most=50),
    "two grids": lambda: PrivPfC(epsilon=2, target="ill", grids=2, most=50, rows=3000),
    "automatic": lambda: PrivPfC(epsilon=2, target="ill", most=50, rows=20_000),
    "paper's calibration": lambda: PrivPfC(
        epsilon=2, target="ill", grids=1, most=50, calibration="published", split="paper"
    ),
}


def neighbours(task, rng, size):
    leaves = np.stack([rng.integers(t.leaves, size=size) for t in task.taxonomies], axis=1)
    classes = rng.integers(task.classes, size=size)
    full = Records(task.taxonomies, leaves, classes, task.target_domain.labels())
    return full, Records(task.taxonomies, leaves[:-1], classes[:-1], task.target_domain.labels())


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("labels", [("no", "yes"), ("no", "yes", "maybe")], ids=["two classes", "three classes"])
def test_no_release_loses_more_than_it_was_charged(name, labels):
    rng, largest = np.random.default_rng(len(labels)), 0.0
    schema, task = helpers.schema(labels), helpers.task(labels)
    fit = release(MAKERS[name], schema)
    for seed in range(6):
        full, less = neighbours(task, rng, 1 + 2 * seed)

        def run(records, source):
            meter = Meter(source=source)
            return list(fit(records, meter)), meter.spent().total

        found = replay(run, full, less, source=seed)
        assert found.same_output
        assert all(pair.loss <= pair.charged * (1 + 1e-12) for pair in found.calls)
        spent = found.published[0][1]
        assert found.loss <= spent <= 2 * NANO
        largest = max(largest, found.loss / spent)
    assert largest > 0.3, "these tables hardly move the mechanism: the test would pass whatever the price"


@pytest.mark.parametrize("name", MAKERS)
def test_a_person_with_two_rows_loses_no_more_than_was_charged(name):
    """From the table to the stored bytes: somebody from the middle is missing, with both rows."""
    schema = Schema(helpers.schema().columns, PrivacyUnit(person="who", rows_per_person=2))
    everybody = helpers.frame(60).assign(who=np.arange(60) // 2)

    def run(table, source):
        synopsis = MAKERS[name]().fit(table, schema=schema, source=source).synopsis
        return pickle.dumps(synopsis), synopsis.guarantee.rows_per_person, synopsis.guarantee.nano

    found = replay(run, everybody, everybody[everybody["who"] != 7], source=5)
    assert found.same_output
    _, rows_per_person, spent = found.published[0]
    assert rows_per_person == 2
    assert all(pair.loss <= pair.charged * (1 + 1e-12) for pair in found.calls)
    assert 0 < found.loss <= spent <= 2 * NANO
