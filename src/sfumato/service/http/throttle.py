"""How many requests one caller may send: a bucket that fills evenly, in the memory of each web process.

Guesses of passwords and codes are counted in the database (`sfumato.service.accounts.attempts`); this one is against floods,
and a write for each request would be a flood of its own. With several web processes each has its own buckets.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

REMEMBERED: Final = 20_000


class Throttle:
    """Buckets of requests.

    Parameters
    ----------
    per_minute : int
        Requests of one caller; as many at once.
    clock : callable, optional
        Seconds.

    Examples
    --------
    >>> throttle = Throttle(2, clock=lambda: 0.0)
    >>> throttle.wait("a"), throttle.wait("a"), throttle.wait("a"), throttle.wait("b")
    (0, 0, 30, 0)
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._rate, self._clock = float(per_minute), per_minute / 60, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, caller: str) -> int:
        """Count a request; how many seconds the caller must wait, 0 if it may be answered."""
        moment = self._clock()
        with self._lock:
            left, at = self._buckets.pop(caller, (self._most, moment))
            left = min(self._most, left + (moment - at) * self._rate)
            allowed = left >= 1
            self._buckets[caller] = (left - 1 if allowed else left, moment)
            while len(self._buckets) > REMEMBERED:
                self._buckets.popitem(last=False)
        return 0 if allowed else math.ceil((1 - left) / self._rate)
