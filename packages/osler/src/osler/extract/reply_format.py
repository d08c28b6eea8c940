"""The JSON that a model writes for each unit: its schema, its grammar and its parser.

The keys are the paper's (Tables 16 and 17) in lower case. Every text and list is bounded, so that
a small model under the grammar stops, and names are chosen from the chunk's own phrases. The
parser accepts whatever the grammar allows; `model` drops empty entries. Of a reply cut at the
token limit the complete entries are kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic import ValidationError as Invalid
from pydantic_core import from_json

from osler.errors import MalformedOutput
from osler.extract.anchor import copyable_phrases, sentence_openings, table_cells
from osler.extract.items import Schema, Unit
from osler.llm.core.base import Completion
from osler.llm.core.grammar import Grammar
from osler.llm.core.grammar.schema import from_schema
from osler.llm.reading.json_replies import json_values
from osler.text import one_line
from osler.types import Language


def _join_lines(value: object) -> object:
    return one_line(value) if isinstance(value, str) else value


_Line = BeforeValidator(_join_lines)
# Not empty by the schema; a text of spaces satisfies the grammar and is read as empty.
_FILLED = Field(json_schema_extra={"minLength": 1})
_SOME = Field(json_schema_extra={"minItems": 1})
Name = Annotated[str, _Line, StringConstraints(max_length=80), _FILLED]
Short = Annotated[str, _Line, StringConstraints(max_length=80)]
Cell = Annotated[str, _Line, StringConstraints(max_length=60)]


class Wire(BaseModel):
    model_config = ConfigDict(frozen=True)


class EntityWire(Wire):
    name: Name
    type: Name
    domain: Short
    explain: Annotated[str, _Line, StringConstraints(max_length=120)]
    standard: Short
    synonyms: Annotated[tuple[Cell, ...], Field(max_length=3)]


class Entities(Wire):
    entities: Annotated[tuple[EntityWire, ...], Field(max_length=16)]


class RelationWire(Wire):
    subject: Name
    predicate: Annotated[str, _Line, StringConstraints(max_length=40), _FILLED]
    object: Name
    constraint: Short


class Relations(Wire):
    relations: Annotated[tuple[RelationWire, ...], Field(max_length=12)]


class PointWire(Wire):
    name: Name
    type: Name
    content: Annotated[str, _Line, StringConstraints(max_length=300), _FILLED]
    structured: Short
    domain: Short
    core: Annotated[tuple[Name, ...], Field(max_length=5), _SOME]
    questions: Annotated[tuple[Short, ...], Field(max_length=3)]
    extended: Annotated[tuple[Short, ...], Field(max_length=3)]


class Points(Wire):
    points: Annotated[tuple[PointWire, ...], Field(max_length=4)]


class TableWire(Wire):
    title: Short
    header: Annotated[tuple[Cell, ...], Field(max_length=8)]
    rows: Annotated[
        tuple[Annotated[tuple[Cell, ...], Field(max_length=8)], ...], Field(max_length=16)
    ]


class Tables(Wire):
    tables: Annotated[tuple[TableWire, ...], Field(max_length=2)]


class PartWire(Wire):
    title: Short
    begins: Name


class OutlineReply(Wire):
    model_config = ConfigDict(frozen=True, title="Outline")
    # The title is part of the format sent to servers, and so of keys and tapes.

    parts: Annotated[tuple[PartWire, ...], Field(max_length=6)]


class SummaryWire(Wire):
    about: Annotated[tuple[Name, ...], Field(max_length=4), _SOME]
    text: Annotated[str, _Line, StringConstraints(max_length=300), _FILLED]


_SENTENCES = re.compile(r".*[.!?。！？]", re.DOTALL)
W = TypeVar("W", bound=BaseModel)

WIRES: Mapping[Unit, type[BaseModel]] = {
    "entities": Entities,
    "relations": Relations,
    "points": Points,
    "tables": Tables,
    "outline": OutlineReply,
    "summary": SummaryWire,
}


@dataclass(frozen=True, slots=True)
class CopyChoices:
    """The texts of a chunk that a reply may copy. Empty: anything may be written."""

    phrases: tuple[str, ...] = ()
    """Choices for names, core entities and the subjects of a summary."""
    openings: tuple[str, ...] = ()
    """Choices for the beginnings of an outline's parts."""
    cells: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """Entities that relations may connect."""


def copy_choices(text: str, language: Language) -> CopyChoices:
    """Everything that a reply may copy from the text."""
    phrases = copyable_phrases(text, language)
    return CopyChoices(phrases, sentence_openings(text), table_cells(text))


def unit_grammar(unit: Unit, schema: Schema, among: CopyChoices) -> Grammar:
    """The format of a unit's reply under a schema, for one chunk.

    A server that takes only a JSON schema gets the schema's types and the ends of relations; the
    chunk's own phrases, of which there may be a thousand, are in the grammar only.
    """
    told = _unit_schema(unit, schema, among)
    name, held = f"extract/{unit} {schema.identity}", _restrict_to_copies(unit, told, among)
    return Grammar(name, from_schema(held).root, json.dumps(told, ensure_ascii=False))


def _unit_schema(unit: Unit, schema: Schema, among: CopyChoices) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_bare_schema(unit))
    defs = found.get("$defs", {})
    match unit:
        case "entities":
            _restrict_value(defs["EntityWire"], "type", schema.types)
        case "points":
            _restrict_value(defs["PointWire"], "type", [kind.name for kind in schema.knowledge])
        case "relations":
            _restrict_value(defs["RelationWire"], "subject", among.names)
            _restrict_value(defs["RelationWire"], "object", among.names)
            _restrict_value(defs["RelationWire"], "predicate", schema.predicates)
        case "tables" | "outline" | "summary":
            pass
    return found


def _restrict_to_copies(unit: Unit, told: dict[str, Any], among: CopyChoices) -> dict[str, Any]:
    """The JSON schema with names restricted to the chunk's own phrases."""
    found: dict[str, Any] = json.loads(json.dumps(told))
    defs = found.get("$defs", {})
    match unit:
        case "entities":
            _restrict_value(defs["EntityWire"], "name", among.phrases)
        case "points":
            _choose_each(defs["PointWire"], "core", among.phrases)
        case "summary":
            _choose_each(found, "about", among.phrases)
        case "outline":
            _restrict_value(defs["PartWire"], "begins", among.openings)
        case "tables":
            _choose_each(defs["TableWire"], "header", among.cells)
            _choose_each(defs["TableWire"]["properties"]["rows"], "items", among.cells)
        case "relations":
            pass
    return found


@cache
def _bare_schema(unit: Unit) -> str:
    return json.dumps(WIRES[unit].model_json_schema())


def _restrict_value(model: dict[str, Any], key: str, values: Sequence[str]) -> None:
    """Restricts a text to `values`, if there are any."""
    if values:
        model["properties"][key] = {"type": "string", "enum": list(values)}


def _choose_each(model: dict[str, Any], key: str, values: Sequence[str]) -> None:
    """Restricts the entries of a list to `values`, if there are any."""
    if values:
        held = model.get("properties", model)[key]
        held["items"] = {"type": "string", "enum": list(values)}


def read_reply(wire: type[W], reply: Completion) -> tuple[W, bool]:
    """Parses a reply; returns its value and whether it was cut short.

    Raises `MalformedOutput` for other text than JSON of this schema, unless it was cut: then the
    complete entries before the cut are kept, and of a summary its complete sentences.
    """
    values = list(_written_values(wire, reply.text))
    for value in values[:-1]:
        with suppress(Invalid):
            return wire.model_validate_json(value), False
    try:
        return wire.model_validate_json(values[-1]), False
    except Invalid as error:
        if reply.finish != "length":
            raise _malformed_reply(wire, reply, error) from error
        return _salvage_reply(wire, reply, error), True


def _written_values(wire: type[BaseModel], text: str) -> Iterator[str]:
    """The JSON of a reply as models write it: the object, or the bare list of its only field; the
    last first. At the end the first of them again, or the text, for what is wrong with it."""
    objects = [json.dumps(value, default=list) for value in json_values(text)]
    yield from reversed(objects)
    # Inside an object a list is a field's.
    if len(wire.model_fields) == 1 and 0 <= text.find("[") < text.find("{"):
        (field,) = wire.model_fields
        is_empty = re.match(r"\[\s*\]", text[text.find("[") :])
        for value in json_values(text, "["):
            # In a list that does not close an entry's own, as of synonyms, is found instead.
            if is_empty or (value and all(isinstance(one, dict) for one in value)):
                yield json.dumps({field: value}, default=list)
    yield objects[0] if objects else text.strip()


def _salvage_reply(wire: type[W], reply: Completion, error: Invalid) -> W:
    held = _partial_object(wire, reply.text)
    if held is None:
        raise _malformed_reply(wire, reply, error) from error
    for kept in _whole_parts(wire, held):
        try:
            return wire.model_validate(kept)
        except Invalid:
            continue
    raise _malformed_reply(wire, reply, error) from error


def _partial_object(wire: type[BaseModel], text: str) -> dict[str, Any] | None:
    """The first object with a field of the schema, which may lack its end; {} of an empty text."""
    if not text.strip():
        return {}
    for brace in re.finditer(r"\{", text):
        with suppress(ValueError):
            held = from_json(text[brace.start() :], allow_partial="trailing-strings")
            if isinstance(held, dict) and held.keys() & wire.model_fields.keys():
                return held
            if held == {} and text.lstrip().startswith("{"):
                return {}  # cut before its first field
    return None


def _whole_parts(wire: type[BaseModel], held: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The complete parts of a value that was cut short."""
    if wire is SummaryWire:
        sentences = _SENTENCES.match(str(held.get("text", "")))
        yield {"about": held.get("about", []), "text": sentences[0] if sentences else ""}
        return
    (field,) = wire.model_fields
    entries = held.get(field, [])
    if isinstance(entries, list):
        yield {field: entries[:-1]}  # the last one may be half there


def _malformed_reply(wire: type[BaseModel], reply: Completion, error: Invalid) -> MalformedOutput:
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    what = f"{first['msg']} at {place}" if place else str(first["msg"])
    return MalformedOutput(reply.text, expected=f"JSON of {wire.__name__}: {what}")
