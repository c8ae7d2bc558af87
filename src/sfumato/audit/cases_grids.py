"""Grids under attack: choices on the pair that moves one score most up and another most down, and a whole release."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.registry import register
from sfumato.audit.transcripts import transcript_case
from sfumato.grids.publishers.one_grid import choose_and_count
from sfumato.grids.publishers.settings import Settings
from sfumato.grids.search.dependence import F_SPREAD, fixed_by_parents
from sfumato.grids.search.pool import Pool, enumerate_grids
from sfumato.grids.search.quality import Quality
from sfumato.grids.search.scoring import score_pool
from sfumato.privacy import NANO, Exact, Meter, Nano
from sfumato.privacy.losses import choice_rate
from sfumato.records.levels import Levels
from sfumato.records.records import Records

_TAXONOMY = (Levels.flat("side", ["left", "right"]),)
_ONE = Nano(NANO)
_SETTINGS = Settings(most=10, split=(0.03, 0.47, 0.50))


@cache
def _table(which: int) -> Records:
    """Left holds two records of class 1 (three in the neighbour), right five of class 0.

    The third record makes the divided grid surer (its score rises by the most a score can rise) and the undivided one less
    sure (its score falls by the most it can fall).
    """
    ones = 3 - which
    leaves = np.array([[0]] * ones + [[1]] * 5)
    return Records(_TAXONOMY, leaves, np.array([1] * ones + [0] * 5), ("0", "1"))


@cache
def _pool() -> Pool:
    return enumerate_grids(_TAXONOMY, most=10, cells=4)


def _choice(which: int, meter: Meter) -> list[NDArray[np.int64]]:
    quality = Quality.of(NANO)
    rate = choice_rate(_ONE, quality.spread)
    return [np.array(meter.choose(_scores(which), rate=rate, spread=quality.spread))]


@cache
def _scores(which: int) -> NDArray[np.float64]:
    return score_pool(_table(which), _pool(), Quality.of(NANO))


@cache
def _fixed(which: int) -> tuple[float, float]:
    """The score F of a column by either of two others; one more record moves the first down by 2, the second up by 1."""
    by_first, by_second = np.array([[3, 1], [1 - which, 3]]), np.array([[4, 0], [0, 4 - which]])
    return fixed_by_parents(by_first), fixed_by_parents(by_second)


def _parents(which: int, meter: Meter) -> list[NDArray[np.int64]]:
    return [np.array(meter.choose(_fixed(which), rate=choice_rate(_ONE, F_SPREAD), spread=F_SPREAD))]


def _release(which: int, meter: Meter) -> list[NDArray[np.int64]]:
    return [
        choose_and_count(
            Exact(_table(which)), meter, nano=Nano(2 * NANO), taxonomies=_TAXONOMY, classes=2, settings=_SETTINGS, rows=8
        ).noisy
    ]


_WORDS = "one record that makes one grid surer and the other less sure, present or absent"
register(transcript_case("grid-choice", _choice, (0, 1), _WORDS))
register(transcript_case("privbayes-choice", _parents, (0, 1), "a record that fits one parent and contradicts another"))
register(transcript_case("privpfc", _release, (0, 1), _WORDS))
