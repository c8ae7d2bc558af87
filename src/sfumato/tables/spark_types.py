"""What Ibis does not see of Spark's types: which timestamps are instants."""

from __future__ import annotations

from typing import Any


def with_instants(table: Any, frame: Any) -> Any:
    """The Ibis `table` of a Spark `frame`, with its instants marked as such.

    Ibis takes Spark's TIMESTAMP, an instant, and its TIMESTAMP_NTZ, a time without a zone, for one type. A cast of an
    instant to an instant changes nothing but what Ibis knows.
    """
    instants = {f.name for f in frame.schema.fields if f.dataType.typeName() == "timestamp"}
    marked = {name: table[name].cast("timestamp('UTC')") for name in table.columns if name in instants}
    return table.mutate(**marked) if marked else table
