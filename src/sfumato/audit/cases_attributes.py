"""Attribute histograms and streams on the pairs of neighbours for which their prices are tight."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes.allocation import allocate
from sfumato.attributes.catalogue import Catalogue
from sfumato.attributes.policy import Policy
from sfumato.attributes.release import release_batch
from sfumato.attributes.streams import AttributeStream
from sfumato.attributes.sums import ItemSums
from sfumato.audit.harness import AuditCase
from sfumato.audit.registry import register
from sfumato.audit.transcripts import transcript_case
from sfumato.privacy import NANO, Meter, Nano, Source
from sfumato.testing import reveal

SHOP = Catalogue.of({"novel": {"paper": 1, "fiction": 2}, "map": {"paper": 1, "travel": 1}, "pen": {"paper": 1}})
POLICY = allocate(SHOP, budgets={"paper": 0.5, "fiction": 0.8, "travel": 1}, epsilon=1)
_HISTORY = ("novel", "map")


def _noisy(which: int, n: int, source: Source) -> NDArray[np.int64]:
    items = np.arange(which, len(_HISTORY))  # the second neighbour lacks the novel
    everybody = SHOP.histograms(np.repeat(np.arange(n), items.size), np.tile(items, n), people=n)
    return release_batch(everybody, POLICY, source=source)[0]


def _overall(which: int, n: int, source: Source) -> NDArray[np.int64]:
    """The log-likelihood ratio of the whole release, in nano-ε: no event tells the neighbours apart better."""
    noisy = _noisy(which, n, source)
    with_it, without = (reveal(SHOP.histogram(_HISTORY[i:]).exact) for i in (0, 1))
    return np.asarray((np.abs(noisy - without) - np.abs(noisy - with_it)) @ POLICY.rates)


def _fiction(which: int, n: int, source: Source) -> NDArray[np.int64]:
    return _noisy(which, n, source)[:, SHOP.attributes.index("fiction")]


_RATES = np.array([NANO, NANO // 2])
_STREAM = Policy(("a", "b"), _RATES, np.array([[1, 1]]), Nano(int(_RATES.sum())), _RATES)


def _stream(items: tuple[int, int], meter: Meter) -> list[NDArray[Any]]:
    """An item at step 3 is in two nodes of the tree, asked about at steps 3 and 4."""
    stream = AttributeStream(_STREAM, meter, fanout=2)
    stream.skip(2)
    told = [stream.release().counts]
    stream.extend(ItemSums.as_stated(np.array([items], dtype=np.int64), _STREAM))
    told.append(stream.release().counts)
    stream.skip(1)
    return [*told, stream.release().counts]


register(AuditCase("attributes-overall", POLICY.charge.total, _overall, "the heaviest item present or absent"))
register(
    AuditCase("attributes-one", POLICY.charge.attributes["fiction"], _fiction, "the same item, seen through one attribute")
)
register(
    transcript_case(
        "attributes-stream",
        _stream,
        ((1, 1), (0, 0)),
        "one item of a stream present or absent",
        meter=lambda source: Meter(neighbours="item", attributes=_STREAM.attributes, source=source),
    )
)
