"""A clinic to try things on: 50,000 made-up patients whose consent depends on how old and how ill they are.

The patients come from a random generator, not from anybody's data, so nothing here needs protection; the releases made
from them are protected all the same. Because they are made up the truth may be looked at, and `compare` does.
"""

from __future__ import annotations

from sfumato.demo.clinic import PATIENTS, TIERS, write_clinic
from sfumato.demo.everything import write_everything
from sfumato.demo.life import Lived, live
from sfumato.demo.truth import Compared, compare

__all__ = ["PATIENTS", "TIERS", "Compared", "Lived", "compare", "live", "write_clinic", "write_everything"]
