"""Ontologies in OBO 1.2 and 1.4: their terms, and one passage document a term.

`read_terms` is the one reader of the format, for the documents here (in Omni-RAG's wire
form, §3.2) and for the concept graph (`osler.graph.formats.vocabularies`).
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO, cast

from osler.sources.formats.reading import extension_of, plain_head, utf8_lines
from osler.sources.formats.sections import Triple, concept_record
from osler.sources.records import Drop, Record
from osler.text import make_slug, one_line

_QUOTED = re.compile(r'"((?:\\.|[^"\\])*)"')
_SCOPE = re.compile(r'"\s+(EXACT|NARROW|BROAD|RELATED)')
_ESCAPE = re.compile(r"\\(.)")
_WHITE = {"n": " ", "W": " ", "t": " "}
_PURL = re.compile(r"[A-Za-z][A-Za-z0-9_]*:[A-Za-z0-9_]+")
_IN_MEMORY = 16 * 2**20

_Tags = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class OboTerm:
    """One `[Term]` stanza; its tags are parsed when they are asked for."""

    where: str
    """File and the line of the stanza: "doid.obo:17"."""
    tags: _Tags
    """Values by tag, in the order of the file."""
    default_namespace: str

    @property
    def id(self) -> str:
        return _first_value(self.tags, "id")

    @property
    def name(self) -> str:
        return one_line(_unescape_text(self.tags.get("name", [""])[0]))

    @property
    def namespace(self) -> str:
        return _first_value(self.tags, "namespace") or self.default_namespace

    @property
    def definition(self) -> str:
        return _quoted_text(self.tags.get("def", [""])[0])

    @property
    def flaw(self) -> str:
        """Why the term is not read, as the reason of a drop; "" for a good one."""
        if not self.id:
            return "no id"
        if _first_value(self.tags, "is_obsolete") == "true":
            return "obsolete term"
        return "" if self.name else "no name"

    def read_synonyms(self) -> Iterator[tuple[str, str]]:
        """Text and scope (EXACT, NARROW, BROAD, RELATED; "" = not given)."""
        for value in self.tags.get("synonym", []):
            if text := _quoted_text(value):
                scope = _SCOPE.search(value)
                yield text, scope[1] if scope else ""

    def read_relations(self) -> Iterator[tuple[str, str, str]]:
        """Predicate, identifier of the other term ("" = none), and its name in the comment."""
        values = [("is_a", value) for value in self.tags.get("is_a", [])]
        for value in self.tags.get("relationship", []):
            predicate, _, target = value.partition(" ")
            values.append((predicate, target.strip()))
        for predicate, value in values:
            yield predicate, _first_word(value), one_line(value.partition(" ! ")[2])

    def read_identifiers(self, tag: str) -> Iterator[str]:
        """The first word of each value of a tag: `xref`, `alt_id`."""
        return map(_first_word, self.tags.get(tag, []))


def read_terms(file: BinaryIO, name: str) -> Iterator[OboTerm]:
    """All terms, in order. Raises `MalformedSource` for text that is not UTF-8."""
    kind, begin, tags, namespace = "", 1, _Tags(), ""
    for number, line in enumerate(chain(utf8_lines(file, name), ["[]"]), start=1):
        text = line.strip()
        if text.startswith("[") and text.endswith("]"):
            if not kind:  # the header, before the first stanza
                namespace = _first_value(tags, "default-namespace")
            elif kind == "Term":
                yield OboTerm(f"{name}:{begin}", tags, namespace)
            kind, begin, tags = text[1:-1], number, _Tags()
        elif ":" in text and not text.startswith("!"):
            tag, _, value = text.partition(":")
            tags.setdefault(tag, []).append(value.strip())


class Obo:
    name = "obo"

    def matches(self, name: str, head: bytes) -> bool:
        begin = plain_head(head)
        return begin.startswith((b"format-version:", b"[Term]")) or (
            extension_of(name) == ".obo" and b"id:" in begin
        )

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        """Two passes, the first for the names of parents; a large file goes through a copy."""
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as spooled:
            shutil.copyfileobj(stream, spooled)
            copy = cast("BinaryIO", spooled)
            copy.seek(0)
            names = {term.id: term.name for term in read_terms(copy, name)}
            copy.seek(0)
            for term in read_terms(copy, name):
                yield _read_record(term, names)


def _read_record(term: OboTerm, names: dict[str, str]) -> Record:
    where = f"{term.where}: {term.id}" if term.id else term.where
    if term.flaw:
        return Drop(where, term.flaw)
    return concept_record(
        where,
        [term.name, *(text for text, _ in term.read_synonyms())],
        term.definition,
        _read_triples(term, names),
        id=make_slug(term.id),
        url=_term_url(term.id),
        code=term.id,
        kind=term.namespace,
    )


def _read_triples(term: OboTerm, names: dict[str, str]) -> Iterator[Triple]:
    name = term.name
    for predicate, identifier, comment in term.read_relations():
        # A term of another ontology is not in the file, but its name often is in the comment.
        if other := names.get(identifier) or comment:
            yield name, predicate, other


def _first_value(tags: _Tags, tag: str) -> str:
    return one_line(tags.get(tag, [""])[0].partition(" !")[0])


def _first_word(value: str) -> str:
    return value.split(maxsplit=1)[0] if value else ""


def _quoted_text(value: str) -> str:
    match = _QUOTED.match(value)
    return one_line(_unescape_text(match[1])) if match else ""


def _unescape_text(text: str) -> str:
    return _ESCAPE.sub(lambda match: _WHITE.get(match[1], match[1]), text)


def _term_url(identifier: str) -> str:
    if _PURL.fullmatch(identifier) is None:
        return ""
    return f"http://purl.obolibrary.org/obo/{identifier.replace(':', '_')}"
