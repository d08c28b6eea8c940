"""Findings as cards."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import quote
from uuid import UUID, uuid5

from osler.serve.clinic.checks import CheckName, Finding
from osler.serve.clinic.hook_wire import Card, CardLink, CardSource, Coding
from osler.text import escape_markdown

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
    parts = ["\n".join(f"- {escape_markdown(fact)}" for fact in finding.facts if fact)]
    if rule := finding.rule:
        cited = f"{escape_markdown(rule.title)}, {escape_markdown(rule.passage)}"
        parts.append(f"> {escape_markdown(rule.quote)}\n>\n> {cited}")
        parts.append(f"{_QUOTED} {_SAMPLE}" if sample else _QUOTED)
    return "\n\n".join(parts)
