"""Which Sfumato this is: its version, and a refusal to be two distributions at once.

The tree makes two distributions that install the same package `sfumato`: **sfumato**, which is complete, and
**sfumato-device**, its `attributes` and `privacy` for a person's device. They are alternatives. Installers do not know this:
they would write one over the other, and removing either would take files of the other away.
"""

from __future__ import annotations

import os

__version__ = "0.1.0"

ONLY_ON_DEVICE = "on_device.py"
ONLY_IN_FULL = os.path.join("cli", "__init__.py")


def refuse_both(folder: str) -> None:
    """Raise ImportError if this package's folder holds files of both distributions, perhaps of different versions."""
    if all(os.path.exists(os.path.join(folder, name)) for name in (ONLY_ON_DEVICE, ONLY_IN_FULL)):
        raise ImportError(
            f"sfumato and sfumato-device are both installed in {folder}; they are alternatives and overwrite each other. "
            "Remove both (pip uninstall sfumato sfumato-device), then install one: sfumato has everything, sfumato-device "
            "has sfumato.attributes and sfumato.privacy"
        )
