"""What became of the releases of a plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.errors import SfumatoError
from sfumato.releases import folder as folders
from sfumato.results import Result


@dataclass(frozen=True)
class Outcome:
    """What became of one release of a plan.

    Attributes
    ----------
    name : str
        What the release is called.
    folder : Path
        Where it is.
    certificate : dict
        What was released, at which price and with which promise.
    repeated : bool
        Whether it was already paid for.
    """

    name: str
    folder: Path
    certificate: dict[str, Any]
    repeated: bool

    @property
    def result(self) -> Result:
        """The released figures, read from the folder."""
        return folders.read_result(self.folder)


class StoppedError(SfumatoError):
    """A plan that stopped half-way.

    Parameters
    ----------
    message : str
        Why it stopped.

    Attributes
    ----------
    outcomes : list of Outcome
        What was released before.
    name : str or None
        The release that stopped it; None where none of them was begun after the head counts of a private roster.
    """

    def __init__(self, message: str, outcomes: list[Outcome], name: str | None) -> None:
        super().__init__(message)
        self.outcomes = outcomes
        self.name = name
