"""Extraction for small models: names and types alone, sentence by sentence, instead of Table 16.

A model of a few hundred million parameters ends one free list after one entry, or repeats that
entry to the limit, and invents domains and synonyms. Here the grammar has one list per sentence,
restricted to that sentence's phrases, so that the model visits every sentence and cannot repeat
itself for long. Relations connect two different names by a predicate of a fixed list (`patterns`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from osler.extract import patterns
from osler.extract.anchor import copyable_phrases
from osler.extract.reply_format import Entities, EntityWire, Name, Relations, Wire
from osler.extract.schema import Schema
from osler.llm.core.grammar import (
    Grammar,
    Node,
    alt,
    free_text,
    lit,
    maybe,
    named_rule,
    repeat,
    seq,
)
from osler.llm.core.grammar.choice import one_of
from osler.text import one_line, split_sentences
from osler.types import Language, Passage

_FREE = seq('"', free_text(80, without='"\\'), '"')
# Entities of one sentence.
_MOST = 4


_RELATIONS = 8


class NamedWire(Wire):
    name: Name
    type: Name


class Sentences(Wire):
    """A list for each sentence."""

    entities: tuple[Annotated[tuple[NamedWire, ...], Field(max_length=16)], ...]

    def to_entities(self) -> Entities:
        """The same entities in the long form of `reply_format`."""
        each = (one for held in self.entities for one in held)
        return Entities.model_construct(
            entities=tuple(
                EntityWire(
                    name=one.name, type=one.type, domain="", explain="", standard="", synonyms=()
                )
                for one in each
            )
        )


def name_sentences(passage: Passage) -> list[str]:
    """The sentences that may contain a name, each on one line."""
    text = passage.text
    every = (text[start:end] for start, end in split_sentences(text))
    return [one_line(said) for said in every if copyable_phrases(said, passage.language)]


def names_grammar(schema: Schema, passage: Passage, *, copies: bool = True) -> Grammar:
    """The format for `name_sentences`; with `copies`, names are restricted to their phrases."""
    said = name_sentences(passage)
    types = named_rule("type", alt(*map(_json_node, schema.types)))
    each = [
        _list_node(copyable_phrases(one, passage.language) if copies else (), types) for one in said
    ]
    commas = [part for one in each for part in (lit(","), one)][1:]
    root = seq('{"entities":[', *commas, "]}")
    form = json.dumps(Sentences.model_json_schema())
    return Grammar(f"extract/names {schema.identity}", root, form)


def relations_grammar(schema: Schema, passage: Passage, names: Sequence[str]) -> Grammar:
    """The format of relations: two different names, a listed predicate, and a constraint copied
    from the text or empty."""
    predicates = named_rule(
        "predicate", alt(*map(_json_node, fill_predicates(schema, passage.language).predicates))
    )
    said = copyable_phrases(passage.text, passage.language)
    constraint = named_rule("constraint", one_of(map(_json_text, ("", *said))))
    distinct = tuple(dict.fromkeys(names))
    arms = [
        seq(
            *('{"subject":', _json_node(one), ',"predicate":', predicates, ',"object":'),
            alt(*(_json_node(other) for other in distinct if other != one)),
            *(',"constraint":', constraint, "}"),
        )
        for one in distinct
    ]
    entry = named_rule("relation", alt(*arms))
    root = seq('{"relations":[', maybe(entry, repeat(seq(",", entry), 0, _RELATIONS - 1)), "]}")
    form = json.dumps(Relations.model_json_schema())
    return Grammar(f"extract/relations brief {schema.identity}", root, form)


def fill_predicates(schema: Schema, language: Language) -> Schema:
    """The schema with the predicates of `patterns` where it leaves them free."""
    free_ = {"predicates": patterns.PREDICATES[language]}
    return schema if schema.predicates else schema.model_copy(update=free_)


def _list_node(phrases: Sequence[str], types: Node) -> Node:
    name: Node = named_rule("name", _FREE)
    if phrases:
        written = sorted(map(_json_text, phrases))
        digest = hashlib.sha256("\n".join(written).encode()).hexdigest()[:8]
        name = named_rule(f"one-{digest}", one_of(written))
    entry = seq('{"name":', name, ',"type":', types, "}")
    return seq("[", maybe(entry, repeat(seq(",", entry), 0, _MOST - 1)), "]")


def _json_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _json_node(text: str) -> Node:
    return lit(_json_text(text))
