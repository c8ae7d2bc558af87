"""Who may learn how much: a rule from reputation to ε that the person sets once, so that nobody is asked per provider.

The rule must never give a less reputed recipient more. A table is checked in full; a function is checked on every
reputation it is asked about, against all others seen so far and the rule's own ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sfumato.errors import InputError
from sfumato.privacy.budgets import RecipientBudgets
from sfumato.privacy.units import Epsilon, Nano, as_epsilon, positive_nano

Rule = Callable[[float], Epsilon]


@dataclass(frozen=True)
class Recipients:
    """Recipients with a reputation each, and what that reputation buys.

    Parameters
    ----------
    reputations : mapping of recipient to number
        Higher is better, on any scale.
    rule : mapping of reputation to ε, or a function
        A mapping is a staircase: a recipient gets the ε of the highest step not above its reputation.
    together : ε, optional
        Cap over all recipients, in case they collude.
    stranger : float, optional
        Reputation of a recipient that is not listed; without it strangers are refused.

    Examples
    --------
    >>> known = Recipients({"adnet": 2, "clinic": 9}, rule={0: 0.05, 5: 0.2, 8: 1}, together=1, stranger=0)
    >>> known.epsilon("adnet"), known.epsilon("clinic"), known.epsilon("who?")
    (Decimal('0.05'), Decimal('1'), Decimal('0.05'))
    """

    reputations: Mapping[str, float]
    rule: Mapping[float, Epsilon] | Rule
    together: Epsilon | None = None
    stranger: float | None = None
    _known: dict[float, Nano] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.rule, Mapping):
            if not self.rule:
                raise InputError("the rule needs at least one step, for example {0: 0.05, 5: 0.2}")
            for reputation, epsilon in self.rule.items():
                self._remember(float(reputation), positive_nano(epsilon, f"epsilon at reputation {reputation}"))
        for name in self.reputations:
            self.nano(name)

    @classmethod
    def fixed(cls, budgets: RecipientBudgets) -> Recipients:
        """Named recipients with an ε each, as in `budgets`, and no rule behind it."""
        order = sorted(set(budgets.nano.values()))
        return cls(
            {name: float(order.index(nano)) for name, nano in budgets.nano.items()},
            {float(i): as_epsilon(nano) for i, nano in enumerate(order)},
            together=None if budgets.together is None else as_epsilon(budgets.together),
        )

    def nano(self, recipient: str) -> Nano:
        """What `recipient` may learn over all releases, in nano-ε."""
        reputation = self.reputations.get(recipient, self.stranger)
        if reputation is None:
            known = ", ".join(self.reputations) or "none"
            raise InputError(f"recipient {recipient!r} has no reputation; known: {known}; list it or give `stranger`")
        reputation = float(reputation)
        if isinstance(self.rule, Mapping):
            steps = [float(step) for step in self.rule if float(step) <= reputation]
            if not steps:
                raise InputError(f"the rule says nothing about reputation {reputation}: add a lower step")
            return self._known[max(steps)]
        return self._remember(reputation, positive_nano(self.rule(reputation), f"epsilon at reputation {reputation}"))

    def epsilon(self, recipient: str) -> Epsilon:
        """What `recipient` may learn over all releases, in ε."""
        return as_epsilon(self.nano(recipient))

    @property
    def budgets(self) -> RecipientBudgets:
        """The listed recipients as plain budgets."""
        cap = None if self.together is None else positive_nano(self.together, "the cap over colluding recipients")
        return RecipientBudgets({name: self.nano(name) for name in self.reputations}, cap)

    def _remember(self, reputation: float, nano: Nano) -> Nano:
        if reputation != reputation:
            raise InputError("a reputation must be a number")
        for other, value in self._known.items():
            if (other - reputation) * (value - nano) < 0:
                low, high = sorted([(other, value), (reputation, nano)])
                raise InputError(
                    f"the rule gives reputation {low[0]:g} ε {as_epsilon(low[1])} but the better {high[0]:g} only "
                    f"{as_epsilon(high[1])}; a better reputation must never get less"
                )
        self._known[reputation] = nano
        return nano
