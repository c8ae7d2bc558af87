"""Run the blocks of one page in a process of their own.

A page may register mechanisms or audit cases, and the other tests must not see them.

Reads a JSON list of steps from standard input: `{"python": text, "page": path, "line": number}` or
`{"command": [word, ...], "place": text}`.
Ends at the first step that fails, with its place and traceback on standard error.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from sfumato.cli import main as sfumato


def main() -> None:
    """Run the steps in order, Python in one namespace."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for step in json.load(sys.stdin):
        if "python" in step:
            # the empty lines make a traceback name the line of the page
            exec(compile("\n" * (step["line"] - 1) + step["python"], step["page"], "exec"), names)
            if "matplotlib.pyplot" in sys.modules:
                sys.modules["matplotlib.pyplot"].close("all")
        else:
            ended = _command(step["command"])
            if ended:
                sys.exit(f"{step['place']}: `sfumato {' '.join(step['command'])}` ended with {ended}")


def _command(words: list[str]) -> int | str | None:
    """What the command ended with; in this process, as starting one takes longer than most commands."""
    sys.argv = ["sfumato", *words]
    try:
        sfumato()
    except SystemExit as end:
        return end.code
    return 0


if __name__ == "__main__":
    main()
