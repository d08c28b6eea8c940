"""From what a model wrote to items that stand in the text; what does not is counted."""

from __future__ import annotations

from collections.abc import Sequence

from osler.extract.anchor import Anchors
from osler.extract.items import UNANCHORED, Entity, Heading, Point, Relation, Sieve, Summary, Table
from osler.extract.reply_format import Entities, Outline, Points, Relations, SummaryWire, Tables
from osler.extract.schema import Schema
from osler.graph.normal import normal

NO_TYPE = "type not in the schema"
NO_PREDICATE = "predicate not in the schema"
NO_ENTITY = "end that is no entity"
ITSELF = "relation of a thing with itself"
NO_CORE = "point without a core entity in the text"
NO_CELL = "table with a cell that is not in the text"
NOTHING = "entry without its text"
NO_ABOUT = "summary that names nothing of the text"


def entities(reply: Entities, at: Anchors, schema: Schema, sieve: Sieve) -> None:
    """Each name once, as it stands in the text at its first place."""
    types, seen = {name.casefold(): name for name in schema.types}, set[str]()
    for said in reply.entities:
        span, type_ = at.first(said.name), types.get(said.type.casefold())
        if span is None:
            sieve.drop(UNANCHORED)
        elif type_ is None:
            sieve.drop(NO_TYPE)
        elif (norm := normal(said.name)) in seen:
            sieve.drop("said twice")
        else:
            seen.add(norm)
            name = at.text[slice(*span)]
            other = {norm, ""}
            standard = "" if normal(said.standard) in other else said.standard
            known = dict.fromkeys(word for word in said.synonyms if normal(word) not in other)
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


def relations(
    reply: Relations, at: Anchors, schema: Schema, known: Sequence[Entity], sieve: Sieve
) -> None:
    """Both ends name an entity that was found, or hold one and stand in the text themselves."""
    names = {normal(entity.name): entity.name for entity in known}
    allowed = {normal(predicate): predicate for predicate in schema.predicates}
    seen: set[tuple[str, str, str]] = set()
    for said in reply.relations:
        subject, object_ = (_end(said_, names, at) for said_ in (said.subject, said.object))
        predicate = allowed.get(normal(said.predicate)) if allowed else said.predicate
        if not subject or not object_:
            sieve.drop(UNANCHORED if None in (subject, object_) else NO_ENTITY)
        elif not predicate:
            sieve.drop(NO_PREDICATE if said.predicate else NOTHING)
        elif normal(subject) == normal(object_):
            sieve.drop(ITSELF)
        elif (mark := (normal(subject), normal(predicate), normal(object_))) in seen:
            sieve.drop("said twice")
        elif (span := at.around([subject, object_])) is not None:
            seen.add(mark)
            sieve.add(Relation(subject, predicate, object_, *span, constraint=said.constraint))


def _end(said: str, names: dict[str, str], at: Anchors) -> str | None:
    """The end as it stands in the text; "" for one that holds no entity, `None` for none."""
    if (norm := normal(said)) in names:
        return names[norm]
    span = at.first(said)
    if span is None:
        return None
    text = at.text[slice(*span)]
    inside = Anchors(text)
    return text if any(inside.first(name) for name in names.values()) else ""


def points(reply: Points, at: Anchors, schema: Schema, sieve: Sieve) -> None:
    """Core entities that are not in the text go; a point without any goes whole."""
    types = {kind.name.casefold(): kind.name for kind in schema.knowledge}
    for said in reply.points:
        type_ = types.get(said.type.casefold().removesuffix(" knowledge"))
        core = _standing(said.core, at, sieve)
        span = at.around(core) if core else None
        if type_ is None:
            sieve.drop(NO_TYPE)
        elif span is None:
            sieve.drop(NO_CORE)
        elif not said.content or not said.name:
            sieve.drop(NOTHING)
        else:
            sieve.add(
                Point(
                    said.name,
                    type_,
                    said.content,
                    *span,
                    structured=said.structured,
                    ontology=said.domain,
                    entities=core,
                    questions=_some(said.questions),
                    extended=_some(said.extended),
                )
            )


def tables(reply: Tables, at: Anchors, sieve: Sieve) -> None:
    """A table with a filled cell that does not stand in the text goes whole."""
    for said in reply.tables:
        cells = [cell for row in (said.header, *said.rows) for cell in row if cell]
        # A cell of signs alone ("+", "–") stands there or not, letter by letter.
        if not cells or any(at.first(cell) is None and cell not in at.text for cell in cells):
            sieve.drop(NO_CELL)
            continue
        spans = [span for cell in cells for span in at.all(cell)[:1]]
        start = min((start for start, _ in spans), default=0)
        end = max((end for _, end in spans), default=len(at.text))
        sieve.add(Table(said.title, said.header, said.rows, start, end))


def outline(reply: Outline, at: Anchors, sieve: Sieve) -> None:
    for said in reply.parts:
        span = at.first(said.begins)
        if span is None:
            sieve.drop(UNANCHORED)
        elif not said.title:
            sieve.drop(NOTHING)
        else:
            sieve.add(Heading(said.title, *span))


def summary(reply: SummaryWire, at: Anchors, sieve: Sieve) -> None:
    about = _standing(reply.about, at, sieve)
    if not reply.text:
        sieve.drop(NOTHING)
    elif span := at.around(about) if about else None:
        sieve.add(Summary(reply.text, about, *span))
    else:
        sieve.drop(NO_ABOUT)


def _standing(names: Sequence[str], at: Anchors, sieve: Sieve) -> tuple[str, ...]:
    """Those that stand in the text, as they stand there, none twice; others are counted."""
    found: dict[str, str] = {}
    for name in names:
        span = at.first(name)
        if span is None:
            sieve.drop(UNANCHORED)
        else:
            found.setdefault(normal(name), at.text[slice(*span)])
    return tuple(found.values())


def _some(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, texts)))
