"""What a release assumes of its people, and who made the assumption: a sentence for the certificate and the report."""

from __future__ import annotations

from sfumato.offers import AUTO
from sfumato.releases.pipeline import Priced


def assumption(priced: Priced, said_by: str) -> str | None:
    """The assumption that the chosen mechanism rests on, with whoever made it.

    Parameters
    ----------
    priced : Priced
    said_by : "the plan" or "the call"
        Who asked.

    Returns
    -------
    str or None
        None where nothing is assumed: the mechanism is right for any data, or nobody's budget differs.
    """
    request, errors = priced.request, priced.chosen.errors
    if errors is None or not errors.assumes or priced.facts.budgets is None:
        return None
    sentence = "Assumes that what people granted has nothing to do with their values"
    if request.independent:
        return f"{sentence}; said so by: {said_by}."
    if request.mechanism != AUTO:
        return f"{sentence}: the mechanism {request.mechanism} rests on it; made by: {said_by}, which named it."
    return f"{sentence}; nobody said so: no mechanism without this assumption answers this question."
