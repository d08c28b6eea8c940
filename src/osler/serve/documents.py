"""Values of the library as the API tells them."""

from __future__ import annotations

from dataclasses import asdict

from osler import types
from osler.graph.items import Concept, Edge
from osler.kb.check import Provenance, SourceInfo
from osler.methods.omni.dossier import Dossier
from osler.serve import schemas, schemas_kb
from osler.serve.load_run import Told


def passage(given: types.Passage) -> schemas_kb.Passage:
    return schemas_kb.Passage(
        id=given.id,
        source=given.source,
        title=given.title,
        text=given.text,
        locator=schemas_kb.Locator(**asdict(given.locator)),
        licence=given.licence,
        language=given.language,
        illustrative=given.illustrative,
    )


def provenance(given: Provenance) -> schemas_kb.Provenance:
    told = asdict(given) | {"kinds": list(given.kinds)}
    del told["state"]
    # The path of a file is this machine's affair; its name says enough.
    told["origin"] = given.origin.rpartition("/")[2] if "://" not in given.origin else given.origin
    return schemas_kb.Provenance(**told)


def hit(given: types.Hit) -> schemas_kb.SearchHit:
    return schemas_kb.SearchHit(rank=given.rank, score=given.score, passage=passage(given.passage))


def answer(given: types.Answer) -> schemas.Answer:
    return schemas.Answer(
        text=given.text,
        option=given.option,
        statements=[schemas.Statement(text=s.text, cites=list(s.cites)) for s in given.statements],
        citations=[citation(given, one) for one in given.citations],
        language=given.language,
        authorship=given.authorship.value,
        note=given.note,
    )


def citation(given: types.Answer, one: types.Citation) -> schemas.Citation:
    found = given.evidence[one.number - 1]
    return schemas.Citation(
        span=(one.start, one.end),
        number=one.number,
        passage_id=found.passage.id,
        quote=found.quote,
        quote_span=(found.start, found.end),
    )


def evidence(given: types.Answer) -> list[schemas.Evidence]:
    return [
        schemas.Evidence(
            number=number,
            passage=passage(one.passage),
            quote=one.quote,
            quote_span=(one.start, one.end),
            use=one.use,
            query=one.hit.query,
            rank=one.hit.rank,
        )
        for number, one in enumerate(given.evidence, 1)
    ]


def quoted(given: types.Evidence) -> schemas.Quoted:
    return schemas.Quoted(
        passage=passage(given.passage),
        quote=given.quote,
        quote_span=(given.start, given.end),
    )


def cautions(given: types.Answer) -> list[schemas.Caution]:
    return [
        schemas.Caution(
            rule=one.rule,
            text=one.text,
            evidence=[quoted(each) for each in one.evidence],
        )
        for one in given.cautions
    ]


def run(told: Told) -> schemas.RunTold:
    solution, question = told.solution, told.question
    given = solution.answer if solution else None
    return schemas.RunTold(
        run_id=told.id,
        status=told.status,
        created=told.created,
        strategy=told.strategy,
        question=question.text if question else "",
        options=list(question.options) if question else [],
        answer=answer(given) if given else None,
        evidence=evidence(given) if given else [],
        cautions=cautions(given) if given else [],
        grounding=given.grounding.value if given else None,
        halt=solution.halt.value if solution else None,
        why=solution.why if solution else "",
        usage=schemas.Usage(**asdict(solution.usage)) if solution else None,
        models=told.models,
        snapshot=told.snapshot,
        seconds=told.seconds,
        events=len(told.lines),
        error=schemas.RunError(code=told.code, detail=told.detail) if told.code else None,
    )


def plan(given: Dossier, question: types.Question) -> schemas.PlanMade:
    return schemas.PlanMade(
        question=question.text,
        queries=[
            schemas.PlannedQuery(source=query.source, query=query.wire)
            for query in given.reading.plan.queries
        ],
        sources=list(given.sources),
        text=given.plan,
        dropped=list(given.dropped),
        planner=given.planner,
        snapshot=given.snapshot,
    )


def source(given: SourceInfo) -> schemas_kb.Source:
    return schemas_kb.Source(
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


def concept(given: Concept, edges: list[Edge]) -> schemas_kb.Concept:
    return schemas_kb.Concept(
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
