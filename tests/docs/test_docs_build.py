"""The pages build strictly, show every public name, and load nothing from another host."""

from __future__ import annotations

import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import sfumato

ROOT = Path(__file__).parents[2]
NOT_PUBLIC = {
    "cli": "described by `sfumato --help`",
    "demo": "what `sfumato demo` writes",
    "distribution": "the version, and the check that only one distribution is installed",
    "extras": "messages about packages that are not installed",
    "palette": "the colours of the pictures",
}
PUBLIC = ["sfumato", *(f"sfumato.{m.name}" for m in pkgutil.iter_modules(sfumato.__path__) if m.name not in NOT_PUBLIC)]
_LOADS = re.compile(r"""<(?:script|img|iframe|source|link)\b[^>]*?\b(?:src|href)=["']?(https?:)?//""")
_STYLE_LOADS = re.compile(r"""(?:url\(|@import)\s*["']?(?:https?:)?//""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, built with every warning an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"mkdocs build --strict refuses the pages:\n{done.stderr[-6000:]}"
    return folder


def test_every_page_is_built(site: Path) -> None:
    pages = {p.relative_to(ROOT / "docs").with_suffix("") for p in (ROOT / "docs").rglob("*.md")}
    built = {p.parent.relative_to(site) for p in site.rglob("index.html")}
    assert {p for p in pages if p != Path("index")} <= built
    assert len(built) > 20


@pytest.mark.parametrize("package", PUBLIC)
def test_every_public_name_is_in_the_reference(package: str, site: Path) -> None:
    module = import_module(package)
    names = getattr(module, "__all__", None)
    assert names is not None, f"{package} has no __all__: say there what is public"
    shown = {
        anchor
        for page in (site / "reference").rglob("index.html")
        for anchor in re.findall(r'id="(sfumato[\w.]*)"', page.read_text())
    }
    missing = sorted(f"{package}.{n}" for n in names if not shown & _paths(module, n) and f"{package}.{n}" not in PUBLIC)
    assert package in shown, f"no page of docs/reference has `::: {package}`"
    assert not missing, "the reference leaves out (have they a docstring?):\n" + "\n".join(missing)


def _paths(module: ModuleType, name: str) -> set[str]:
    """Where the reference may have a name: in its package, or (if a submodule has its name) where it is defined."""
    thing = getattr(module, name)
    return {f"{module.__name__}.{name}", f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', '')}"}


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
