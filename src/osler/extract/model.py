"""Extraction by a language model, under a schema (KAG-Thinker App. 14, Tables 16 and 17).

One call a unit: entities first, then relations between them, then the others. The reply is
held to the unit's grammar where the engine can, validated, and anchored in the text.

Departures, with their reasons in PAPERS.md: entries are lists with bounds, keys are lower
case, ends of relations are chosen from the entities that were found.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from pydantic import BaseModel

from osler.errors import MalformedOutput
from osler.extract import anchored, brief, reply_format
from osler.extract.anchor import Anchors
from osler.extract.base import Cost, Outcome, hashed, tokens
from osler.extract.items import UNITS, Entity, Sieve, Unit
from osler.extract.schema import Schema, medicine
from osler.llm.core.ask import ask
from osler.llm.core.base import Completion, LanguageModel, Message, Sampling
from osler.llm.core.grammar import Grammar
from osler.prompts import Rendered, load, render
from osler.trace import Run
from osler.types import Language, Passage

VERSION: Final = 2
"""Raised when the same reply is read into other items."""
DEFAULT: tuple[Unit, ...] = ("entities", "relations", "points")
"""The paper's; tables, outline and summary are asked for by name."""
_PROMPTS: dict[Unit, str] = {
    "entities": "extract/entities",
    "relations": "extract/relations",
    "points": "extract/points",
    "tables": "extract/tables",
    "outline": "extract/outline",
    "summary": "extract/summary",
}
_WRITTEN: dict[Unit, float] = {
    "entities": 1.5,
    "relations": 0.7,
    "points": 1.0,
    "tables": 0.5,
    "outline": 0.2,
    "summary": 0.3,
}
"""Tokens of a reply to one token of text: a guess, until chunks that are done tell better."""

W = TypeVar("W", bound=BaseModel)


@dataclass(frozen=True)
class ModelExtractor:
    """Asks `model`; `wanted` units of each chunk."""

    model: LanguageModel
    schema: Schema = field(default_factory=medicine)
    wanted: tuple[Unit, ...] = DEFAULT
    constrains: bool = True
    """Whether the engine takes a grammar."""
    copies: bool = True
    """Whether a grammar holds names to the chunk's own phrases (`copied`)."""
    brief: bool = False
    """Whether entities are asked for by name and type alone, and relations with a
    predicate of a list (`brief`): for small models."""
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
    def asked(self) -> tuple[Unit, ...]:
        """In the order of the calls; relations need entities to stand between."""
        wanted = {*self.wanted, *(["entities"] if "relations" in self.wanted else [])}
        return tuple(unit for unit in UNITS if unit in wanted)  # type: ignore[misc]

    def key(self, passage: Passage) -> str:
        prompts = (load(self._asks(unit), passage.language).identity for unit in self.asked)
        sampling = replace(self.sampling, grammar=None)
        held = f"{self.constrains} {self.copies} {self.brief}"
        how = (str(VERSION), self.name, self.schema.identity, repr(sampling), held)
        return hashed(*how, *prompts, passage.title, passage.text)

    def cost(self, passage: Passage) -> Cost:
        """What the calls would take; relations are asked of as many chunks as have entities."""
        text, total = tokens(passage.text), Cost()
        for unit in self.asked:
            wording = tokens(self._prompt(unit, passage, ()).text)
            written = min(self.sampling.max_tokens, round(text * _WRITTEN[unit]) + 10)
            total += Cost(1, wording, written)
        return total

    async def extract(self, passages: Sequence[Passage]) -> list[Outcome]:
        return list(await asyncio.gather(*map(self._one, passages)))

    async def _one(self, passage: Passage) -> Outcome:
        run, sieve = Run(), Sieve()
        try:
            await self._read(passage, sieve, run)
        except MalformedOutput as error:
            return Outcome(usage=run.usage, failed=error.message)
        return Outcome(sieve.found(), run.usage)

    async def _read(self, passage: Passage, sieve: Sieve, run: Run) -> None:
        at, schema, known = Anchors(passage.text), self.schema, list[Entity]()
        among = reply_format.choices(passage.text, passage.language)
        for unit in self.asked:
            if not _can_give(unit, among, known):  # the call is saved
                continue
            match unit:
                case "entities":
                    said = await self._entities(passage, among, sieve, run)
                    anchored.entities(said, at, schema, sieve)
                    known = [item for item in sieve.items if isinstance(item, Entity)]
                    among = replace(among, names=tuple(entity.name for entity in known))
                case "relations":
                    related = await self._said(
                        reply_format.Relations, unit, passage, among, sieve, run
                    )
                    held = brief.chosen(schema, passage.language) if self.brief else schema
                    anchored.relations(related, at, held, known, sieve)
                case "points":
                    told = await self._said(reply_format.Points, unit, passage, among, sieve, run)
                    anchored.points(told, at, schema, sieve)
                case "tables":
                    ruled = await self._said(reply_format.Tables, unit, passage, among, sieve, run)
                    anchored.tables(ruled, at, sieve)
                case "outline":
                    parted = await self._said(
                        reply_format.Outline, unit, passage, among, sieve, run
                    )
                    anchored.outline(parted, at, sieve)
                case "summary":
                    short = await self._said(
                        reply_format.SummaryWire, unit, passage, among, sieve, run
                    )
                    anchored.summary(short, at, sieve)

    async def _entities(
        self, passage: Passage, among: reply_format.Choices, sieve: Sieve, run: Run
    ) -> reply_format.Entities:
        if not self.brief:
            return await self._said(reply_format.Entities, "entities", passage, among, sieve, run)
        named = await self._said(brief.Sentences, "entities", passage, among, sieve, run)
        return named.flat()

    def _asks(self, unit: Unit) -> str:
        """The name of the prompt."""
        return "extract/names" if self.brief and unit == "entities" else _PROMPTS[unit]

    def _format(self, unit: Unit, passage: Passage, among: reply_format.Choices) -> Grammar:
        if self.brief and unit == "entities":
            return brief.grammar(self.schema, passage, copies=self.copies)
        if self.brief and unit == "relations":
            return brief.relations(self.schema, passage, among.names)
        held = among if self.copies else reply_format.Choices(names=among.names)
        return reply_format.grammar(unit, self.schema, held)

    async def _said(
        self,
        form: type[W],
        unit: Unit,
        passage: Passage,
        among: reply_format.Choices,
        sieve: Sieve,
        run: Run,
    ) -> W:
        prompt = self._prompt(unit, passage, among.names)
        held = self._format(unit, passage, among) if self.constrains else None

        def parse(reply: Completion) -> W:
            value, cut = reply_format.read(form, reply)
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

    def _prompt(self, unit: Unit, passage: Passage, names: tuple[str, ...]) -> Rendered:
        language: Language = passage.language
        text, title, schema = passage.text, passage.title, self.schema
        name = self._asks(unit)
        if name == "extract/names":
            return render(name, language, types=list(schema.types), sentences=brief.told(passage))
        match unit:
            case "entities":
                types = [kind.told(language) for kind in schema.entity]
                return render(name, language, types=types, text=text)
            case "relations":
                free = brief.chosen(schema, language) if self.brief else schema
                predicates = list(free.predicates)
                return render(
                    name, language, entities=list(names), predicates=predicates, text=text
                )
            case "points":
                kinds = [kind.told(language) for kind in schema.knowledge]
                return render(name, language, kinds=kinds, title=title, text=text)
            case "tables":
                return render(name, language, text=text)
            case "outline" | "summary":
                return render(name, language, title=title, text=text)


def _can_give(unit: Unit, among: reply_format.Choices, known: Sequence[Entity]) -> bool:
    """Whether the chunk has what the unit is made of."""
    match unit:
        case "entities" | "points" | "summary":
            return bool(among.phrases)
        case "outline":
            return bool(among.phrases and among.openings)
        case "relations":
            return len(known) > 1
        case "tables":
            return bool(among.cells)
