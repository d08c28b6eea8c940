"""Extraction by a language model, under a schema (KAG-Thinker App. 14, Tables 16 and 17).

One call per unit: entities first, then relations between them, then the others. The reply is
constrained to the unit's grammar where the engine can, validated, and anchored in the text.

Departures, with their reasons in docs/papers/kag-thinker.md: entries are lists with bounds, keys
are lower case, ends of relations are chosen from the entities that were found. Items that do not
occur in the text are dropped, and counted by reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from pydantic import BaseModel

from osler.errors import MalformedOutput
from osler.extract import (
    ExtractionCost,
    ExtractionOutcome,
    estimate_tokens,
    hash_texts,
    reply_format,
)
from osler.extract.anchor import Anchors
from osler.extract.items import (
    TWICE,
    UNANCHORED,
    UNITS,
    ChunkSummary,
    Entity,
    EntityRelation,
    ItemCollector,
    KnowledgePoint,
    OutlineHeading,
    Schema,
    TextTable,
    Unit,
    medicine_schema,
)
from osler.extract.reply_format import (
    Entities,
    OutlineReply,
    Points,
    Relations,
    SummaryWire,
    Tables,
)
from osler.graph.derive import normalize_name
from osler.llm.core.ask import ask
from osler.llm.core.base import Completion, LanguageModel, Message, Sampling
from osler.prompts import RenderedPrompt, load_prompt, render_prompt
from osler.trace import Run
from osler.types import Language, Passage

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
            sieve.drop(TWICE)
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
            sieve.drop(TWICE)
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


VERSION: Final = 2
"""Increased when equal replies would give other items."""
DEFAULT: tuple[Unit, ...] = ("entities", "relations", "points")
"""The paper's units; tables, outline and summary are opt-in."""
# Reply tokens per token of text: a guess, replaced by the mean of finished chunks.
_WRITTEN: dict[Unit, float] = {
    "entities": 1.5,
    "relations": 0.7,
    "points": 1.0,
    "tables": 0.5,
    "outline": 0.2,
    "summary": 0.3,
}

W = TypeVar("W", bound=BaseModel)


@dataclass(frozen=True)
class ModelExtractor:
    """Asks `model` for the `wanted` units of each chunk."""

    model: LanguageModel
    schema: Schema = field(default_factory=medicine_schema)
    wanted: tuple[Unit, ...] = DEFAULT
    constrains: bool = True
    """Whether the engine takes a grammar."""
    sampling: Sampling = field(
        default_factory=lambda: Sampling(temperature=0.0, max_tokens=1000, top=0)
    )

    @property
    def name(self) -> str:
        return f"model {self.model.name}"

    @property
    def batch(self) -> int:
        return 1

    @property
    def asked_units(self) -> tuple[Unit, ...]:
        """The units asked for, in the order of the calls; relations need entities."""
        # Relations need entities, even when those were not asked for.
        wanted = {*self.wanted, *(["entities"] if "relations" in self.wanted else [])}
        return tuple(unit for unit in UNITS if unit in wanted)  # type: ignore[misc]

    def result_key(self, passage: Passage) -> str:
        prompts = (
            load_prompt(f"extract/{unit}", passage.language).identity for unit in self.asked_units
        )
        # The grammar follows from schema and chunk, which are hashed themselves.
        sampling = replace(self.sampling, grammar=None)
        held = str(self.constrains)
        how = (str(VERSION), self.name, self.schema.identity, repr(sampling), held)
        return hash_texts(*how, *prompts, passage.title, passage.text)

    def estimate_cost(self, passage: Passage) -> ExtractionCost:
        """The estimated cost of the calls, as if every chunk had entities."""
        text, total = estimate_tokens(passage.text), ExtractionCost()
        for unit in self.asked_units:
            wording = estimate_tokens(self._render_prompt(unit, passage, ()).text)
            written = min(self.sampling.max_tokens, round(text * _WRITTEN[unit]) + 10)
            total += ExtractionCost(1, wording, written)
        return total

    async def extract(self, passages: Sequence[Passage]) -> list[ExtractionOutcome]:
        return list(await asyncio.gather(*map(self._extract_one, passages)))

    async def _extract_one(self, passage: Passage) -> ExtractionOutcome:
        run, sieve = Run(), ItemCollector()
        try:
            await self._read_units(passage, sieve, run)
        except MalformedOutput as error:
            return ExtractionOutcome(usage=run.usage, failed=error.message)
        return ExtractionOutcome(sieve.collected_items(), run.usage)

    async def _read_units(self, passage: Passage, sieve: ItemCollector, run: Run) -> None:
        at, schema, known = Anchors(passage.text), self.schema, list[Entity]()
        among = reply_format.copy_choices(passage.text, passage.language)

        async def ask_for(form: type[W]) -> W:
            return await self._ask_unit(form, unit, passage, among, sieve, run)

        for unit in self.asked_units:
            if not _can_give(unit, among, known):  # saves the call
                continue
            match unit:
                case "entities":
                    reply = await ask_for(reply_format.Entities)
                    keep_entities(reply, at, schema, sieve)
                    known = [item for item in sieve.items if isinstance(item, Entity)]
                    among = replace(among, names=tuple(entity.name for entity in known))
                case "relations":
                    related = await ask_for(reply_format.Relations)
                    keep_relations(related, at, schema, known, sieve)
                case "points":
                    stated = await ask_for(reply_format.Points)
                    keep_points(stated, at, schema, sieve)
                case "tables":
                    ruled = await ask_for(reply_format.Tables)
                    keep_tables(ruled, at, sieve)
                case "outline":
                    parted = await ask_for(reply_format.OutlineReply)
                    keep_outline(parted, at, sieve)
                case "summary":
                    short = await ask_for(reply_format.SummaryWire)
                    keep_summary(short, at, sieve)

    async def _ask_unit(
        self,
        form: type[W],
        unit: Unit,
        passage: Passage,
        among: reply_format.CopyChoices,
        sieve: ItemCollector,
        run: Run,
    ) -> W:
        prompt = self._render_prompt(unit, passage, among.names)
        held = reply_format.unit_grammar(unit, self.schema, among) if self.constrains else None

        def parse(reply: Completion) -> W:
            value, cut = reply_format.read_reply(form, reply)
            sieve.cut += cut
            return value

        return await ask(
            self.model,
            [Message("user", prompt.text)],
            parse,
            replace(self.sampling, grammar=held),
            run,
            role="extractor",
            prompt=prompt.identity,
        )

    def _render_prompt(
        self, unit: Unit, passage: Passage, names: tuple[str, ...]
    ) -> RenderedPrompt:
        language: Language = passage.language
        text, title, schema = passage.text, passage.title, self.schema
        name = f"extract/{unit}"
        match unit:
            case "entities":
                types = [kind.describe_in(language) for kind in schema.entity]
                return render_prompt(name, language, types=types, text=text)
            case "relations":
                predicates = list(schema.predicates)
                return render_prompt(
                    name, language, entities=list(names), predicates=predicates, text=text
                )
            case "points":
                kinds = [kind.describe_in(language) for kind in schema.knowledge]
                return render_prompt(name, language, kinds=kinds, title=title, text=text)
            case "tables":
                return render_prompt(name, language, text=text)
            case "outline" | "summary":
                return render_prompt(name, language, title=title, text=text)


def _can_give(unit: Unit, among: reply_format.CopyChoices, known: Sequence[Entity]) -> bool:
    """Whether the chunk has the material from which the unit is made."""
    match unit:
        case "entities" | "points" | "summary":
            return bool(among.phrases)
        case "outline":
            return bool(among.phrases and among.openings)
        case "relations":
            return len(known) > 1
        case "tables":
            return bool(among.cells)
