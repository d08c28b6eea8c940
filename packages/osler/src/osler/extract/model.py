"""Extraction by a language model, under a schema (KAG-Thinker App. 14, Tables 16 and 17).

One call per unit: entities first, then relations between them, then the others. The reply is
constrained to the unit's grammar where the engine can, validated, and anchored in the text.

Departures, with their reasons in docs/papers/kag-thinker.md: entries are lists with bounds, keys
are lower case, ends of relations are chosen from the entities that were found.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from pydantic import BaseModel

from osler.errors import MalformedOutput
from osler.extract import (
    ExtractionCost,
    ExtractionOutcome,
    anchored,
    estimate_tokens,
    hash_texts,
    reply_format,
)
from osler.extract.anchor import Anchors
from osler.extract.items import UNITS, Entity, ItemCollector, Unit
from osler.extract.schema import Schema, medicine_schema
from osler.llm.core.ask import ask
from osler.llm.core.base import Completion, LanguageModel, Message, Sampling
from osler.prompts import RenderedPrompt, load_prompt, render_prompt
from osler.trace import Run
from osler.types import Language, Passage

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
                    anchored.keep_entities(reply, at, schema, sieve)
                    known = [item for item in sieve.items if isinstance(item, Entity)]
                    among = replace(among, names=tuple(entity.name for entity in known))
                case "relations":
                    related = await ask_for(reply_format.Relations)
                    anchored.keep_relations(related, at, schema, known, sieve)
                case "points":
                    stated = await ask_for(reply_format.Points)
                    anchored.keep_points(stated, at, schema, sieve)
                case "tables":
                    ruled = await ask_for(reply_format.Tables)
                    anchored.keep_tables(ruled, at, sieve)
                case "outline":
                    parted = await ask_for(reply_format.OutlineReply)
                    anchored.keep_outline(parted, at, sieve)
                case "summary":
                    short = await ask_for(reply_format.SummaryWire)
                    anchored.keep_summary(short, at, sieve)

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
