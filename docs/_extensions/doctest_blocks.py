"""Show the examples of a docstring as code.

The docstrings of this project put examples in the running text, where a reader of the source wants them. Markdown would take
`>>>` for a quotation, so examples that stand outside a section `Examples` are fenced before they are rendered.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_SECTION = re.compile(r"^-{3,}\s*$")


class DoctestBlocks(griffe.Extension):
    """Fence the examples of every docstring."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Called for the package itself."""
        self.on_object(obj=pkg)

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called for each module, class, function and attribute in it."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """The docstring with each paragraph that begins with `>>>` in a fence; sections `Examples` are shown as code anyway."""
    out: list[str] = []
    lines = text.split("\n")
    examples = inside = False
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and _SECTION.match(lines[i + 1]):
            examples = line.strip() == "Examples"
        starts = line.lstrip().startswith(">>> ")
        if starts and not examples and not inside:
            inside = True
            out.append(f"{line[: len(line) - len(line.lstrip())]}```pycon")
        if inside and not line.strip():
            inside = False
            out.append("```")
        out.append(line)
    if inside:
        out.append("```")
    return "\n".join(out)
