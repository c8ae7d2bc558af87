"""What is sent and answered about people: every text and list bounded, every ε as exact decimal text."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any

from fastapi import Path
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

MOST_BROUGHT = 10_000
MOST_INVITED = 500

DatasetPath = Annotated[str, Path(max_length=80, description="a dataset's name")]
Amount = Annotated[str, StringConstraints(min_length=1, max_length=40, strip_whitespace=True)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Identifier = (
    Annotated[str, StringConstraints(min_length=1, max_length=200)]
    | Annotated[int, Field(strict=True, ge=-(2**63), lt=2**63)]
)


def _day(text: str) -> str:
    return date.fromisoformat(text).isoformat()


Day = Annotated[str, StringConstraints(max_length=10, pattern=r"^\d{4}-\d{2}-\d{2}$"), AfterValidator(_day)]


class Sent(BaseModel):
    """What is sent: nothing but what is named."""

    model_config = ConfigDict(extra="forbid")


class Grant(Sent):
    """What a person grants: a tier of the menu, or an ε of their own."""

    tier: Name | None = None
    epsilon: Amount | None = None

    @model_validator(mode="after")
    def _one(self) -> Grant:
        if (self.tier is None) == (self.epsilon is None):
            raise ValueError("give a tier or an epsilon, and not both")
        return self


class Code(Sent):
    """An invitation's code, as it was given."""

    code: Annotated[str, StringConstraints(min_length=1, max_length=100)]


class Leaving(Sent):
    """That a person wants out, said explicitly: `confirm` is the name of the dataset."""

    confirm: Annotated[str, StringConstraints(max_length=80)]


class PolicyTowards(Sent):
    """What one recipient may learn from the person's device."""

    epsilon: Amount
    attributes: Annotated[dict[Name, Amount], Field(min_length=1, max_length=500)]


class PolicySent(Sent):
    """What a person lets their device tell."""

    recipients: Annotated[dict[Name, PolicyTowards], Field(max_length=100)]
    together: Amount | None = None
    attributes_together: Annotated[dict[Name, Amount], Field(max_length=500)] = {}


class Brought(Sent):
    """A person and what they grant: a tier or an ε."""

    person: Identifier
    grant: Name


class PeopleSent(Sent):
    """People to bring; whoever is not listed stays as they are."""

    people: Annotated[list[Brought], Field(min_length=1, max_length=MOST_BROUGHT)]


class InvitedSent(Sent):
    """People to invite."""

    people: Annotated[list[Identifier], Field(min_length=1, max_length=MOST_INVITED)]
    days: Annotated[int, Field(ge=1, le=365)] = 30


class EpochSent(Sent):
    """The epoch to close, and the day (UTC) of the one after it, if it is known."""

    next: Day | None = None


class HowSure(BaseModel):
    """How sure somebody is, in 100, before and at most after."""

    before: int
    after: float


class Meaning(BaseModel):
    """What an ε means for one person."""

    epsilon: str
    about_me: list[HowSure]
    in_the_data: list[HowSure]
    words: str


class Tier(BaseModel):
    """Something to choose."""

    tier: str | None
    epsilon: str
    per_period: str | None
    meaning: Meaning


class MenuShown(BaseModel):
    """What there is to choose from."""

    tiers: list[Tier]
    own_epsilon: bool
    period: str | None


class Mine(BaseModel):
    """Where a person stands; amounts are ε."""

    tier: str | None
    grant: str
    spent: str
    left: str
    left_for_life: str
    period: str | None
    per_period: str | None
    spent_in_period: str | None
    left_in_period: str | None
    withdrawn: bool
    withdrawn_at: str | None
    waiting: str | None
    epoch: int
    taking_part: bool
    grant_means: Meaning
    spent_means: Meaning


class Overview(BaseModel):
    """One's own place in a dataset; `mine` is null where one takes no part."""

    dataset: str
    roster: str
    next_epoch: str | None
    menu: MenuShown | None
    mine: Mine | None
    words: str


class Chosen(BaseModel):
    """What a choice leads to: `holds_from` is "now", "next release" or "next epoch"."""

    dataset: str
    mine: Mine | None
    holds_from: str
    next_epoch: str | None
    words: str
    cannot_be_undone: str | None


class UseOfMe(BaseModel):
    """One release that used the person's record."""

    release: int
    name: str | None
    recipient: str | None
    by: str | None
    purpose: str | None
    at: str
    state: str
    epoch: int
    tier: str | None
    grant: str
    charged: str
    kind: str | None
    columns: list[str]
    where: str | None
    words: str


class ReceiptShown(BaseModel):
    """A page of a receipt, newest first."""

    dataset: str
    mine: Mine
    items: list[UseOfMe]
    older: str | None


class PolicyShown(BaseModel):
    """A version of a device policy; `policy` is what `sfumato.attributes.DevicePolicy.from_dict` reads."""

    version: int
    at: str
    policy: dict[str, Any]


class Asked(BaseModel):
    """What a list of people asks for, by kind; null where the roster is private."""

    asked: dict[str, int] | None
    left_as_they_chose: int | None


class Invitation(BaseModel):
    """A code for a person, shown once."""

    person: str
    code: str


class Invitations(BaseModel):
    """Codes, and when they end."""

    items: list[Invitation]
    expires_at: str


class EpochShown(BaseModel):
    """An epoch that was closed; `counts` is null where the roster is private."""

    number: int
    at: str
    counts: dict[str, int] | None
    next_epoch: str | None


class NextEpoch(BaseModel):
    """The day (UTC) of the next epoch."""

    next_epoch: str | None


class TierStanding(BaseModel):
    """People of a tier: the smallest and the largest of each amount. Of a private roster only name and budget."""

    name: str | None
    people: int | None
    levels: int
    budget: list[str]
    spent: list[str] | None
    left: list[str] | None


class PeopleShown(BaseModel):
    """Where the people of a dataset stand."""

    roster: str
    epoch: int | None
    next_epoch: str | None
    tiers: list[TierStanding]
    pending: dict[str, int] | None
