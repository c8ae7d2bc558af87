"""What each kind of people does: persons, custodians, officers; and what all of them look at."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from sfumato.client.bundle import check_keys, result_in
from sfumato.client.connection import Connection, place
from sfumato.results import Result

_OVER: Final = ("finished", "failed", "cancelled")
_LONGEST_PAUSE: Final = 5.0


class Jobs:
    """What waits and runs.

    Parameters
    ----------
    connection : Connection
        What it sends by.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self._connection.pages("/jobs")

    def __getitem__(self, job: str) -> dict[str, Any]:
        return dict(self._connection.get(place("jobs", job)))

    def cancel(self, job: str) -> dict[str, Any]:
        """Cancel a `job` that has not begun to charge its budget."""
        return dict(self._connection.delete(place("jobs", job)))

    def wait(self, job: str, *, progress: Callable[[str], None] | None = None) -> dict[str, Any]:
        """Wait until the end of a `job` is told, at its slot, with a line for `progress` now and then."""
        pause = 0.25
        while True:
            found = self[job]
            if found["state"] in _OVER:
                if progress is not None:
                    progress(f"job {job} {found['state']}.")
                return found
            due = found["deliver_at"]
            left = None if due is None else max(0.0, due - time.time())
            if progress is not None:
                progress(f"job {job} {found['state']}" + ("" if left is None else f", told in {left:.0f} s"))
            self._connection.pause(pause if left is None else min(max(left, pause), _LONGEST_PAUSE))
            pause = min(pause * 1.5, _LONGEST_PAUSE)


class Releases:
    """What was released to the caller, or from their datasets.

    Parameters
    ----------
    connection : Connection
        What it sends by.
    keys : sequence of mapping, optional
        Public keys that are known from elsewhere; the service's must be these, or go on from them.
    """

    def __init__(self, connection: Connection, keys: Sequence[Mapping[str, Any]] | None = None) -> None:
        self._connection, self._known = connection, keys

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self._connection.pages("/releases")

    def __getitem__(self, release: str) -> dict[str, Any]:
        return dict(self._connection.get(place("releases", release)))

    def of_dataset(self, dataset: str) -> Iterator[dict[str, Any]]:
        """Those of one `dataset`, newest first."""
        return self._connection.pages("/releases", dataset=dataset)

    def of_job(self, job: str, *, dataset: str) -> list[dict[str, Any]]:
        """Those that a `job` made from a `dataset`."""
        found: list[dict[str, Any]] = []
        for release in self.of_dataset(dataset):
            if release["job"] == job:
                found.append(release)
            elif found:
                break  # those of one job are told at one moment, so they stand together
        return found

    def bundle(self, release: str) -> bytes:
        """All files of a `release` as a ZIP file."""
        return self._connection.raw(place("releases", release, "bundle"))

    def load(self, release: str, *, repeated: bool = True) -> Result:
        """A `release` as the result that it is, downloaded and verified; its `save` writes the files.

        Digests, the signature, and the proof that its charge is in the ledger's log are checked. `repeated` says whether it
        was paid for before.
        """
        return result_in(self.bundle(release), release=release, repeated=repeated, known=self._known)

    def keys(self) -> list[dict[str, Any]]:
        """The public keys that certificates are signed with, oldest first."""
        found: list[dict[str, Any]] = self._connection.get("/keys")["keys"]
        check_keys(found, self._known)
        return found


class Me:
    """For the person whose budget it is.

    Parameters
    ----------
    connection : Connection
        What it sends by.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self._connection.pages("/me")

    def __getitem__(self, dataset: str) -> dict[str, Any]:
        return dict(self._connection.get(place("me", dataset)))

    def receipts(self, dataset: str) -> Iterator[dict[str, Any]]:
        """What was spent on me in a `dataset`, newest first."""
        return self._connection.pages(place("me", dataset, "receipt"))

    def grant(self, dataset: str, *, tier: str | None = None, epsilon: str | None = None) -> dict[str, Any]:
        """Grant a `tier` of a `dataset`, or an `epsilon`, from the next epoch on."""
        given = {"tier": tier} if tier is not None else {"epsilon": epsilon}
        return dict(self._connection.put(place("me", dataset, "grant"), given))

    def withdraw(self, dataset: str) -> dict[str, Any]:
        """Leave a `dataset`, from the next release on."""
        return dict(self._connection.post(place("me", dataset, "withdraw"), {"confirm": dataset}))

    def policy(self, dataset: str) -> dict[str, Any]:
        """What my device may tell about me in a `dataset`."""
        return dict(self._connection.get(place("me", dataset, "policy")))

    def set_policy(self, dataset: str, policy: Mapping[str, Any]) -> dict[str, Any]:
        """Set the `policy` of a `dataset`; the versions before stay readable."""
        return dict(self._connection.put(place("me", dataset, "policy"), dict(policy)))

    def statement(self, dataset: str) -> dict[str, Any]:
        """A signed statement of all that was spent on me in a `dataset`, to keep."""
        return dict(self._connection.get(place("me", dataset, "statement"), format="json"))


class Plans:
    """For the custodian: plans are made, previewed, submitted and run.

    Parameters
    ----------
    connection : Connection
        What it sends by.
    jobs, releases
        Of the client.
    """

    def __init__(self, connection: Connection, jobs: Jobs, releases: Releases) -> None:
        self._connection, self._jobs, self._releases = connection, jobs, releases

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self._connection.pages("/plans")

    def __getitem__(self, plan: str) -> dict[str, Any]:
        return dict(self._connection.get(place("plans", plan)))

    def create(self, dataset: str, name: str, releases: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Make a plan of a `name` for a `dataset`; `releases` are the tables of a plan's ``[[release]]``."""
        body = {"dataset": dataset, "name": name, "releases": [dict(r) for r in releases]}
        return dict(self._connection.post("/plans", body))

    def preview(self, plan: str) -> dict[str, Any]:
        """What a `plan` costs and how well it does; nothing is read and nothing spent."""
        return dict(self._connection.get(place("plans", plan, "preview")))

    def preview_releases(self, dataset: str, releases: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The same of `releases` from a `dataset` that are not written down."""
        body = {"dataset": dataset, "releases": [dict(r) for r in releases]}
        return dict(self._connection.post("/previews", body))

    def submit(self, plan: str) -> dict[str, Any]:
        """Give a `plan` to the officers, as it is now; from then on it does not change."""
        return dict(self._connection.post(place("plans", plan, "submit"), {"digest": self[plan]["digest"]}))

    def run(self, plan: str, *, progress: Callable[[str], None] | None = None) -> list[Result]:
        """Run a `plan` that was approved, wait with a line for `progress`, and load what it released."""
        job = self._connection.post(place("plans", plan, "run"))
        done = self._jobs.wait(job["id"], progress=progress)
        made = self._releases.of_job(done["id"], dataset=done["dataset"])
        return [self._releases.load(release["id"]) for release in made]


class Approvals:
    """For the officer: what waits for a decision, and the decisions.

    Parameters
    ----------
    connection : Connection
        What it sends by.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self._connection.pages("/approvals")

    def __getitem__(self, plan: str) -> dict[str, Any]:
        return dict(self._connection.get(place("approvals", plan)))

    def approve(self, plan: Mapping[str, Any], reason: str, *, code: str) -> dict[str, Any]:
        """Approve a `plan` for a `reason`, with a one-time `code`. The plan is one that was read: its digest goes along."""
        return self._decide(plan, "approved", reason, code)

    def refuse(self, plan: Mapping[str, Any], reason: str, *, code: str) -> dict[str, Any]:
        """Refuse a `plan` for a `reason`, with a one-time `code`."""
        return self._decide(plan, "refused", reason, code)

    def allow(
        self, dataset: str, *, analyst: str, purpose: str, epsilon: str, per_day: str | None = None, code: str
    ) -> dict[str, Any]:
        """Let an `analyst` spend `epsilon` of a `dataset` for a `purpose`, `per_day` at most so much, with a `code`."""
        body = {"analyst": analyst, "purpose": purpose, "epsilon": epsilon, "per_day": per_day}
        return dict(self._connection.post(place("datasets", dataset, "allowances"), body, code=code))

    def preapprove(self, dataset: str, *, purpose: str, kinds: Sequence[str], most: str, code: str) -> dict[str, Any]:
        """Approve `kinds` of requests of a `dataset` for a `purpose` beforehand, up to `most` each, with a `code`."""
        body = {"purpose": purpose, "kinds": list(kinds), "most": most}
        return dict(self._connection.post(place("datasets", dataset, "preapprovals"), body, code=code))

    def _decide(self, plan: Mapping[str, Any], decision: str, reason: str, code: str) -> dict[str, Any]:
        body = {"decision": decision, "reason": reason, "digest": plan["digest"]}
        return dict(self._connection.post(place("approvals", str(plan["id"])), body, code=code))
