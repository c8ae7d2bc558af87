"""Publishing mechanisms on pairs of neighbours: whole releases, and all that their Meter answered (see `transcripts`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.cases_classifiers import SIDES, TIED, Rows, pair_of
from sfumato.audit.registry import register
from sfumato.audit.transcripts import Fit, transcript_case
from sfumato.grids.published.joint import Joint
from sfumato.grids.published.network import Network
from sfumato.grids.publishers.task import Task
from sfumato.privacy import Exact, Meter
from sfumato.records.records import Records
from sfumato.tables.domains import Categorical
from sfumato.tables.schema import Schema

_PAIR = Categorical(["no", "yes"])
_SIDE = Schema({"side": Categorical(["left", "right"]), "ill": _PAIR})
_TWO = Schema({"a": _PAIR, "b": _PAIR, "ill": _PAIR})


def release(make: Callable[[], Any], schema: Schema) -> Fit[Records]:
    """Releases of a publisher; published is its synopsis or network."""
    task = Task.of(schema, "ill")

    def fit(records: Records, meter: Meter) -> list[NDArray[Any]]:
        made = make().release(Exact(records), task, meter)
        if isinstance(made, Joint):
            tables = [m.noisy for m in (*made.ones, *made.tables)]
            return [np.array(repr([m.columns for m in made.tables])), np.array(made.size), *tables]
        if isinstance(made, Network):
            return [np.array(repr(made.links)), np.array(made.size), *made.tables]
        return [np.array(repr(made.grid)), np.array(made.size or 0.0), made.noisy, np.array(repr(made.parameters))]

    return fit


def _releases() -> None:
    from sfumato.grids import PPH, DiffGen, PrivBayes, PrivMarginals, PrivPfC, UniformGrid

    def case(name: str, make: Callable[[], Any], schema: Schema, rows: Rows, words: str) -> None:
        register(transcript_case(name, release(make, schema), pair_of(schema, rows), words))

    case("uniform-grid", lambda: UniformGrid(epsilon=1, target="ill", rows=100), _SIDE, [((0,), 1, 1)], "one record or none")
    case(
        "diffgen",
        lambda: DiffGen(epsilon=2, target="ill", steps=1),
        _TWO,
        TIED,
        "a record that makes two specialisations equally good, or not",
    )
    # Cells of the first column mix the record with all others, those of the second keep it apart.
    apart: Rows = [((0, 0), 0, 20), ((0, 1), 1, 1)]
    case("pph", lambda: PPH(epsilon=2, target="ill", rows=8), _TWO, apart, "a record that one column tells apart")
    # R of the first column is far from R of the second with the record, and close to it without.
    fits: Rows = [((0, 0), 0, 8), ((1, 0), 0, 8), ((1, 1), 1, 1), ((0, 1), 1, 1)]
    parents = "a record that fits one column's parent and not the other's"
    case("privbayes", lambda: PrivBayes(epsilon=3, target="ill", rows=100, score="R"), _TWO, fits, parents)
    case("privbayes-binary", lambda: PrivBayes(epsilon=3, target="ill", rows=100, degree=1), _TWO, fits, parents)
    wide = Schema({"a": Categorical(["x", "y", "z"]), "ill": _PAIR})
    gray: Rows = [((0,), 0, 8), ((2,), 0, 8), ((1,), 1, 1), ((2,), 1, 1)]
    case(
        "privbayes-gray",
        lambda: PrivBayes(epsilon=3, target="ill", rows=100, degree=1, encoding="gray"),
        wide,
        gray,
        parents,
    )
    case(
        "marginals",
        lambda: PrivMarginals(epsilon=3, target="ill", rows=18, select=0.6),
        _TWO,
        fits,
        "a record that ties one pair of columns closer and not another",
    )
    surer = "a record that makes the divided grid better than the undivided one; without it they are equal"
    case("privpfc-estimator", lambda: PrivPfC(epsilon=3, target="ill", grids=1), _SIDE, SIDES, surer)
    case("privpfc-two-grids", lambda: PrivPfC(epsilon=4, target="ill", grids=2, rows=100), _SIDE, SIDES, surer)


_releases()
