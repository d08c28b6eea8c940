"""Keeps those of a model's items that occur in the text, and counts the others by reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from osler.extract.anchor import Anchors
from osler.extract.items import (
    UNANCHORED,
    ChunkSummary,
    Entity,
    EntityRelation,
    ItemCollector,
    KnowledgePoint,
    OutlineHeading,
    TextTable,
)
from osler.extract.reply_format import (
    Entities,
    OutlineReply,
    Points,
    Relations,
    SummaryWire,
    Tables,
)
from osler.extract.schema import Schema
from osler.graph.normal import normalize_name

NO_TYPE = "type not in the schema"
NO_PREDICATE = "predicate not in the schema"
NO_ENTITY = "end that is no entity"
ITSELF = "relation of a thing with itself"
NO_CORE = "point without a core entity in the text"
NO_CELL = "table with a cell that is not in the text"
NOTHING = "entry without its text"
NO_ABOUT = "summary that names nothing of the text"


def keep_entities(reply: Entities, at: Anchors, schema: Schema, sieve: ItemCollector) -> None:
    """Keeps each name once, spelt as at its first occurrence in the text."""
    types, seen = {name.casefold(): name for name in schema.types}, set[str]()
    for said in reply.entities:
        span, type_ = at.first_span(said.name), types.get(said.type.casefold())
        if span is None:
            sieve.drop(UNANCHORED)
        elif type_ is None:
            sieve.drop(NO_TYPE)
        elif (norm := normalize_name(said.name)) in seen:
            sieve.drop("said twice")
        else:
            seen.add(norm)
            name = at.text[slice(*span)]
            other = {norm, ""}
            standard = "" if normalize_name(said.standard) in other else said.standard
            known = dict.fromkeys(
                word for word in said.synonyms if normalize_name(word) not in other
            )
            sieve.add(
                Entity(
                    name,
                    type_,
                    *span,
                    ontology=said.domain,
                    explanation=said.explain,
                    standard=standard,
                    synonyms=tuple(known),
                )
            )


def keep_relations(
    reply: Relations, at: Anchors, schema: Schema, known: Sequence[Entity], sieve: ItemCollector
) -> None:
    """Keeps relations whose ends are found entities, or occur in the text and contain one."""
    names = {normalize_name(entity.name): entity.name for entity in known}
    allowed = {normalize_name(predicate): predicate for predicate in schema.predicates}
    seen: dict[tuple[str, str, str], set[str]] = {}
    for said in reply.relations:
        subject, object_ = (_anchor_end(said_, names, at) for said_ in (said.subject, said.object))
        predicate = allowed.get(normalize_name(said.predicate)) if allowed else said.predicate
        if not subject or not object_:
            sieve.drop(UNANCHORED if None in (subject, object_) else NO_ENTITY)
        elif not predicate:
            sieve.drop(NO_PREDICATE if said.predicate else NOTHING)
        elif normalize_name(subject) == normalize_name(object_):
            sieve.drop(ITSELF)
        elif _is_repeated(
            mark := (normalize_name(subject), normalize_name(predicate), normalize_name(object_)),
            normalize_name(said.constraint),
            seen,
        ):
            sieve.drop("said twice")
        elif (span := at.covering_span([subject, object_])) is not None:
            seen.setdefault(mark, set()).add(normalize_name(said.constraint))
            sieve.add(
                EntityRelation(subject, predicate, object_, *span, constraint=said.constraint)
            )


def _is_repeated(
    mark: tuple[str, str, str], constraint: str, seen: Mapping[tuple[str, str, str], set[str]]
) -> bool:
    """Whether a relation says nothing new: its constraint is part of it ("adults 500 mg" and
    "children 40 mg/kg" are two), and one without a constraint is said by one that has it."""
    return mark in seen and (not constraint or constraint in seen[mark])


def _anchor_end(said: str, names: dict[str, str], at: Anchors) -> str | None:
    """The end as spelt in the text; "" when it contains no entity, `None` when it does not
    occur."""
    if (norm := normalize_name(said)) in names:
        return names[norm]
    span = at.first_span(said)
    if span is None:
        return None
    text = at.text[slice(*span)]
    inside = Anchors(text)
    return text if any(inside.first_span(name) for name in names.values()) else ""


def keep_points(reply: Points, at: Anchors, schema: Schema, sieve: ItemCollector) -> None:
    """Keeps points with the core entities that occur in the text; a point without any is
    dropped."""
    types = {kind.name.casefold(): kind.name for kind in schema.knowledge}
    for said in reply.points:
        type_ = types.get(said.type.casefold().removesuffix(" knowledge"))
        core = _standing_names(said.core, at, sieve)
        span = at.covering_span(core) if core else None
        if type_ is None:
            sieve.drop(NO_TYPE)
        elif span is None:
            sieve.drop(NO_CORE)
        elif not said.content or not said.name:
            sieve.drop(NOTHING)
        else:
            sieve.add(
                KnowledgePoint(
                    said.name,
                    type_,
                    said.content,
                    *span,
                    structured=said.structured,
                    ontology=said.domain,
                    entities=core,
                    questions=_distinct_texts(said.questions),
                    extended=_distinct_texts(said.extended),
                )
            )


def keep_tables(reply: Tables, at: Anchors, sieve: ItemCollector) -> None:
    """Keeps tables all of whose filled cells occur in the text."""
    for said in reply.tables:
        cells = [cell for row in (said.header, *said.rows) for cell in row if cell]
        # A cell of punctuation alone ("+", "–") is no name: it is compared character by character.
        if not cells or any(at.first_span(cell) is None and cell not in at.text for cell in cells):
            sieve.drop(NO_CELL)
            continue
        spans = [span for cell in cells for span in at.all_spans(cell)[:1]]
        start = min((start for start, _ in spans), default=0)
        end = max((end for _, end in spans), default=len(at.text))
        sieve.add(TextTable(said.title, said.header, said.rows, start, end))


def keep_outline(reply: OutlineReply, at: Anchors, sieve: ItemCollector) -> None:
    for said in reply.parts:
        span = at.first_span(said.begins)
        if span is None:
            sieve.drop(UNANCHORED)
        elif not said.title:
            sieve.drop(NOTHING)
        else:
            sieve.add(OutlineHeading(said.title, *span))


def keep_summary(reply: SummaryWire, at: Anchors, sieve: ItemCollector) -> None:
    about = _standing_names(reply.about, at, sieve)
    if not reply.text:
        sieve.drop(NOTHING)
    elif span := at.covering_span(about) if about else None:
        sieve.add(ChunkSummary(reply.text, about, *span))
    else:
        sieve.drop(NO_ABOUT)


def _standing_names(names: Sequence[str], at: Anchors, sieve: ItemCollector) -> tuple[str, ...]:
    """Distinct names as spelt in the text; names that do not occur are counted as dropped."""
    found: dict[str, str] = {}
    for name in names:
        span = at.first_span(name)
        if span is None:
            sieve.drop(UNANCHORED)
        else:
            found.setdefault(normalize_name(name), at.text[slice(*span)])
    return tuple(found.values())


def _distinct_texts(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, texts)))
