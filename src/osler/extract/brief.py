"""Names and types alone, sentence by sentence: what a small model is asked instead of Table 16.

A model of some hundred million parameters that may write one free list ends it after one
entry, or repeats that entry to the limit; and what it says of domains and synonyms is
invented. Here the grammar has one list for each sentence, with the phrases of that
sentence, so that the model comes by every sentence and can repeat itself in none for long.
Relations stand between two different names, with a predicate of the house's list.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from osler.extract import copied, patterns
from osler.extract.reply_format import Entities, EntityWire, Name, Relations
from osler.extract.schema import Schema
from osler.llm.core.grammar import Grammar, Node, alt, free, lit, maybe, named, repeat, seq
from osler.llm.core.grammar.choice import one_of
from osler.text import one_line, sentences
from osler.types import Language, Passage

_FREE = seq('"', free(80, without='"\\'), '"')
_MOST = 4
"""Entities of one sentence."""


_RELATIONS = 8


class NamedWire(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: Name
    type: Name


class Sentences(BaseModel):
    """A list for each sentence."""

    model_config = ConfigDict(frozen=True)

    entities: tuple[Annotated[tuple[NamedWire, ...], Field(max_length=16)], ...]

    def flat(self) -> Entities:
        """As the long form has them."""
        each = (one for held in self.entities for one in held)
        return Entities.model_construct(
            entities=tuple(
                EntityWire(
                    name=one.name, type=one.type, domain="", explain="", standard="", synonyms=()
                )
                for one in each
            )
        )


def told(passage: Passage) -> list[str]:
    """The sentences that may hold a name, each as one line."""
    text = passage.text
    every = (text[start:end] for start, end in sentences(text))
    return [one_line(said) for said in every if copied.phrases(said, passage.language)]


def grammar(schema: Schema, passage: Passage, *, copies: bool = True) -> Grammar:
    """The format for the sentences that `told` gives; names are theirs, or free."""
    said = told(passage)
    types = named("type", alt(*map(_json, schema.types)))
    each = [_list(copied.phrases(one, passage.language) if copies else (), types) for one in said]
    commas = [part for one in each for part in (lit(","), one)][1:]
    root = seq('{"entities":[', *commas, "]}")
    form = json.dumps(Sentences.model_json_schema())
    return Grammar(f"extract/names {schema.identity}", root, form)


def relations(schema: Schema, passage: Passage, names: Sequence[str]) -> Grammar:
    """The format of relations: two different names, a predicate of a list, a constraint that
    the text has or none."""
    predicates = named("predicate", alt(*map(_json, chosen(schema, passage.language).predicates)))
    said = copied.phrases(passage.text, passage.language)
    constraint = named("constraint", one_of(map(_written, ("", *said))))
    distinct = tuple(dict.fromkeys(names))
    arms = [
        seq(
            *('{"subject":', _json(one), ',"predicate":', predicates, ',"object":'),
            alt(*(_json(other) for other in distinct if other != one)),
            *(',"constraint":', constraint, "}"),
        )
        for one in distinct
    ]
    entry = named("relation", alt(*arms))
    root = seq('{"relations":[', maybe(entry, repeat(seq(",", entry), 0, _RELATIONS - 1)), "]}")
    form = json.dumps(Relations.model_json_schema())
    return Grammar(f"extract/relations brief {schema.identity}", root, form)


def chosen(schema: Schema, language: Language) -> Schema:
    """The schema with the predicates of the house (`patterns`) where it leaves them free."""
    free_ = {"predicates": patterns.PREDICATES[language]}
    return schema if schema.predicates else schema.model_copy(update=free_)


def _list(phrases: Sequence[str], types: Node) -> Node:
    name: Node = named("name", _FREE)
    if phrases:
        written = sorted(map(_written, phrases))
        digest = hashlib.sha256("\n".join(written).encode()).hexdigest()[:8]
        name = named(f"one-{digest}", one_of(written))
    entry = seq('{"name":', name, ',"type":', types, "}")
    return seq("[", maybe(entry, repeat(seq(",", entry), 0, _MOST - 1)), "]")


def _written(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _json(text: str) -> Node:
    return lit(_written(text))
