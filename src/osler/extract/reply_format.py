"""What a model writes of a chunk: the JSON of each unit, its grammar, and how it is read.

The keys are the paper's (Tables 16 and 17) in lower case. Every text and list has a bound,
so that a small model under the grammar stops, and names are chosen from the chunk's own
phrases. Whatever the grammar lets through is read: an entry that says nothing is left to
`anchored`. What was cut at the token limit is read as far as it goes: whole entries are kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic import ValidationError as Invalid
from pydantic_core import from_json

from osler.errors import MalformedOutput
from osler.extract import copied
from osler.extract.items import Unit
from osler.extract.schema import Schema
from osler.llm.core.base import Completion
from osler.llm.core.grammar import Grammar, from_schema
from osler.text import one_line
from osler.types import Language


def _join_lines(value: object) -> object:
    return one_line(value) if isinstance(value, str) else value


_Line = BeforeValidator(_join_lines)
_FILLED = Field(json_schema_extra={"minLength": 1})
"""Asked for as not empty; a text of spaces is one to the grammar, and is read as empty."""
_SOME = Field(json_schema_extra={"minItems": 1})
Name = Annotated[str, _Line, StringConstraints(max_length=80), _FILLED]
Short = Annotated[str, _Line, StringConstraints(max_length=80)]
Text = Annotated[str, _Line, StringConstraints(max_length=300)]
Cell = Annotated[str, _Line, StringConstraints(max_length=60)]


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True)


class EntityWire(_Wire):
    name: Name
    type: Name
    domain: Short
    explain: Annotated[str, _Line, StringConstraints(max_length=120)]
    standard: Short
    synonyms: Annotated[tuple[Cell, ...], Field(max_length=3)]


class Entities(_Wire):
    entities: Annotated[tuple[EntityWire, ...], Field(max_length=16)]


class RelationWire(_Wire):
    subject: Name
    predicate: Annotated[str, _Line, StringConstraints(max_length=40), _FILLED]
    object: Name
    constraint: Short


class Relations(_Wire):
    relations: Annotated[tuple[RelationWire, ...], Field(max_length=12)]


class PointWire(_Wire):
    name: Name
    type: Name
    content: Annotated[str, _Line, StringConstraints(max_length=300), _FILLED]
    structured: Short
    domain: Short
    core: Annotated[tuple[Name, ...], Field(max_length=5), _SOME]
    questions: Annotated[tuple[Short, ...], Field(max_length=3)]
    extended: Annotated[tuple[Short, ...], Field(max_length=3)]


class Points(_Wire):
    points: Annotated[tuple[PointWire, ...], Field(max_length=4)]


class TableWire(_Wire):
    title: Short
    header: Annotated[tuple[Cell, ...], Field(max_length=8)]
    rows: Annotated[
        tuple[Annotated[tuple[Cell, ...], Field(max_length=8)], ...], Field(max_length=16)
    ]


class Tables(_Wire):
    tables: Annotated[tuple[TableWire, ...], Field(max_length=2)]


class PartWire(_Wire):
    title: Short
    begins: Name


class OutlineReply(_Wire):
    parts: Annotated[tuple[PartWire, ...], Field(max_length=6)]


class SummaryWire(_Wire):
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
    """What a chunk leaves to choose from. Empty: anything may be written."""

    phrases: tuple[str, ...] = ()
    """Of names, core entities and what a summary is about."""
    openings: tuple[str, ...] = ()
    """Of where the parts of an outline begin."""
    cells: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """The entities between which relations may stand."""


def copy_choices(text: str, language: Language, names: Sequence[str] = ()) -> CopyChoices:
    """All that the text has to copy."""
    found = copied.copyable_phrases(text, language)
    return CopyChoices(
        found, copied.sentence_openings(text), copied.table_cells(text), tuple(names)
    )


def unit_grammar(unit: Unit, schema: Schema, among: CopyChoices) -> Grammar:
    """The format of a unit's reply under a schema, for one chunk.

    A server that takes a JSON schema alone is given the schema's types and the ends of
    relations; the chunk's own phrases, which may be a thousand, hold in the grammar only.
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
    """The schema with names held to the chunk's own."""
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
    """Holds a text to some values, where there are any."""
    if values:
        model["properties"][key] = {"type": "string", "enum": list(values)}


def _choose_each(model: dict[str, Any], key: str, values: Sequence[str]) -> None:
    """Holds the entries of a list of texts to some values, where there are any."""
    if values:
        held = model.get("properties", model)[key]
        held["items"] = {"type": "string", "enum": list(values)}


def read_reply(wire: type[W], reply: Completion) -> tuple[W, bool]:
    """The value of a reply, and whether it was cut short.

    Raises `MalformedOutput` for what is no JSON of this form, unless it was cut: then the
    whole entries before the cut are what is read, and of a summary its whole sentences.
    """
    text = _strip_fence(reply.text)
    try:
        return wire.model_validate_json(text), False
    except Invalid as error:
        if reply.finish != "length":
            raise _malformed_reply(wire, reply, error) from error
        return _salvage_reply(wire, reply, text, error), True


def _salvage_reply(wire: type[W], reply: Completion, text: str, error: Invalid) -> W:
    try:
        held = from_json(text, allow_partial="trailing-strings") if text else {}
    except ValueError as broken:
        raise _malformed_reply(wire, reply, error) from broken
    if not isinstance(held, dict):
        raise _malformed_reply(wire, reply, error) from error
    for kept in _whole_parts(wire, held):
        try:
            return wire.model_validate(kept)
        except Invalid:
            continue
    raise _malformed_reply(wire, reply, error) from error


def _whole_parts(wire: type[BaseModel], held: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What may be whole of a value that was cut, the most first."""
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


def _strip_fence(text: str) -> str:
    """Without the fence in which a model that is not held to the format puts its JSON."""
    inner = text.strip()
    if inner.startswith("```"):
        inner = inner.partition("\n")[2].removesuffix("```")
    return inner.strip()
