"""Which tests stay in one process when pytest runs in several."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SITE = ("tests/docs/test_docs_build.py", "tests/docs/test_reference.py")  # they look at the pages, built once in a process


def work_unit(test: str) -> str:
    """The name of the unit that a test belongs to; a test that shares nothing costly is a unit by itself.

    All of Spark's tests are one unit, as a second Java takes long to start and to warm up. So are those that look at the
    built pages, and a file with a fixture that is made once for the file.
    """
    file, _, name = test.partition("::")
    if "spark" in name:
        return "spark"
    if file in SITE:
        return "site"
    return file if _shares_a_fixture(file) else test


@cache
def _shares_a_fixture(file: str) -> bool:
    return 'scope="module"' in (ROOT / file).read_text(encoding="utf-8")


def scheduler(config: Any, log: Any) -> Any:
    """A scheduler of pytest-xdist that hands out these units. (Its own `loadgroup` loses its marks with pytest 9.2.)"""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return work_unit(nodeid)

    return Together(config, log)
