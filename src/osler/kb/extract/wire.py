"""What a model writes of a chunk: the JSON of each unit, its grammar, and how it is read.

The keys are the paper's (Tables 16 and 17) in lower case. Every text and list has a bound,
so that a small model under the grammar stops. What was cut at the token limit is read as
far as it goes: whole entries are kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic import ValidationError as Invalid
from pydantic_core import from_json

from osler.errors import MalformedOutput
from osler.kb.extract.items import Unit
from osler.kb.extract.schema import Schema
from osler.llm.base import Completion
from osler.llm.grammar import Grammar, from_schema
from osler.text import one_line


def _lines(value: object) -> object:
    return one_line(value) if isinstance(value, str) else value


_Line = BeforeValidator(_lines)
Name = Annotated[str, _Line, StringConstraints(min_length=1, max_length=80)]
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
    predicate: Annotated[str, _Line, StringConstraints(min_length=1, max_length=40)]
    object: Name
    constraint: Short


class Relations(_Wire):
    relations: Annotated[tuple[RelationWire, ...], Field(max_length=12)]


class PointWire(_Wire):
    name: Name
    type: Name
    content: Annotated[str, _Line, StringConstraints(min_length=1, max_length=300)]
    structured: Short
    domain: Short
    core: Annotated[tuple[Name, ...], Field(min_length=1, max_length=5)]
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


class Outline(_Wire):
    parts: Annotated[tuple[PartWire, ...], Field(max_length=6)]


class SummaryWire(_Wire):
    about: Annotated[tuple[Name, ...], Field(min_length=1, max_length=4)]
    text: Annotated[str, _Line, StringConstraints(min_length=1, max_length=300)]


W = TypeVar("W", bound=BaseModel)

WIRES: Mapping[Unit, type[BaseModel]] = {
    "entities": Entities,
    "relations": Relations,
    "points": Points,
    "tables": Tables,
    "outline": Outline,
    "summary": SummaryWire,
}


def grammar(unit: Unit, schema: Schema, names: Sequence[str] = ()) -> Grammar:
    """The format of a unit's reply under a schema.

    `names`: the entities between which relations may stand; they are the only subjects
    and objects that the grammar allows.
    """
    found: dict[str, Any] = json.loads(_bare(unit))
    defs = found.get("$defs", {})
    match unit:
        case "entities":
            _choose(defs["EntityWire"], "type", schema.types)
        case "points":
            _choose(defs["PointWire"], "type", [kind.name for kind in schema.knowledge])
        case "relations":
            _choose(defs["RelationWire"], "subject", names)
            _choose(defs["RelationWire"], "object", names)
            _choose(defs["RelationWire"], "predicate", schema.predicates)
        case "tables" | "outline" | "summary":
            pass
    return from_schema(found, name=f"extract/{unit} {schema.identity}")


@cache
def _bare(unit: Unit) -> str:
    return json.dumps(WIRES[unit].model_json_schema())


def _choose(model: dict[str, Any], key: str, values: Sequence[str]) -> None:
    """Holds a text to some values, where there are any."""
    if values:
        model["properties"][key] = {"type": "string", "enum": list(values)}


def read(wire: type[W], reply: Completion) -> tuple[W, bool]:
    """The value of a reply, and whether it was cut short.

    Raises `MalformedOutput` for what is no JSON of this form, unless it was cut: then the
    whole entries before the cut are what is read.
    """
    text = _unfenced(reply.text)
    try:
        return wire.model_validate_json(text), False
    except Invalid as error:
        if reply.finish != "length":
            raise _malformed(wire, reply, error) from error
        return _salvaged(wire, reply, text, error), True


def _salvaged(wire: type[W], reply: Completion, text: str, error: Invalid) -> W:
    try:
        held = from_json(text, allow_partial=True)
    except ValueError as broken:
        raise _malformed(wire, reply, error) from broken
    field, *others = wire.model_fields
    if others or not isinstance(held, dict) or not isinstance(held.get(field, []), list):
        raise _malformed(wire, reply, error) from error
    entries = held.get(field, [])
    for kept in (entries, entries[:-1]):  # the last one may be half there
        try:
            return wire.model_validate({field: kept})
        except Invalid:
            continue
    raise _malformed(wire, reply, error) from error


def _malformed(wire: type[BaseModel], reply: Completion, error: Invalid) -> MalformedOutput:
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    what = f"{first['msg']} at {place}" if place else str(first["msg"])
    return MalformedOutput(reply.text, expected=f"JSON of {wire.__name__}: {what}")


def _unfenced(text: str) -> str:
    """Without the fence in which a model that is not held to the format puts its JSON."""
    inner = text.strip()
    if inner.startswith("```"):
        inner = inner.partition("\n")[2].removesuffix("```")
    return inner.strip()
