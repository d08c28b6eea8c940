"""KILT's Wikipedia (2019): a page a line, its paragraphs and "Section::::" marks in a list."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from osler.sources.formats.json_lines import Object, first_keys, read_objects, text_in
from osler.sources.formats.noise import without_noise
from osler.sources.records import Document, Drop, Record, Section
from osler.text import clean_text, language_of, make_slug, one_line

_SECTION, _BULLET = "Section::::", "BULLET::::"
_FORMULA = re.compile(r"formula_\d+")


class Kilt:
    name = "kilt"

    def matches(self, name: str, head: bytes) -> bool:
        keys = first_keys(head)
        return "wikipedia_title" in keys or (keys >= {"text"} and b'"wikipedia_title"' in head)

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        for found in read_objects(stream, name):
            yield found if isinstance(found, Drop) else _read_record(found[1], found[0])


def _read_record(page: Object, where: str) -> Record:
    title = one_line(text_in(page, "wikipedia_title"))
    if not title:
        return Drop(where, "no title")
    paragraphs = page.get("text")
    if not isinstance(paragraphs, list):
        return Drop(where, "no text")
    sections, _ = without_noise(
        _read_sections([p for p in paragraphs if isinstance(p, str)], title)
    )
    if not sections:
        return Drop(where, "no text")
    history = page.get("history")
    url = text_in(history, "url") if isinstance(history, dict) else ""
    identifier = text_in(page, "wikipedia_id") or text_in(page, "_id")
    return Document(
        id=make_slug(identifier or title),
        title=title,
        sections=sections,
        language=language_of(" ".join(section.text for section in sections[:20])),
        url=url,
    )


def _read_sections(paragraphs: list[str], title: str) -> Iterator[Section]:
    path: tuple[str, ...] = ()
    lines: list[str] = []
    for paragraph in paragraphs[1:] if _is_title(paragraphs, title) else paragraphs:
        if not paragraph.startswith(_SECTION):
            lines.append(_FORMULA.sub("", paragraph.removeprefix(_BULLET)).strip())
            continue
        if text := clean_text("\n".join(lines)):
            yield Section(text, path)
        lines.clear()
        names = paragraph.removeprefix(_SECTION).strip().removesuffix(".").split(".:")
        path = tuple(name for part in names if (name := one_line(part)))
    if text := clean_text("\n".join(lines)):
        yield Section(text, path)


def _is_title(paragraphs: list[str], title: str) -> bool:
    return bool(paragraphs) and one_line(paragraphs[0]) == title
