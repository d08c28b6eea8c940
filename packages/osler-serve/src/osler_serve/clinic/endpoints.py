"""`/cds-services`: discovery, the services, and what became of their cards."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Annotated, Any, get_args
from urllib.parse import quote
from uuid import UUID, uuid5

from fastapi import APIRouter, Depends, Path, Request

from osler.errors import OslerError
from osler.runs.feedback import Feedback, FeedbackStore
from osler.text import escape_markdown
from osler_serve.api import At, Who, passage_context
from osler_serve.clinic.chart import read_chart
from osler_serve.clinic.checks import (
    CHECKS,
    CheckName,
    ClinicRules,
    Finding,
    packaged_clinic_rules,
    read_clinic_rules,
    run_check,
)
from osler_serve.clinic.hook_wire import (
    Card,
    CardFeedbackRequest,
    CardLink,
    CardList,
    CardSource,
    Coding,
    HookName,
    HookRequest,
    HookService,
    HookServiceList,
)
from osler_serve.clinic.outside import kind_of, read_missing
from osler_serve.keys import Caller
from osler_serve.problems import RefusedRequest
from osler_serve.schemas import PROBLEMS
from osler_serve.state import ServerState

_PATIENT = "{{context.patientId}}"
_LOINC = "http://loinc.org|"
TEMPLATES = {
    "patient": f"Patient/{_PATIENT}",
    "medications": f"MedicationRequest?patient={_PATIENT}&status=active&_count=100",
    "allergies": f"AllergyIntolerance?patient={_PATIENT}&_count=100",
    "creatinine": f"Observation?patient={_PATIENT}&_sort=-date&_count=5"
    f"&code={_LOINC}2160-0,{_LOINC}14682-9,{_LOINC}38483-4",
    "weight": f"Observation?patient={_PATIENT}&_sort=-date&_count=5"
    f"&code={_LOINC}29463-7,{_LOINC}3141-9",
}
_NEEDS: dict[CheckName, tuple[str, ...]] = {
    "interactions": ("medications",),
    "renal-doses": ("patient", "creatinine", "weight"),
    "allergies": ("allergies",),
}
_DESCRIPTIONS: dict[CheckName, tuple[str, str]] = {
    "interactions": ("Drug interactions", "Combinations of drugs that a text warns of."),
    "renal-doses": (
        "Doses and the kidney",
        "Drugs whose use depends on the creatinine clearance or filtration rate, computed from"
        " the latest creatinine.",
    ),
    "allergies": ("Allergies", "Drugs that a recorded allergy names or is related to."),
}
_OUTCOME = "#/components/schemas/OperationOutcome"
# What other endpoints say of themselves; no state of theirs is refused here (409).
_ERROR_TEXTS = {status: one["description"] for status, one in PROBLEMS.items() if status != 409} | {
    400: "It cannot be read, or is of another patient.",
    403: "The key may not do this, or the request comes from another site.",
    404: "There is no such service.",
    412: "Data that the service needs is missing.",
}
_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": said,
        "content": {"application/fhir+json": {"schema": {"$ref": _OUTCOME}}},
    }
    for status, said in _ERROR_TEXTS.items()
}
ServiceId = Annotated[str, Path(max_length=100, description="As in allergies-order-sign.")]

router = APIRouter(prefix="/cds-services", tags=["clinic"], responses=_ERRORS)


@router.get("")
async def discover(site: At, caller: Who) -> HookServiceList:
    """The services, one for each check and hook."""
    rules = await asyncio.to_thread(_load_rules, site)
    return HookServiceList(
        services=[
            _describe_service(check, hook, rules) for check in CHECKS for hook in get_args(HookName)
        ]
    )


def _describe_service(check: CheckName, hook: HookName, rules: ClinicRules) -> HookService:
    title, said = _DESCRIPTIONS[check]
    counted = f"{len(rules.drugs)} drugs and {len(getattr(rules, _RULES[check]))} rules"
    return HookService(
        hook=hook,
        title=title,
        description=f"{said} Each card quotes its source; no model words it.",
        id=f"{check}-{hook}",
        prefetch={name: TEMPLATES[name] for name in _needed(check, hook)},
        usageRequirements=f"Knows {counted}, by name. No card does not mean that an order is safe.",
    )


_RULES: dict[CheckName, str] = {
    "interactions": "interaction",
    "renal-doses": "renal",
    "allergies": "allergy",
}


def _needed(check: CheckName, hook: HookName) -> tuple[str, ...]:
    """Names of the prefetch templates."""
    # Without an order, what is taken is checked.
    taken = ("medications",) if hook == "patient-view" else ()
    return tuple(dict.fromkeys((*_NEEDS[check], *taken)))


def _load_rules(site: ServerState) -> ClinicRules:
    """Raises `BadConfig`."""
    chosen = site.settings.serve.hook_rules
    return packaged_clinic_rules() if chosen is None else read_clinic_rules(chosen)


async def _require_service(id: ServiceId) -> None:
    """Raises `RefusedRequest`, before the body is held against the form of a request."""
    _find_check(id)


@router.post("/{id}", response_model_exclude_none=True, dependencies=[Depends(_require_service)])
async def call_service(
    id: ServiceId, asked: HookRequest, request: Request, site: At, caller: Who
) -> CardList:
    """The cards for a chart that is opened, or an order; none where nothing is found."""
    check = _find_check(id, asked.hook)
    rules = await asyncio.to_thread(_load_rules, site)
    # Where a search failed, some clients send what the server said of it instead of nothing.
    brought = {
        name: given
        for name, given in asked.prefetch.items()
        if given is not None
        and (name not in TEMPLATES or given.get("resourceType") == kind_of(TEMPLATES[name]))
    }
    missing = {n: TEMPLATES[n] for n in _needed(check, asked.hook) if n not in brought}
    brought |= await read_missing(asked, missing, site.settings.serve.fhir_servers)
    chart = read_chart(asked, brought, datetime.now(UTC))
    findings = run_check(check, chart, rules, asked.hook != "patient-view")
    opened = await _openable_passages(site, caller, findings)
    cards = [
        make_card(
            finding,
            check,
            asked.hookInstance,
            base=str(request.base_url).rstrip("/"),
            opened=opened,
            sample=site.settings.serve.hook_rules is None,
        )
        for finding in findings
    ]
    return CardList(cards=cards)


@router.post("/{id}/feedback", dependencies=[Depends(_require_service)])
async def give_feedback(
    id: ServiceId, given: CardFeedbackRequest, site: At, caller: Who
) -> dict[str, str]:
    """What became of cards: accepted, or overridden and why. It is stored, and exported by
    `GET /api/v1/feedback`."""
    rows = [
        Feedback(
            kind="card",
            about=str(one.card),
            verdict=one.outcome,
            reason=one.overrideReason.reason.code
            if one.overrideReason and one.overrideReason.reason
            else "",
            note=(one.overrideReason.userComment or "") if one.overrideReason else "",
            where=id,
            at=one.outcomeTimestamp.isoformat(),
        )
        for one in given.feedback
    ]
    store = FeedbackStore(site.settings.home)
    await asyncio.to_thread(store.add_all, rows, caller.workspace)
    return {}


def _find_check(id: str, hook: str = "") -> CheckName:
    """Raises `RefusedRequest`: 404 for an unknown service, 400 for another hook than its own."""
    for check in CHECKS:
        own = id.removeprefix(f"{check}-")
        if own in get_args(HookName) and own != id:
            if hook and hook != own:
                problem = f"{id} serves the hook {own}, not {hook}"
                raise RefusedRequest(400, "wrong_hook", problem, fix="GET /cds-services")
            return check
    raise RefusedRequest(
        404, "unknown_service", f"no service {id[:100]!r}", fix="GET /cds-services"
    )


async def _openable_passages(
    site: ServerState, caller: Caller, findings: list[Finding]
) -> frozenset[str]:
    """The cited passages that the served knowledge base has, word for word."""
    opened = set()
    for rule in {finding.rule for finding in findings if finding.rule}:
        try:
            (found, *_), _ = await passage_context(site, caller, rule.passage)
        except OslerError:  # it is not there, or nothing is: the card stands without a link
            continue
        if rule.quote in found.text:
            opened.add(rule.passage)
    return frozenset(opened)


_REASONS = "urn:osler:override-reason"
_TOPICS = "urn:osler:check"
OVERRIDE_REASONS = [
    Coding(code=code, system=_REASONS, display=display)
    for code, display in (
        ("benefit-outweighs-risk", "The benefit outweighs the risk"),
        ("will-monitor", "The patient is monitored for it"),
        ("tolerated-before", "The patient tolerated it before"),
        ("record-wrong", "The record is wrong or out of date"),
        ("not-applicable", "The rule does not apply to this patient"),
    )
]
_LONGEST = 139
_QUOTED = "Quoted as it stands; no model worded this card."
_SAMPLE = "The source is a sample text of Osler: illustrative, no clinical reference."


def make_card(
    finding: Finding,
    check: CheckName,
    instance: UUID,
    *,
    base: str,
    opened: Collection[str],
    sample: bool,
) -> Card:
    """`opened`: ids of the passages that the served knowledge base has, which get a link;
    `sample`: whether the rules are those that Osler brings."""
    rule = finding.rule
    label = rule.title if rule else "The patient's record"
    links = []
    if rule and rule.passage in opened:
        url = f"{base}/#/passages/{quote(rule.passage, safe='')}"
        links = [CardLink(label="The passage", url=url)]
    return Card(
        uuid=uuid5(instance, f"{check}/{finding.id}"),
        summary=_shorten(finding.summary),
        detail=_write_detail(finding, sample=sample),
        indicator="warning" if finding.urgent else "info",
        source=CardSource(
            label=label,
            url=rule.url or None if rule else None,
            topic=Coding(code=check, system=_TOPICS),
        ),
        links=links,
        overrideReasons=OVERRIDE_REASONS if finding.urgent else [],
    )


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _write_detail(finding: Finding, *, sample: bool) -> str:
    # Two series, as in answers: the record's facts, and the text that is quoted beside them.
    facts = [fact for fact in finding.facts if fact]
    parts = ["\n".join(f"- [R{n}] {escape_markdown(fact)}" for n, fact in enumerate(facts, 1))]
    if rule := finding.rule:
        cited = f"{escape_markdown(rule.title)}, {escape_markdown(rule.passage)}"
        parts.append(f"> [1] {escape_markdown(rule.quote)}\n>\n> {cited}")
        parts.append(f"{_QUOTED} {_SAMPLE}" if sample else _QUOTED)
    return "\n\n".join(parts)
