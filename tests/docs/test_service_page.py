"""The parts of docs/service.md that follow from the code do follow from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.service.operations.pages import roles_table, settings_table

PAGE = Path(__file__).parents[2] / "docs" / "service.md"


@pytest.mark.parametrize(("part", "made"), [("roles", roles_table), ("settings", settings_table)])
def test_tables_are_those_of_the_code(part: str, made: object) -> None:
    assert callable(made)
    between = PAGE.read_text(encoding="utf-8").partition(f"<!-- {part} -->\n")[2].partition(f"\n<!-- end of {part} -->")[0]
    assert between == made(), f"put this between the marks of {part!r} in docs/service.md:\n{made()}"
