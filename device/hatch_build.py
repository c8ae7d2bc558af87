"""Takes the parts of Sfumato that a device needs out of the repository in which this folder lies."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class TakeParts(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        here = Path(self.root)
        if (here / "sfumato" / "privacy").exists():
            return  # an unpacked sdist, which has them in place
        if version == "editable":
            raise ValueError("sfumato-device is put together when it is built: pip install ./device, without -e")
        for part in self.config["parts"]:
            build_data["force_include"][str(here.parent / "src" / "sfumato" / part)] = f"sfumato/{part}"
