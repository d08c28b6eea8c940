"""Values of the library as the API tells them."""

from __future__ import annotations

from dataclasses import asdict

from osler import types
from osler.graph.items import Concept, Edge
from osler.kb.check import Provenance, SourceInfo
from osler.methods.omni.dossier import Dossier
from osler.serve import wire, wire_kb
from osler.serve.stored import Told


def passage(given: types.Passage) -> wire_kb.Passage:
    return wire_kb.Passage(
        id=given.id,
        source=given.source,
        title=given.title,
        text=given.text,
        locator=wire_kb.Locator(**asdict(given.locator)),
        licence=given.licence,
        language=given.language,
        illustrative=given.illustrative,
    )


def provenance(given: Provenance) -> wire_kb.Provenance:
    told = asdict(given) | {"kinds": list(given.kinds)}
    del told["state"]
    # The path of a file is this machine's affair; its name says enough.
    told["origin"] = given.origin.rpartition("/")[2] if "://" not in given.origin else given.origin
    return wire_kb.Provenance(**told)


def hit(given: types.Hit) -> wire_kb.SearchHit:
    return wire_kb.SearchHit(rank=given.rank, score=given.score, passage=passage(given.passage))


def answer(given: types.Answer) -> wire.Answer:
    return wire.Answer(
        text=given.text,
        option=given.option,
        statements=[wire.Statement(text=s.text, cites=list(s.cites)) for s in given.statements],
        citations=[citation(given, one) for one in given.citations],
        language=given.language,
        authorship=given.authorship.value,
        note=given.note,
    )


def citation(given: types.Answer, one: types.Citation) -> wire.Citation:
    found = given.evidence[one.number - 1]
    return wire.Citation(
        span=(one.start, one.end),
        number=one.number,
        passage_id=found.passage.id,
        quote=found.quote,
        quote_span=(found.start, found.end),
    )


def evidence(given: types.Answer) -> list[wire.Evidence]:
    return [
        wire.Evidence(
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


def quoted(given: types.Evidence) -> wire.Quoted:
    return wire.Quoted(
        passage=passage(given.passage),
        quote=given.quote,
        quote_span=(given.start, given.end),
    )


def cautions(given: types.Answer) -> list[wire.Caution]:
    return [
        wire.Caution(
            rule=one.rule,
            text=one.text,
            evidence=[quoted(each) for each in one.evidence],
        )
        for one in given.cautions
    ]


def run(told: Told) -> wire.RunTold:
    solution, question = told.solution, told.question
    given = solution.answer if solution else None
    return wire.RunTold(
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
        usage=wire.Usage(**asdict(solution.usage)) if solution else None,
        models=told.models,
        snapshot=told.snapshot,
        seconds=told.seconds,
        events=len(told.lines),
        error=wire.RunError(code=told.code, detail=told.detail) if told.code else None,
    )


def plan(given: Dossier, question: types.Question) -> wire.PlanMade:
    return wire.PlanMade(
        question=question.text,
        queries=[
            wire.PlannedQuery(source=query.source, query=query.wire)
            for query in given.reading.plan.queries
        ],
        sources=list(given.sources),
        text=given.plan,
        dropped=list(given.dropped),
        planner=given.planner,
        snapshot=given.snapshot,
    )


def source(given: SourceInfo) -> wire_kb.Source:
    return wire_kb.Source(
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


def concept(given: Concept, edges: list[Edge]) -> wire_kb.Concept:
    return wire_kb.Concept(
        id=given.id,
        name=given.name,
        names=list(given.names),
        types=list(given.types),
        definitions=list(given.definitions),
        relations=[
            wire_kb.ConceptRelation(
                subject=edge.subject,
                subject_name=edge.subject_name,
                predicate=edge.predicate,
                object=edge.object,
                object_name=edge.object_name,
            )
            for edge in edges
        ],
    )
