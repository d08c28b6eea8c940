"""Requests and replies of CDS Hooks 2.0.1 (https://cds-hooks.hl7.org/2.0/)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

HookName = Literal["patient-view", "order-select", "order-sign"]
Text = Annotated[str, Field(min_length=1, max_length=2_000)]
FhirId = Annotated[str, Field(pattern=r"^[A-Za-z0-9.-]{1,64}$")]


class HookPart(BaseModel):
    """What a client sends; a later version's fields are passed over, as the specification asks."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class FhirAuthorization(HookPart):
    access_token: Text
    token_type: Literal["Bearer"]
    expires_in: int
    scope: str
    subject: str


class FhirBundle(HookPart):
    entry: Annotated[list[dict[str, Any]], Field(max_length=1_000)] = []


class HookContext(HookPart):
    userId: Text  # noqa: N815  the specification's name, as all below
    patientId: FhirId  # noqa: N815
    encounterId: str | None = None  # noqa: N815
    selections: Annotated[list[Text], Field(max_length=200)] = []
    draftOrders: FhirBundle | None = None  # noqa: N815


class HookRequest(HookPart):
    hook: HookName
    hookInstance: UUID  # noqa: N815
    context: HookContext
    fhirServer: str | None = None  # noqa: N815
    fhirAuthorization: FhirAuthorization | None = None  # noqa: N815
    prefetch: dict[str, dict[str, Any] | None] = {}

    @model_validator(mode="after")
    def _require_orders(self) -> Self:
        if self.hook != "patient-view" and self.context.draftOrders is None:
            raise ValueError(f"{self.hook} needs context.draftOrders")
        return self


class HookReply(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Coding(HookReply):
    code: Text
    system: str | None = None
    display: str | None = None


class CardSource(HookReply):
    label: Text
    url: str | None = None
    topic: Coding | None = None


class CardLink(HookReply):
    label: Text
    url: Text
    type: Literal["absolute", "smart"] = "absolute"
    autoLaunchable: bool = False  # noqa: N815
    """Some clients want it said, though it may be left out."""


class Card(HookReply):
    """A finding. Osler suggests no orders, and is never `critical`."""

    uuid: UUID
    summary: Annotated[str, Field(min_length=1, max_length=139)]
    detail: str
    indicator: Literal["info", "warning"]
    source: CardSource
    links: list[CardLink] = []
    overrideReasons: list[Coding] = []  # noqa: N815


class CardList(HookReply):
    cards: list[Card]


class HookService(HookReply):
    hook: HookName
    title: str
    description: Text
    id: Text
    prefetch: dict[str, str]
    usageRequirements: str  # noqa: N815


class HookServiceList(HookReply):
    services: list[HookService]


class ReasonCoding(HookPart):
    code: Text
    system: str | None = None
    display: str | None = None


class OverrideReason(HookPart):
    reason: ReasonCoding | None = None
    userComment: Annotated[str, Field(max_length=4_000)] | None = None  # noqa: N815


class CardFeedback(HookPart):
    card: UUID
    outcome: Literal["accepted", "overridden"]
    overrideReason: OverrideReason | None = None  # noqa: N815
    outcomeTimestamp: datetime  # noqa: N815


class CardFeedbackRequest(HookPart):
    feedback: Annotated[list[CardFeedback], Field(min_length=1, max_length=100)]


class OutcomeIssue(BaseModel):
    severity: Literal["error"]
    code: str
    details: dict[str, list[Coding]]
    diagnostics: str


class OperationOutcome(BaseModel):
    """An error as FHIR words it."""

    resourceType: Literal["OperationOutcome"]  # noqa: N815
    issue: list[OutcomeIssue]
