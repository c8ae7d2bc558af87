"""What a device says about the parts of Sfumato that it does not have."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

from sfumato.errors import NotInstalledError


def missing(name: str) -> str:
    """The sentence about a module or name that is not in sfumato-device."""
    return (
        f"{name} is not in sfumato-device, which is what is installed here and has sfumato.attributes and sfumato.privacy. "
        "The distribution sfumato has everything: pip uninstall sfumato-device, then pip install sfumato"
    )


class _Missing:
    """The last finder of modules: asked only for what no other has found."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name.startswith("sfumato.") and name.count(".") == 1:
            # Without a name in the error, `from sfumato import people` shows the sentence too.
            raise NotInstalledError(missing(name))


def explain_missing_modules() -> None:
    """Let `import sfumato.people` and the like say where that part is to be had."""
    if _Missing not in sys.meta_path:
        sys.meta_path.append(_Missing)
