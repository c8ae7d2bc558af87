"""Every code block of the README and the documentation runs.

The blocks of one page run in order, in one process and one folder that holds the demo clinic. What is done with a block
follows from its language:

- `python` is executed;
- `console` lines that begin with `sfumato` are run, `make` lines are asked for as a dry run;
- `toml` is a whole schema, which is read, or a whole plan, which is previewed;
- `text` and indented blocks are formulas or output and are not code.

A block that cannot run here has `<!-- not run: the reason -->` on the line above it. Its Python must still compile, and its
commands must still have the options they are given.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

import sfumato
from sfumato import cli, demo
from sfumato.errors import SfumatoError
from sfumato.tables import Schema

ROOT = Path(__file__).parents[2]
PAGES = [p for p in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))] if p.name != "CHANGELOG.md"]
LANGUAGES = ("python", "console", "toml", "text")
SOURCES = str(Path(sfumato.__file__).parents[1])  # the page runs what the tests run, wherever the folder is
SECONDS = 300
_FENCE = re.compile(r"^( *)```+ *([\w+-]*)")
_NOT_RUN = re.compile(r"<!-- *not run: *(.*?) *-->$")
_COMMAND = re.compile(r"`(sfumato [a-z][^`]*)`")


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT)) if page.is_relative_to(ROOT) else page.name


@dataclass(frozen=True)
class Block:
    """A fenced block: where its code begins, its language, its text, and why it is not run, if it is not."""

    page: Path
    line: int
    language: str
    text: str
    not_run: str | None

    @property
    def place(self) -> str:
        """Page and line, as an editor understands them."""
        return f"{_name(self.page)}:{self.line}"

    @property
    def commands(self) -> list[tuple[str, list[str]]]:
        """Place and words of each command of a console block, comments left out."""
        lines = [(self.line + i, shlex.split(t, comments=True)) for i, t in enumerate(self.text.splitlines())]
        return [(f"{_name(self.page)}:{n}", words) for n, words in lines if words]


def blocks_of(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    lines = page.read_text(encoding="utf-8").splitlines()
    found, at = [], 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        if fence is None:
            at += 1
            continue
        indent, language = fence.groups()
        end = next((i for i in range(at + 1, len(lines)) if lines[i].strip() == "```"), None)
        assert end is not None, f"{page.name}:{at + 1}: the block has no end"
        reason = _NOT_RUN.match(lines[at - 1].strip()) if at else None
        text = "\n".join(line.removeprefix(indent) for line in lines[at + 1 : end])
        found.append(Block(page, at + 2, language, text, reason.group(1) if reason else None))
        at = end + 1
    return found


ALL = {page: blocks_of(page) for page in PAGES}


@pytest.fixture(scope="module")
def demo_clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of `sfumato demo`, made once."""
    folder = tmp_path_factory.mktemp("demo") / "demo-clinic"
    demo.write_clinic(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if ALL[page]], ids=_name)
def test_blocks_run(page: Path, demo_clinic: Path, tmp_path: Path) -> None:
    folder = tmp_path / "demo-clinic"
    shutil.copytree(demo_clinic, folder)
    run_blocks(ALL[page], folder)


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("```python\ntotal = 1\nprint(totl)\n```", "line 6"),
        ("```console\nsfumato release no-such-plan.toml  # refused\n```", "no plan"),
        ("```console\nsfumato preview plan.toml --sideways\n```", "sideways"),
        ("<!-- not run: takes an hour -->\n```console\nsfumato bench nothing-of-the-kind\n```", "no bench"),
        ("<!-- not run: takes an hour -->\n```python\nprint(\n```", "was never closed"),
        ("```console\ncurl elsewhere\n```", "is not run here"),
        ('```toml\n[columns.age]\ntype = "numeric"\nlow = 0\n```', "age"),
        ('```toml\nname = "clinic"\n```', "neither a whole schema"),
    ],
)
def test_a_block_that_is_wrong_is_caught(block: str, said: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# A page\n\n\n{block}\n", encoding="utf-8")
    with pytest.raises((AssertionError, SyntaxError, SfumatoError), match=said):
        run_blocks(blocks_of(page), tmp_path)


@pytest.mark.slow
def test_the_quoted_guarantee_is_what_the_demo_says(demo_clinic: Path, tmp_path: Path) -> None:
    folder = tmp_path / "demo-clinic"
    shutil.copytree(demo_clinic, folder)
    command = "sfumato release plan.toml --only over65"
    block = Block(ROOT / "docs" / "start.md", 1, "console", command, None)
    run_blocks([block], folder)
    said = json.loads((folder / "releases" / "over65" / "certificate.json").read_text(encoding="utf-8"))["guarantee"][
        "sentence"
    ]
    page = block.page.read_text(encoding="utf-8").splitlines()
    assert " ".join(line.removeprefix("> ") for line in page if line.startswith("> ")) == said


def run_blocks(blocks: list[Block], folder: Path) -> None:
    """Check every block, then run those that are to be run, in order, in this folder."""
    steps: list[dict[str, Any]] = []
    for block in blocks:
        new: list[dict[str, Any]] = []
        if block.language == "python":
            compile("\n" * (block.line - 1) + block.text, str(block.page), "exec")
            new = [{"python": block.text, "page": str(block.page), "line": block.line}]
        elif block.language == "console":
            for place, words in block.commands:
                if words[0] in ("sfumato", "make"):
                    _check_command(place, words)
                else:
                    assert block.not_run is not None, f"{place}: {words[0]!r} is not run here; say why above the block"
            new = [{"command": w[1:], "place": place} for place, w in block.commands if w[0] == "sfumato"]
        elif block.language == "toml":
            new = _check_toml(block, folder)
        steps += [] if block.not_run is not None else new
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", str(Path(__file__).with_name("page_runner.py"))],
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "200", "MPLBACKEND": "Agg", "PYTHONPATH": SOURCES},
        input=json.dumps(steps),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{blocks[0].page.name}: a block failed\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"


def test_pages_have_blocks_at_all() -> None:
    assert sum(len(blocks) for blocks in ALL.values()) > 20
    assert {"README.md", "docs/start.md", "docs/people.md"} <= {_name(p) for p in PAGES if ALL[p]}


def test_every_block_says_what_it_is() -> None:
    strange = [f"{b.place}: {b.language or 'no language'}" for p in PAGES for b in ALL[p] if b.language not in LANGUAGES]
    assert not strange, f"blocks are {', '.join(LANGUAGES)}; these are something else:\n" + "\n".join(strange)


def test_blocks_that_do_not_run_say_why() -> None:
    mute = [b.place for p in PAGES for b in ALL[p] if b.not_run is not None and len(b.not_run.split()) < 2]
    assert not mute, "write <!-- not run: the reason --> in words:\n" + "\n".join(mute)


def test_code_is_never_merely_indented() -> None:
    hidden = [
        f"{_name(page)}:{number}: {line.strip()}"
        for page in PAGES
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1)
        if re.match(r"^(    |\t)(sfumato |make |pip |import |from \w+ import |>>> )", line)
        and not any(b.line <= number < b.line + len(b.text.splitlines()) for b in ALL[page])
    ]
    assert not hidden, "an indented block is not run; fence it:\n" + "\n".join(hidden)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_commands_in_sentences_exist(page: Path) -> None:
    made = set(re.findall(r'"([\w-]+)"', " ".join(b.text for b in ALL[page] if b.language == "python")))  # registered there
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        for command in _COMMAND.findall(line):
            words = shlex.split(command)
            if len(words) < 3 or words[2].split("-", 1)[-1] not in made:
                _check_command(
                    f"{_name(page)}:{number}", words, whole=len(words) > 2
                )  # `sfumato bench` may stand for itself


def _check_command(place: str, words: list[str], *, whole: bool = True) -> None:
    """The command exists and, if this is the whole of it, has these options; nothing is run."""
    if words[0] == "make":
        if shutil.which("make"):
            environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
            dry = subprocess.run(
                ["make", "-n", *words[1:]], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
            )
            assert dry.returncode == 0, f"{place}: the Makefile refuses `{shlex.join(words)}`\n{dry.stderr}"
        return
    group: Any = typer.main.get_command(cli.app)
    try:
        context = group.make_context("sfumato", list(words[1:2]), resilient_parsing=True)
        _, command, rest = group.resolve_command(context, list(words[1:]))
        parsed = command.make_context(command.name, rest, parent=context, resilient_parsing=not whole)
    except Exception as error:
        raise AssertionError(f"{place}: `{shlex.join(words)}` is refused: {error!r} {error}") from error
    _check_named(place, command.name, parsed.params.get("name"))


def _check_named(place: str, command: str, name: str | None) -> None:
    """Benches and audit cases are named by a word that the parser cannot know."""
    from sfumato import audit, bench

    known = {"bench": ("list", *bench.NAMES), "audit": ("list", "all", *audit.names())}.get(command)
    assert name is None or known is None or name.isupper() or name in known, f"{place}: there is no {command} {name!r}"


def _check_toml(block: Block, folder: Path) -> list[dict[str, Any]]:
    """A schema is read here; a plan is left in the folder, and its preview is the step to run."""
    document = tomllib.loads(block.text)
    file = folder / f"block-{block.line}.toml"
    file.write_text(block.text, encoding="utf-8")
    if "columns" in document:
        assert len(Schema.from_toml(file).columns) == len(document["columns"]), block.place
        return []
    assert "dataset" in document, f"{block.place}: neither a whole schema ([columns.x]) nor a whole plan ([dataset])"
    return [{"command": ["preview", file.name], "place": block.place}]
