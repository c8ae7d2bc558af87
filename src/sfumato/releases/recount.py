"""Count the heads of a private roster again, where people come and go."""

from __future__ import annotations

from sfumato.errors import InputError
from sfumato.privacy.source import SECURE, Source
from sfumato.releases.batch import Outcome, Progress, carry_out
from sfumato.releases.plan import Plan
from sfumato.releases.plan_people import bind, next_counting
from sfumato.tables.living import LivingRoster


def _quiet(_name: str, _step: str) -> None:
    """No progress shown."""


def count_heads(plan: Plan, *, source: Source = SECURE, progress: Progress = _quiet, by: str | None = None) -> Outcome:
    """Count the heads of a private roster whose people change, with noise, and charge it again; later releases use it.

    `plan` is what `load` read; `source`, `progress` and `by` are as for `release`.
    """

    roster = plan.roster()
    if not isinstance(roster, LivingRoster) or not roster.private:
        raise InputError(
            "heads are counted again where people change and who they are is private: `living = true` and "
            '`roster = "private"` under [people]. Head counts of other rosters are stated, read or counted once'
        )
    bind(plan)
    table = plan.described(plan.schema(), roster)
    counting, ledger = next_counting(plan, roster, source)
    return carry_out(plan, counting, table, ledger, source, progress, by=by)
