"""Extraction schemas: types of entities, kinds of knowledge, predicates.

The packaged schema is the paper's (KAG-Thinker App. 13, Table 15, and Table 17). A user's own is
a TOML or JSON file of the same form; mistakes are reported when it is loaded.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from osler.errors import BadConfig, describe_invalid
from osler.text import one_line, read_packaged_table
from osler.types import Language

_FIX = "see docs/guide/extraction.md for the form of a schema"


def _check_line(text: str) -> str:
    if one_line(text) != text:
        raise ValueError("must be one line without surrounding spaces")
    return text


Name = Annotated[str, StringConstraints(min_length=1, max_length=60), AfterValidator(_check_line)]
Words = Annotated[str, StringConstraints(max_length=300), AfterValidator(_check_line)]


class DescribedType(BaseModel):
    """A type of entities, or a kind of knowledge."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    en: Words = ""
    """Its description for the model in English; empty = its name alone."""
    zh: Words = ""

    def describe_in(self, language: Language) -> str:
        """Its name and description, in `language` where available."""
        about = (self.zh or self.en) if language == "zh" else (self.en or self.zh)
        mark = "：" if language == "zh" else ": "
        return f"{self.name}{mark}{about}" if about else self.name


class Schema(BaseModel):
    """An extraction schema; immutable."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    entity: tuple[DescribedType, ...] = Field(min_length=1, max_length=100)
    knowledge: tuple[DescribedType, ...] = ()
    """Kinds of knowledge points; by default the paper's five."""
    predicates: tuple[Name, ...] = ()
    """Allowed predicates of relations; empty = any, as in the paper."""

    @model_validator(mode="after")
    def _check_distinct(self) -> Schema:
        for field in ("entity", "knowledge"):
            names = [kind.name for kind in getattr(self, field)]
            if twice := {name for name in names if names.count(name) > 1}:
                raise ValueError(f"{field}: {', '.join(sorted(twice))} occurs twice")
        if len(set(self.predicates)) < len(self.predicates):
            raise ValueError("predicates: one occurs twice")
        return self

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(kind.name for kind in self.entity)

    @property
    def identity(self) -> str:
        """Its name with a hash of its content: "medicine@1f3a9c2e"."""
        digest = hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:8]
        return f"{self.name}@{digest}"


@cache
def medicine_schema() -> Schema:
    """The paper's schema: 24 types of entities, five kinds of knowledge, free predicates."""
    return Schema.model_validate(read_packaged_table(__package__, "medicine.toml"))


def load_schema(path: Path) -> Schema:
    """The schema of a `.toml` or `.json` file.

    Raises `BadConfig` with the file, the place in it and the mistake.
    """
    try:
        found = Schema.model_validate(_read_file(path))
    except ValidationError as error:
        # Pydantic puts these words before the text of an error that a check of ours raised.
        why = describe_invalid(error).replace("Value error, ", "", 1)
        raise BadConfig(f"{path}: {why}", fix=_FIX) from error
    if found.knowledge:
        return found
    return found.model_copy(update={"knowledge": medicine_schema().knowledge})


def _read_file(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BadConfig(f"{path} cannot be read: {why}", fix=_FIX) from error
    try:
        match path.suffix.lower():
            case ".toml":
                return tomllib.loads(text)
            case ".json":
                return json.loads(text)
    except ValueError as error:
        raise BadConfig(f"{path}: {error}", fix=_FIX) from error
    raise BadConfig(f"{path} is neither .toml nor .json", fix="give the file one of these endings")
