"""Counters for Prometheus, none of which is a private number.

What is counted is what the web process did: requests by template of the route, method and class of status, and how long they
took. The web process never reads a private table. From the database come the jobs by the state that their owners are *told*:
a job runs until its slot, whatever happened to it, so no counter moves before the answer is due.

Left out, and why:

- anything of the runner (processor time, memory, queries, idle time): it would tell the end of a job before its slot;
- failures by kind: why a release failed may depend on the table;
- people, grants, epochs, invitations, and requests about oneself by route: with a private roster, how many there are and how
  many withdrew is private. All routes of persons, and all ways to sign in or join, are one label each, without a method, a
  status or a duration;
- datasets, accounts and recipients as labels: who asks how much is for the custodian and the officer, not for a monitor;
- ε: what was spent stands in the ledger, for those who may read it.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sfumato import __version__

if TYPE_CHECKING:
    from sfumato.service.context import Service

BUCKETS: Final = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.5, 5.0, 10.0)
MERGED: Final = ("me", "people", "invitations", "sign-in", "sign-out", "set-password", "session", "join", "oidc", "account")
"""First parts of addresses whose routes are counted together."""

METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
ELSEWHERE: Final = "(none)"


def label_of(template: str | None) -> str:
    """The label of a route: its template, or one for all routes whose counts would be about people.

    >>> label_of("/v1/plans/{plan}"), label_of("/v1/me/withdraw"), label_of(None)
    ('/v1/plans/{plan}', '/v1/me/*', '(none)')
    """
    if template is None:
        return ELSEWHERE
    parts = template.split("/")
    for place, part in enumerate(parts):
        if part in MERGED:
            return "/".join([*parts[: place + 1], "*"])
    return template


class Metrics:
    """What one web process has counted since it started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, str]] = Counter()
        self._about_people: Counter[str] = Counter()
        self._buckets: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def count(self, method: str, template: str | None, status: int, seconds: float) -> None:
        """Add a request that was answered after `seconds`.

        Parameters
        ----------
        method : str
            As it was sent.
        template : str or None
            The route's template; ``None`` where there is no route.
        status : int
            What was answered.
        seconds : float
            How long it took.
        """
        label = label_of(template)
        place = next((i for i, most in enumerate(BUCKETS) if seconds <= most), len(BUCKETS))
        with self._lock:
            if label.endswith("/*"):
                self._about_people[label] += 1
                return
            self._requests[label, method if method in METHODS else "other", f"{status // 100}xx"] += 1
            self._buckets[label][place] += 1
            self._seconds[label] += seconds

    def lines(self) -> Iterator[str]:
        """The text that Prometheus reads."""
        yield from _head("sfumato_requests_total", "counter", "Requests by route, method and class of status.")
        with self._lock:
            requests, people = dict(self._requests), dict(self._about_people)
            buckets, seconds = {k: list(v) for k, v in self._buckets.items()}, dict(self._seconds)
        for (label, method, status), number in sorted(requests.items()):
            yield f'sfumato_requests_total{{route="{label}",method="{method}",status="{status}"}} {number}'
        for label, number in sorted(people.items()):
            yield f'sfumato_requests_total{{route="{label}",method="any",status="any"}} {number}'
        yield from _head("sfumato_request_seconds", "histogram", "How long requests took.")
        for label, counts in sorted(buckets.items()):
            total = 0
            for most, number in zip((*BUCKETS, "+Inf"), counts, strict=True):
                total += number
                yield f'sfumato_request_seconds_bucket{{route="{label}",le="{most}"}} {total}'
            yield f'sfumato_request_seconds_sum{{route="{label}"}} {seconds[label]:.3f}'
            yield f'sfumato_request_seconds_count{{route="{label}"}} {total}'


def text(service: Service, metrics: Metrics) -> str:
    """Everything that may be told, as Prometheus reads it."""
    from sfumato.service.operations.health import jobs_told, ready

    said = ready(service)
    lines = [
        *_head("sfumato_info", "gauge", "The version that runs."),
        f'sfumato_info{{version="{__version__}"}} 1',
        *_head("sfumato_ready", "gauge", "Whether each part answers."),
        *(f'sfumato_ready{{part="{part}"}} {int(well)}' for part, well in said.items()),
        *_head("sfumato_jobs", "gauge", "Jobs by the state that their owners are told."),
        *(f'sfumato_jobs{{state="{state}"}} {number}' for state, number in jobs_told(service).items()),
        *metrics.lines(),
    ]
    return "\n".join(lines) + "\n"


def _head(name: str, kind: str, words: str) -> Iterator[str]:
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} {kind}"
