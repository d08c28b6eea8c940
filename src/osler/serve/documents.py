"""Values of the library as the API tells them."""

from __future__ import annotations

from dataclasses import asdict

from osler import types
from osler.graph.items import Concept, Edge
from osler.kb.check import Provenance, SourceInfo
from osler.methods.omni.dossier import SavedPlan
from osler.serve import schemas, schemas_kb
from osler.serve.run_views import RunView


def passage_view(given: types.Passage) -> schemas_kb.PassageView:
    return schemas_kb.PassageView(
        id=given.id,
        source=given.source,
        title=given.title,
        text=given.text,
        locator=schemas_kb.LocatorView(**asdict(given.locator)),
        licence=given.licence,
        language=given.language,
        illustrative=given.illustrative,
    )


def provenance_view(given: Provenance) -> schemas_kb.ProvenanceView:
    told = asdict(given) | {"kinds": list(given.kinds)}
    del told["state"]
    # The path of a file is this machine's affair; its name says enough.
    told["origin"] = given.origin.rpartition("/")[2] if "://" not in given.origin else given.origin
    return schemas_kb.ProvenanceView(**told)


def hit_view(given: types.Hit) -> schemas_kb.SearchHit:
    return schemas_kb.SearchHit(
        rank=given.rank, score=given.score, passage=passage_view(given.passage)
    )


def answer_view(given: types.Answer) -> schemas.AnswerView:
    return schemas.AnswerView(
        text=given.text,
        option=given.option,
        statements=[
            schemas.StatementView(text=s.text, cites=list(s.cites)) for s in given.statements
        ],
        citations=[citation_view(given, one) for one in given.citations],
        language=given.language,
        authorship=given.authorship.value,
        note=given.note,
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
        schemas.EvidenceView(
            number=number,
            passage=passage_view(one.passage),
            quote=one.quote,
            quote_span=(one.start, one.end),
            use=one.use,
            query=one.hit.query,
            rank=one.hit.rank,
        )
        for number, one in enumerate(given.evidence, 1)
    ]


def quoted_view(given: types.Evidence) -> schemas.QuotedView:
    return schemas.QuotedView(
        passage=passage_view(given.passage),
        quote=given.quote,
        quote_span=(given.start, given.end),
    )


def caution_views(given: types.Answer) -> list[schemas.CautionView]:
    return [
        schemas.CautionView(
            rule=one.rule,
            text=one.text,
            evidence=[quoted_view(each) for each in one.evidence],
        )
        for one in given.cautions
    ]


def run_report(told: RunView) -> schemas.RunReport:
    solution, question = told.solution, told.question
    given = solution.answer if solution else None
    return schemas.RunReport(
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
        usage=schemas.UsageView(**asdict(solution.usage)) if solution else None,
        models=told.models,
        snapshot=told.snapshot,
        seconds=told.seconds,
        events=len(told.lines),
        error=schemas.RunError(code=told.code, detail=told.detail) if told.code else None,
    )


def plan_view(given: SavedPlan, question: types.Question) -> schemas.PlanView:
    return schemas.PlanView(
        question=question.text,
        queries=[
            schemas.SourceQuery(source=query.source, query=query.wire)
            for query in given.plan_reading.plan.queries
        ],
        sources=list(given.sources),
        text=given.plan,
        dropped=list(given.dropped),
        planner=given.planner,
        snapshot=given.snapshot,
    )


def source_view(given: SourceInfo) -> schemas_kb.SourceView:
    return schemas_kb.SourceView(
        source=given.source,
        documents=given.documents,
        passages=given.passages,
        files=given.files,
        licences=list(given.licences),
        illustrative=given.illustrative,
        retracted=given.retracted,
        trust={str(trust): count for trust, count in given.trust.items()},
        latest=given.latest,
    )


def concept_view(given: Concept, edges: list[Edge]) -> schemas_kb.ConceptView:
    return schemas_kb.ConceptView(
        id=given.id,
        name=given.name,
        names=list(given.names),
        types=list(given.types),
        definitions=list(given.definitions),
        relations=[
            schemas_kb.ConceptRelation(
                subject=edge.subject,
                subject_name=edge.subject_name,
                predicate=edge.predicate,
                object=edge.object,
                object_name=edge.object_name,
            )
            for edge in edges
        ],
    )
