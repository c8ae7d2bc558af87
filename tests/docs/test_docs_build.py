"""The pages build strictly, show examples as code, and load nothing from another host."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
_LOADS = re.compile(r"""<(?:script|img|iframe|source|link)\b[^>]*?\b(?:src|href)=["']?(https?:)?//""")
_STYLE_LOADS = re.compile(r"""(?:url\(|@import)\s*["']?(?:https?:)?//""")


def test_every_page_is_built(site: Path) -> None:
    pages = {p.relative_to(DOCS).with_suffix("") for p in DOCS.rglob("*.md")}
    built = {p.parent.relative_to(site) for p in site.rglob("index.html")}
    assert {p for p in pages if p != Path("index")} <= built
    assert len(built) > 20


def test_examples_in_docstrings_are_shown_as_code(site: Path) -> None:
    pages = {page: page.read_text(encoding="utf-8") for page in (site / "reference").rglob("index.html")}
    quoted = [page.parent.name for page, text in pages.items() if re.search(r"<blockquote>\s*<blockquote>", text)]
    assert sum(text.count("&gt;&gt;&gt;") for text in pages.values()) > 50
    assert not quoted, f"Markdown took >>> for a quotation on {', '.join(quoted)}"


def test_the_pages_load_nothing_from_another_host(site: Path) -> None:
    files = [*site.rglob("*.html"), *site.rglob("*.css")]
    loads = [
        f"{file.relative_to(site)}: {found.group(0)}"
        for file in files
        for found in (_LOADS if file.suffix == ".html" else _STYLE_LOADS).finditer(file.read_text(encoding="utf-8"))
    ]
    assert len(files) > 20
    assert not loads, "\n".join(loads)


@pytest.mark.parametrize(
    "page",
    ['<script src="https://x/y.js">', "<img alt=a src='//x/y.png'>", '<link rel="stylesheet" href="https://x/y.css">'],
)
def test_a_load_from_another_host_is_seen(page: str) -> None:
    assert _LOADS.search(page)
    assert not _LOADS.search(re.sub(r"(https:)?//x/", "../", page))
