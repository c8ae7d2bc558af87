"""Where another library runs: here if it imports here, otherwise in a virtual environment made for it.

A peer may need older packages than ours (diffprivlib 0.6 does not import beside scikit-learn 1.9). Its environment is made
once, by this interpreter's `venv` and `pip`, in the folder that the environment variable ``SFUMATO_PEERS`` names, or else in
the user's cache folder. Nothing is installed unless peers were asked for.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from sfumato.errors import InputError

FOLDER = "SFUMATO_PEERS"


@dataclass(frozen=True)
class Library:
    """A library with the module that must import, and what pip installs for it."""

    name: str
    module: str
    requirements: tuple[str, ...]


def peers_folder() -> Path:
    """The folder of the environments."""
    chosen = os.environ.get(FOLDER)
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sfumato" / "peers"


def imports(python: Path, module: str) -> bool:
    """Whether that interpreter can import the module.

    >>> imports(Path(sys.executable), "json"), imports(Path(sys.executable), "no_such_module")
    (True, False)
    """
    if not python.exists():
        return False
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


def interpreter(library: Library, *, folder: Path | None = None) -> Path:
    """An interpreter that has the library: this one, or that of its environment, which is made if it is missing.

    Raises
    ------
    InputError
        If the environment cannot be made or the library does not import in it.
    """
    here = Path(sys.executable)
    if imports(here, library.module):
        return here
    home = (folder or peers_folder()) / library.name
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not imports(python, library.module):
        _run([str(here), "-m", "venv", "--clear", str(home)], library, home)
        _run([str(python), "-m", "pip", "install", "--quiet", *library.requirements], library, home)
        _run([str(python), "-c", f"import {library.module}"], library, home)
    return python


def _run(command: list[str], library: Library, home: Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise InputError(
            f"no environment for {library.name} could be made in {home}: {said[-1] if said else 'no message'}; "
            f"install {' '.join(library.requirements)} there yourself, name another folder in {FOLDER}, or leave --peers out"
        )
