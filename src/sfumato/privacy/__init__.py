"""The only code that draws noise or reasons about ε.

Whoever has read this package knows why every mechanism is safe: one primitive (`noise.laplace` on a weighted integer
vector), one choice (`noise.choose`), a `Meter` through which both go, and a `Guarantee` computed from what was done.
"""

from sfumato.privacy.budgets import AttributeBudgets, PersonBudgets, RecipientBudgets
from sfumato.privacy.charge import Charge
from sfumato.privacy.exact import Exact
from sfumato.privacy.group_losses import GroupLosses
from sfumato.privacy.guarantee import Guarantee, Step
from sfumato.privacy.loss import Loss
from sfumato.privacy.meter import Meter
from sfumato.privacy.source import SECURE, Secure, Seeded, Source
from sfumato.privacy.terms import Terms
from sfumato.privacy.units import NANO, Epsilon, Nano, NanoArray, as_epsilon, nano_down, nano_up, positive_nano

__all__ = [
    "NANO",
    "SECURE",
    "AttributeBudgets",
    "Charge",
    "Epsilon",
    "Exact",
    "GroupLosses",
    "Guarantee",
    "Loss",
    "Meter",
    "Nano",
    "NanoArray",
    "PersonBudgets",
    "RecipientBudgets",
    "Secure",
    "Seeded",
    "Source",
    "Step",
    "Terms",
    "as_epsilon",
    "nano_down",
    "nano_up",
    "positive_nano",
]
