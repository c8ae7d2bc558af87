"""Run the blocks of one page in a process of their own.

A page may register mechanisms or audit cases, and the other tests must not see them.

Reads a JSON list of steps from standard input: `{"python": text, "page": path, "line": number}` or
`{"command": [word, ...], "place": text}`.
Ends at the first step that fails, with its place and traceback on standard error.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any


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
            done = subprocess.run([sys.executable, "-m", "sfumato.cli", *step["command"]], check=False)
            if done.returncode:
                sys.exit(f"{step['place']}: `sfumato {' '.join(step['command'])}` ended with {done.returncode}")


if __name__ == "__main__":
    main()
