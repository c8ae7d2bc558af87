"""For whoever writes a mechanism: see what reaches the noise, replay the answers to a neighbour, and count the loss exactly.

A mechanism is private if, for neighbouring tables, the same answers lead to the same questions at the same prices, every
question's exact value moves by no more than was paid for, and what is published follows from the answers alone. All of that
can be checked on tiny tables without any statistics:

>>> import numpy as np
>>> from sfumato.privacy import Meter
>>> from sfumato.testing import replay
>>> def histogram(table, source):
...     meter = Meter(source=source)
...     return meter.laplace(lambda: np.bincount(table, minlength=3), rate=10**8, label="counts")
>>> found = replay(histogram, here=[0, 2, 2], there=[0, 2])
>>> found.loss, [call.charged for call in found.calls], found.same_output
(100000000, [100000000], True)

`fuzz` does so with random tables, a person taken out from anywhere in them, and compares what is stored byte by byte.

The `Tape` behind it is a source of noise, so it fits wherever a seed fits: into a Meter, an estimator, or `sfumato.open`.
Whatever it touches is marked *not private*.
"""

from sfumato.privacy.calls import Call
from sfumato.testing.comparison import Compared, compare, vector_loss
from sfumato.testing.fuzzing import Rows, fuzz
from sfumato.testing.likelihood import log_probability
from sfumato.testing.price_plans import PricePlan, random_plan
from sfumato.testing.prices import PriceFound, check_price, price_fuzz
from sfumato.testing.replaying import Replay, replay
from sfumato.testing.revealing import reveal
from sfumato.testing.tape import LeakError, Tape

__all__ = [
    "Call",
    "Compared",
    "LeakError",
    "PriceFound",
    "PricePlan",
    "Replay",
    "Rows",
    "Tape",
    "check_price",
    "compare",
    "fuzz",
    "log_probability",
    "price_fuzz",
    "random_plan",
    "replay",
    "reveal",
    "vector_loss",
]
