"""Values of the library as the API tells them."""

from __future__ import annotations

from osler import types
from osler.kb.check import Provenance
from osler.methods.omni.dossier import SavedPlan
from osler.serve import schemas, schemas_kb
from osler.serve.run_views import RunView


def provenance_view(given: Provenance) -> schemas_kb.ProvenanceView:
    # The path of a file is this machine's affair; its name says enough.
    name = given.origin if "://" in given.origin else given.origin.rpartition("/")[2]
    return schemas_kb.ProvenanceView.from_value(given, origin=name)


def answer_view(given: types.Answer) -> schemas.AnswerView:
    return schemas.AnswerView.from_value(
        given,
        citations=[citation_view(given, one) for one in given.citations],
        authorship=given.authorship.value,
    )


def citation_view(given: types.Answer, one: types.Citation) -> schemas.CitationView:
    found = given.evidence[one.number - 1]
    return schemas.CitationView(
        span=(one.start, one.end),
        number=one.number,
        passage_id=found.passage.id,
        quote=found.quote,
        quote_span=(found.start, found.end),
    )


def evidence_views(given: types.Answer) -> list[schemas.EvidenceView]:
    return [
        schemas.EvidenceView.from_value(
            one,
            number=number,
            quote_span=(one.start, one.end),
            query=one.hit.query,
            rank=one.hit.rank,
        )
        for number, one in enumerate(given.evidence, 1)
    ]


def quoted_view(given: types.Evidence) -> schemas.QuotedView:
    return schemas.QuotedView.from_value(given, quote_span=(given.start, given.end))


def caution_views(given: types.Answer) -> list[schemas.CautionView]:
    return [
        schemas.CautionView.from_value(one, evidence=[quoted_view(e) for e in one.evidence])
        for one in given.cautions
    ]


def danger_view(given: types.DangerNotice | None) -> schemas.DangerView | None:
    return None if given is None else schemas.DangerView.from_value(given)


def run_report(told: RunView) -> schemas.RunReport:
    solution, question = told.solution, told.question
    given = solution.answer if solution else None
    return schemas.RunReport(
        danger=danger_view(told.danger),
        run_id=told.id,
        status=told.status,
        created=told.created,
        strategy=told.strategy,
        question=question.text if question else "",
        options=list(question.options) if question else [],
        answer=answer_view(given) if given else None,
        evidence=evidence_views(given) if given else [],
        cautions=caution_views(given) if given else [],
        grounding=given.grounding.value if given else None,
        halt=solution.halt.value if solution else None,
        why=solution.why if solution else "",
        decided=solution.decided.value if solution else None,
        steps=[schemas.ProofStepView.from_value(one) for one in told.steps],
        usage=schemas.UsageView.from_value(solution.usage) if solution else None,
        models=told.models,
        notes_of=list(told.notes_of),
        snapshot=told.snapshot,
        seconds=told.seconds,
        events=len(told.lines),
        ahead=0,
        changed=[],
        error=schemas.RunError(code=told.code, detail=told.detail) if told.code else None,
    )


def plan_view(
    given: SavedPlan, question: types.Question, danger: types.DangerNotice | None
) -> schemas.PlanView:
    queries = given.plan_reading.plan.queries
    return schemas.PlanView.from_value(
        given,
        danger=danger_view(danger),
        question=question.text,
        queries=[schemas.SourceQuery(source=one.source, query=one.wire) for one in queries],
        text=given.plan,
        notice=schemas.NOTICE,
    )
