"""Whatever is asked in whatever order, no cap is passed and every total is the sum of its charges."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sfumato.errors import BudgetError, LedgerError
from sfumato.ledger import Ledger
from sfumato.privacy.budgets import AttributeBudgets, PersonBudgets, RecipientBudgets
from sfumato.privacy.charge import Charge
from support.memory import memory

TOTAL = 40
LEVELS = np.array([5, 12, 30])
ATTRIBUTES = {"age": 9, "place": 25}
RECIPIENTS = {"adnet": 10, "bank": 35}
TOGETHER = 38

costs = st.integers(0, 8)


class Spending(RuleBasedStateMachine):
    """Runs next to a plain list of the charges that should be on the books."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=memory())
        self.ledger = Ledger.open(Path(self.folder.name) / "a.ledger")
        self.ledger.register(
            "clinic",
            epsilon="0.000000040",
            people=PersonBudgets(LEVELS, np.array([1, 2, 3])),
            attributes=AttributeBudgets(ATTRIBUTES),
            recipients=RecipientBudgets(RECIPIENTS, TOGETHER),
        )
        self.charges: list[dict[str, int]] = []
        self.states: dict[int, str] = {}
        self.requests: dict[int, tuple[str, str | None]] = {}

    caps = {  # noqa: RUF012
        "total": TOTAL,
        "together": TOGETHER,
        **{f"level {i}": int(v) for i, v in enumerate(LEVELS)},
        **ATTRIBUTES,
        **RECIPIENTS,
    }

    def spent(self, name: str) -> int:
        return sum(charge[name] for charge in self.charges)

    @rule(
        people=st.none() | st.lists(costs, min_size=3, max_size=3),
        total=costs,
        attributes=st.dictionaries(st.sampled_from(list(ATTRIBUTES)), costs),
        recipient=st.sampled_from([None, "adnet", "bank"]),
        request=st.sampled_from("abcdefgh"),
    )
    def reserve(
        self,
        people: list[int] | None,
        total: int,
        attributes: dict[str, int],
        recipient: str | None,
        request: str,
    ) -> None:
        total = max(total, *(people or [0]), 0)
        asked = {"total": total, "together": total}
        asked |= {f"level {i}": people[i] if people else total for i in range(3)}
        asked |= {name: attributes.get(name, 0) if attributes else total for name in ATTRIBUTES}
        asked |= {name: total if recipient in (None, name) else 0 for name in RECIPIENTS}
        charge = Charge(total, people=None if people is None else np.array(people), attributes=attributes)
        stored = [
            number
            for number, (what, whom) in self.requests.items()
            if what == request and whom in (None, recipient) and self.states[number] == "committed"
        ]
        fits = all(self.spent(name) + asked[name] <= cap for name, cap in self.caps.items())
        if stored:
            again = self.ledger.reserve("clinic", charge, request=request, recipient=recipient)
            assert again.repeated
            assert again.artefact == {"number": min(stored)}
        elif fits:
            new = self.ledger.reserve("clinic", charge, request=request, recipient=recipient)
            assert not new.repeated
            self.charges.append(asked)
            self.states[new.id] = "reserved"
            self.requests[new.id] = (request, recipient)
        else:
            with pytest.raises(BudgetError):
                self.ledger.reserve("clinic", charge, request=request, recipient=recipient)

    @precondition(lambda self: self.states)
    @rule(data=st.data(), state=st.sampled_from(["committed", "failed"]))
    def finish(self, data: st.DataObject, state: str) -> None:
        number = data.draw(st.sampled_from(sorted(self.states)))

        def act() -> None:
            if state == "committed":
                self.ledger.commit(number, {"number": number})
            else:
                self.ledger.fail(number)

        if self.states[number] in ("reserved", state):
            act()
            self.states[number] = state
        else:
            with pytest.raises(LedgerError):
                act()

    @invariant()
    def books_agree(self) -> None:
        balance = self.ledger.balance("clinic")
        assert balance.people is not None
        assert balance.together is not None
        found = {"total": balance.total.spent, "together": balance.together.spent}
        found |= {f"level {i}": int(v) for i, v in enumerate(balance.people.spent)}
        found |= {limit.name: limit.spent for limit in (*balance.attributes, *balance.recipients)}
        assert found == {name: self.spent(name) for name in self.caps}
        assert all(found[name] <= cap for name, cap in self.caps.items())
        assert {release.id: release.state for release in balance.releases} == self.states

    def teardown(self) -> None:
        self.ledger.verify("clinic")
        self.folder.cleanup()


TestSpending = pytest.mark.slow(Spending.TestCase)
TestSpending.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
