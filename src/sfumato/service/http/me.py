"""What the person whose budget it is sees and decides."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse
from sqlalchemy import select

from sfumato.attributes import DevicePolicy
from sfumato.releases.receipts import question_in_words, receipt_page
from sfumato.releases.statements import statement_page
from sfumato.service.accounts import codes
from sfumato.service.accounts.joining import checked_code
from sfumato.service.http.access import Caller, Here, allowed
from sfumato.service.http.paging import Asked, Listed, Page, packed, page
from sfumato.service.http.person_models import (
    Chosen,
    Code,
    DatasetPath,
    Grant,
    Leaving,
    Overview,
    PolicySent,
    PolicyShown,
    ReceiptShown,
)
from sfumato.service.http.problems import ProblemError
from sfumato.service.people import choosing, policies, telling
from sfumato.service.people.linking import datasets_of, link, subject_of
from sfumato.service.people.standing import overview, summed
from sfumato.service.store import schema

router = APIRouter(tags=["my data"])
Format = Annotated[Literal["json", "html"] | None, Query(description="a page to read, or JSON; by default as Accept says")]
_MOST_AT_ONCE = 20  # datasets of one person on a page: each is looked up in the ledger
# The page is whole in itself: it has a style of its own, and nothing else.
_PAGE_HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'", "Cache-Control": "no-store"}
_EITHER: dict[int | str, dict[str, Any]] = {200: {"content": {"text/html": {"schema": {"type": "string"}}}}}


@router.get("/me")
def my_datasets(caller: Annotated[Caller, allowed("me.read")], service: Here, asked: Page) -> Listed[Overview]:
    """My datasets: what I grant, what waits, what was spent and is left, what there is to choose and what it means."""
    before = asked.before
    if before is not None and (len(before) != 1 or not isinstance(before[0], str)):
        raise ProblemError(422, "`before` is not a page of this list; send the `older` of the page before, or leave it out")
    limit = min(asked.limit, _MOST_AT_ONCE)
    with service.store.read() as connection:
        last = None if before is None else str(before[0])
        names = datasets_of(connection, caller.id, limit=limit, before=last)
        places = [subject_of(connection, service, caller.id, name) for name in names[:limit]]
        items = [Overview.model_validate(overview(service, connection, place)) for place in places]
    return Listed(items=items, older=packed([names[limit - 1]]) if len(names) > limit else None)


@router.post("/me/invitations")
def one_more_dataset(caller: Annotated[Caller, allowed("me.link")], service: Here, sent: Code) -> Overview:
    """Use an invitation for another dataset, with the account that I have."""
    invitation = checked_code(service, sent.code, caller.id)
    with service.store.write() as connection:
        if invitation.person is None or invitation.account_id is not None:
            raise codes.not_a_code()
        codes.use(connection, invitation, caller.id)
        link(connection, service, caller.id, invitation)
        name = connection.execute(
            select(schema.datasets.c.name).where(schema.datasets.c.id == invitation.dataset_id)
        ).scalar_one()
    return my_place(caller, service, name)


@router.get("/me/{dataset}")
def my_place(caller: Annotated[Caller, allowed("me.read")], service: Here, dataset: DatasetPath) -> Overview:
    """One of my datasets."""
    with service.store.read() as connection:
        place = subject_of(connection, service, caller.id, dataset)
        return Overview.model_validate(overview(service, connection, place))


@router.get("/me/{dataset}/receipt", response_model=ReceiptShown, responses=_EITHER)
def my_receipt(
    caller: Annotated[Caller, allowed("me.receipt")],
    service: Here,
    request: Request,
    dataset: DatasetPath,
    asked: Page,
    format: Format = None,
) -> Any:
    """What was spent on me: by which release, for whom, for what purpose, when. As JSON in pages, or as a page to read."""
    found = telling.receipt(service, caller.id, dataset, limit=asked.limit, before=_release_in(asked))
    if _wants_html(request, format):
        return HTMLResponse(receipt_page(found), headers=_PAGE_HEADERS)
    lines = [line.to_dict() for line in reversed(found.lines)]
    return {
        "dataset": found.dataset,
        "mine": summed(found),
        "items": [line | {"words": question_in_words(line)} for line in lines],
        "older": None if found.older is None else packed([found.older]),
    }


@router.put("/me/{dataset}/grant")
def my_grant(caller: Annotated[Caller, allowed("me.grant")], service: Here, dataset: DatasetPath, sent: Grant) -> Chosen:
    """Grant a tier or an ε: it holds from the next epoch on, and from the next release on if it is less."""
    return Chosen.model_validate(choosing.grant(service, caller.id, dataset, tier=sent.tier, epsilon=sent.epsilon))


@router.post("/me/{dataset}/withdraw")
def my_withdrawal(
    caller: Annotated[Caller, allowed("me.withdraw")], service: Here, dataset: DatasetPath, sent: Leaving
) -> Chosen:
    """Leave, from the next release on. What was published stays published; granting again brings me back."""
    with service.store.read() as connection:
        subject_of(connection, service, caller.id, dataset)
    if sent.confirm != dataset:
        raise ProblemError(422, f"to leave, say so: send confirm with the dataset's name, {dataset!r}")
    return Chosen.model_validate(choosing.withdraw(service, caller.id, dataset))


@router.get("/me/{dataset}/policy")
def my_policy(
    caller: Annotated[Caller, allowed("me.policy")],
    service: Here,
    dataset: DatasetPath,
    version: Annotated[int | None, Query(ge=1, le=policies.MOST_VERSIONS, description="the newest if left out")] = None,
) -> PolicyShown:
    """What I let my device tell, for the device to read."""
    return PolicyShown.model_validate(policies.kept(service, caller.id, dataset, version))


@router.get("/me/{dataset}/policy/versions")
def my_policies(
    caller: Annotated[Caller, allowed("me.policy")], service: Here, dataset: DatasetPath, asked: Page
) -> Listed[PolicyShown]:
    """Every version of my policy, newest first."""
    with service.store.read() as connection:
        place = subject_of(connection, service, caller.id, dataset)
        rows, older = page(connection, policies.versions(place), asked, schema.policies.c.number)
    return Listed(items=[PolicyShown.model_validate(policies.shown(row)) for row in rows], older=older)


@router.put("/me/{dataset}/policy")
def set_my_policy(
    caller: Annotated[Caller, allowed("me.policy")], service: Here, dataset: DatasetPath, sent: PolicySent
) -> PolicyShown:
    """Set what my device may tell each recipient; the versions before stay readable."""
    given = sent.model_dump()
    policy = DevicePolicy.of(given["recipients"], together=sent.together, attributes_together=given["attributes_together"])
    return PolicyShown.model_validate(policies.keep(service, caller.id, dataset, policy))


@router.get(
    "/me/{dataset}/statement",
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}}, "application/json": {"schema": {}}}}},
)
def my_statement(
    caller: Annotated[Caller, allowed("me.statement")],
    service: Here,
    request: Request,
    dataset: DatasetPath,
    format: Format = None,
) -> Any:
    """A signed statement of all that was spent on me, to keep and to check without the service; or the same to print."""
    body, receipt = telling.statement(service, caller.id, dataset)
    if _wants_html(request, format):
        return HTMLResponse(statement_page(body, receipt), headers=_PAGE_HEADERS)
    name = f"statement-{body['at'].replace(':', '')}.json"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return JSONResponse(body, headers=headers)


def _release_in(asked: Asked) -> int | None:
    """The release before which a page of a receipt is wanted."""
    if asked.before is None:
        return None
    (number, *more) = asked.before
    if more or not isinstance(number, int) or number < 1:
        raise ProblemError(422, "`before` is not a page of this receipt; send the `older` of the page before it")
    return number


def _wants_html(request: Request, format: str | None) -> bool:
    """By what was asked for, or else by the first of the two that ``Accept`` names."""
    if format is not None:
        return format == "html"
    kinds = [kind.split(";")[0].strip().lower() for kind in request.headers.get("accept", "").split(",")]
    return next((kind for kind in kinds if kind in ("text/html", "application/json")), "") == "text/html"
