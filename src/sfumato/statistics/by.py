"""The key that asks for one figure per group: shared by every kind that knows it, and light to load."""

from __future__ import annotations

from sfumato.registry import Parameter

BY = Parameter("by", "texts", "one figure for each group: all cells of these columns of the schema")
