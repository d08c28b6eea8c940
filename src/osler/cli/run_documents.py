"""Solutions and passages as the plain values that `--json` writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from osler.cli.film import planned_sources
from osler.cli.render import RunPage
from osler.trace import Event, StateValued, proof_steps
from osler.types import Answer, Caution, DangerNotice, Evidence, Hit, Passage


def report_document(report: RunPage) -> dict[str, Any]:
    """One run. A run that only planned has `plan` in place of `answer` and what follows."""
    ran = {
        "models": dict(report.models),
        "snapshot": report.snapshot,
        "run": report.run,
        "strategy": report.strategy,
        "seconds": report.seconds,
    }
    solution = report.solution
    if solution is None:
        plans = [
            {"origin": event.origin, "queries": [asdict(query) for query in event.queries]}
            for event in planned_sources(report.events)
        ]
        return {"danger": danger_document(report.danger), "plan": plans, **ran}
    return {
        "danger": danger_document(report.danger),
        "answer": answer_document(solution.answer),
        "evidence": [evidence_document(evidence) for evidence in solution.answer.evidence],
        "cautions": [caution_document(caution) for caution in solution.answer.cautions],
        "grounding": solution.answer.grounding.value,
        "halt": solution.halt.value,
        "why": solution.why,
        "decided": solution.decided.value,
        "state": find_state(report.events),
        "steps": [asdict(step) for step in proof_steps(report.events)],
        "usage": asdict(solution.usage),
        **ran,
    }


def find_state(events: Sequence[Event]) -> dict[str, Any] | None:
    """The last state value of a run: of the conclusion that stood, where it `halted`."""
    valued = [event for event in events if isinstance(event, StateValued)]
    if not valued:
        return None
    last = valued[-1]
    return {key: getattr(last, key) for key in ("metric", "value", "sigma", "halted")}


def danger_document(danger: DangerNotice | None) -> dict[str, Any] | None:
    return None if danger is None else asdict(danger)


def answer_document(answer: Answer) -> dict[str, Any]:
    return {
        "text": answer.text,
        "option": answer.option,
        "statements": [asdict(statement) for statement in answer.statements],
        "citations": [
            {
                "start": citation.start,
                "end": citation.end,
                "number": citation.number,
                **_quote_document(answer.evidence[citation.number - 1]),
            }
            for citation in answer.citations
        ],
        "language": answer.language,
        "authorship": answer.authorship.value,
        "sureness": asdict(answer.sureness) if answer.sureness else None,
        "note": answer.note,
    }


def evidence_document(evidence: Evidence) -> dict[str, Any]:
    """The passage, with the place of the quote in its text and the search that found it."""
    return {
        **passage_document(evidence.passage),
        "quote": evidence.quote,
        "quote_span": [evidence.start, evidence.end],
        "use": evidence.use,
        "query": evidence.hit.query,
    }


def caution_document(caution: Caution) -> dict[str, Any]:
    """The rule, what it saw, and the quotes: the cited one first."""
    return {
        "rule": caution.rule,
        "text": caution.text,
        "evidence": [evidence_document(each) for each in caution.evidence],
    }


def hit_document(hit: Hit) -> dict[str, Any]:
    return {"rank": hit.rank, "score": hit.score, **passage_document(hit.passage)}


def passage_document(passage: Passage) -> dict[str, Any]:
    return {**asdict(passage), "citation": str(passage.locator)}


def _quote_document(evidence: Evidence) -> dict[str, Any]:
    return {
        "passage_id": evidence.passage.id,
        "quote": evidence.quote,
        "quote_span": [evidence.start, evidence.end],
    }
