"""Ontologies in OBO 1.2 and 1.4: one document a term, in Omni-RAG's wire form."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from typing import BinaryIO, cast

from osler.errors import MalformedSource
from osler.sources.formats.concept_text import Triple, concept_sections, names_line
from osler.sources.formats.reading import extension_of, lines_of, plain_head
from osler.sources.records import Document, Drop, Record
from osler.text import language_of, make_slug, one_line

_QUOTED = re.compile(r'"((?:\\.|[^"\\])*)"')
_ESCAPE = re.compile(r"\\(.)")
_WHITE = {"n": " ", "W": " ", "t": " "}
_PURL = re.compile(r"[A-Za-z][A-Za-z0-9_]*:[A-Za-z0-9_]+")
_IN_MEMORY = 16 * 2**20

Tags = dict[str, list[str]]


class Obo:
    name = "obo"

    def matches(self, name: str, head: bytes) -> bool:
        begin = plain_head(head)
        return begin.startswith((b"format-version:", b"[Term]")) or (
            extension_of(name) == ".obo" and b"id:" in begin
        )

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        """Two passes, the first for the names of parents; a large file goes through a copy."""
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as copy:
            shutil.copyfileobj(stream, copy)
            copy.seek(0)
            names = {
                _first_value(tags, "id"): _term_name(tags)
                for kind, _, tags in read_stanzas(cast("BinaryIO", copy), name)
                if kind == "Term"
            }
            copy.seek(0)
            namespace = ""
            for kind, number, tags in read_stanzas(cast("BinaryIO", copy), name):
                if not kind:
                    namespace = _first_value(tags, "default-namespace")
                elif kind == "Term":
                    yield _read_record(tags, f"{name}:{number}", names, namespace)


def read_stanzas(file: BinaryIO, name: str) -> Iterator[tuple[str, int, Tags]]:
    """Kind ("" for the header), line number of its beginning, and values by tag."""
    kind, begin, tags = "", 1, Tags()
    for number, line in enumerate(lines_of(file, name), start=1):
        text = _decode_line(line, name).strip()
        if text.startswith("[") and text.endswith("]"):
            yield kind, begin, tags
            kind, begin, tags = text[1:-1], number, Tags()
        elif ":" in text and not text.startswith("!"):
            tag, _, value = text.partition(":")
            tags.setdefault(tag, []).append(value.strip())
    yield kind, begin, tags


def _decode_line(line: bytes, name: str) -> str:
    try:
        return line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MalformedSource(
            f"{name} is not UTF-8 text", fix=f"iconv -t utf-8 {name} and add that"
        ) from error


def _read_record(tags: Tags, place: str, names: dict[str, str], namespace: str) -> Record:
    identifier, name = _first_value(tags, "id"), _term_name(tags)
    where = f"{place}: {identifier}" if identifier else place
    if not identifier:
        return Drop(where, "no id")
    if _first_value(tags, "is_obsolete") == "true":
        return Drop(where, "obsolete term")
    if not name:
        return Drop(where, "no name")
    definition = _term_definition(tags)
    sections = concept_sections(definition, _read_relations(tags, name, names))
    if not sections:
        return Drop(where, "no definition and no relation")
    synonyms = (text for value in tags.get("synonym", []) if (text := _quoted_text(value)))
    title = names_line([name, *synonyms])
    return Document(
        id=make_slug(identifier),
        title=title,
        sections=sections,
        language=language_of(definition or title),
        url=_term_url(identifier),
        code=identifier,
        kind=_first_value(tags, "namespace") or namespace,
    )


def _read_relations(tags: Tags, name: str, names: dict[str, str]) -> Iterator[Triple]:
    for value in tags.get("is_a", []):
        if parent := _name_target(value, names):
            yield name, "is_a", parent
    for value in tags.get("relationship", []):
        relation, _, target = value.partition(" ")
        if other := _name_target(target.strip(), names):
            yield name, relation, other


def _name_target(value: str, names: dict[str, str]) -> str:
    """The name of the term that `ID {modifiers} ! comment` points to; "" if nobody says it."""
    identifier = value.split(maxsplit=1)[0] if value else ""
    comment = value.partition(" ! ")[2]
    return names.get(identifier) or one_line(comment)


def _first_value(tags: Tags, tag: str) -> str:
    return one_line(tags.get(tag, [""])[0].partition(" !")[0])


def _term_name(tags: Tags) -> str:
    return one_line(_unescape_text(tags.get("name", [""])[0]))


def _term_definition(tags: Tags) -> str:
    return _quoted_text(tags.get("def", [""])[0])


def _quoted_text(value: str) -> str:
    found = _QUOTED.match(value)
    return one_line(_unescape_text(found[1])) if found else ""


def _unescape_text(text: str) -> str:
    return _ESCAPE.sub(lambda found: _WHITE.get(found[1], found[1]), text)


def _term_url(identifier: str) -> str:
    if _PURL.fullmatch(identifier) is None:
        return ""
    return f"http://purl.obolibrary.org/obo/{identifier.replace(':', '_')}"
