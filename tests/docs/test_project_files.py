"""The files beside the code: hooks that fetch nothing, a citation that is current, links that lead somewhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import sfumato

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def test_hooks_are_local_and_run_the_tools_of_the_project() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [r["repo"] for r in hooks["repos"]] == ["local"]
    entries = [hook["entry"].split()[0] for hook in hooks["repos"][0]["hooks"]]
    assert entries == [".venv/bin/ruff", ".venv/bin/ruff", ".venv/bin/mypy"]
    tools = {re.split(r"[\[<>=]", package)[0] for package in PROJECT["project"]["optional-dependencies"]["dev"]}
    assert {Path(entry).name for entry in entries} <= tools


def test_the_citation_is_of_this_version_and_names_the_papers() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == sfumato.__version__
    assert citation["license"] == PROJECT["project"]["license"]
    assert {(r["authors"][0]["family-names"], r["year"]) for r in citation["references"]} == {
        ("Li", 2017),
        ("Shen", 2016),
        ("Chan", 2017),
        ("Su", 2018),
    }


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")), ids=lambda p: p.name)
def test_links_beside_the_pages_lead_somewhere(page: Path) -> None:
    """The strict build checks the links inside docs/; these are the others."""
    links = [link.split("#") for link in _LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    for target, *anchor in links:
        file = page.parent / target if target else page
        assert file.is_file(), f"{page.name} links to {target}, which is not there"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
            known = {re.sub(r"[^\w -]", "", h).strip().lower().replace(" ", "-") for h in headings}
            assert anchor[0] in known, f"{page.name} links to {target}#{anchor[0]}; headings: {sorted(known)}"
