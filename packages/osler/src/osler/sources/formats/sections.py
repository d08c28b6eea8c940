"""The sections of a document: under heading lines, without lists of references; a concept's.

The filter for addresses, references and citations (Omni-RAG §3.1) removes whole sections and whole
lines, never a part of a sentence: a quotation must read as its page does. A line goes only when it
is nothing but an address or an entry of a list of references; a sentence that names a study or a
web site stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from osler.sources.records import Document, Drop, Record, Section
from osler.text import clean_text, language_of

Heading = tuple[int, str]
"""Level (1 = outermost) and text."""


class HeadingPath:
    """The headings above the present line, outermost first."""

    def __init__(self) -> None:
        self._open: list[Heading] = []

    def enter_heading(self, level: int, heading: str) -> None:
        """Enters a heading: those of the same or a deeper level end. "" only ends them."""
        self._open = [above for above in self._open if above[0] < level]
        if heading:
            self._open.append((level, heading))

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(heading for _, heading in self._open)


def sections_of(
    text: str,
    heading_of: Callable[[str], Heading | None],
    finish: Callable[[str], str] = clean_text,
) -> tuple[Section, ...]:
    """The text between heading lines; a heading with nothing under it makes no section.

    `heading_of` says what heading a line is, if any; `finish` makes the final text
    of a section out of its lines.
    """
    sections: list[Section] = []
    outline, lines = HeadingPath(), list[str]()

    def close_section() -> None:
        if body := finish("\n".join(lines)):
            sections.append(Section(body, outline.path))
        lines.clear()

    for line in text.split("\n"):
        if (heading := heading_of(line)) is None:
            lines.append(line)
        else:
            close_section()
            outline.enter_heading(*heading)
    close_section()
    return tuple(sections)


_APPARATUS = re.compile(
    r"(?:\W|\d)*+(?:(?:selected |key |additional |suggested )?(?:references?|bibliography"
    r"|citations?|literature cited|works cited|(?:further )?readings?|external links?"
    r"|see also|footnotes?|end ?notes?|sources?|web ?sites?|publications"
    r"|references and notes|notes and references)"
    r"|参考文献|参考资料|引用文献|外部链接|外部連結|延伸阅读|延伸閱讀|参见|參見|参看|注释|註釋)(?:\W|\d)*+",
    re.IGNORECASE,
)
# Below these a page may say what no other section does: dietary sources, notes on a dose.
_MAY_SAY_MORE = re.compile(
    r"(?:\W|\d)*+(?:readings?|footnotes?|end ?notes?|sources?|web ?sites?|publications|注释|註釋)"
    r"(?:\W|\d)*+",
    re.IGNORECASE,
)
_ADDRESS = re.compile(
    r"[<(\[\"']*(?:(?:https?|ftp)://\S+|www\.\S+|10\.\d{4,9}/\S+|doi:\S+)", re.IGNORECASE
)
_ABOUT_ADDRESS = re.compile(
    r"\W*(?:available|at|from|retrieved|accessed|doi|url|source|see|on|and|网址|来源|链接|\d{1,4}"
    r"|jan\w*|feb\w*|mar\w*|apr\w*|may|june?|july?|aug\w*|sep\w*|oct\w*|nov\w*|dec\w*)?\W*",
    re.IGNORECASE,
)
# "12. Smith J, Jones A. Title. Lancet 2003;361:12-34." and the Chinese form with [J], [M].
# Possessive, so that no line costs more than its length times a constant.
_NUMBER = r"\s*+(?:\[\d{1,3}\]|\(\d{1,3}\)|\d{1,3}[.)]|[-•*])?+\s*+"
_NAME = r"[A-Z][\w'’-]++(?: [A-Z][\w'’-]++)?,? (?:[A-Z]\.?[ -]?){1,3}+(?![a-z])"
_AUTHORS = rf"{_NAME}(?:(?:[,;]| and| &)? ?(?:et al\.?|{_NAME}))*+"
_AUTHORS_END = r"(?:(?<=\.)|(?<=\. )|(?= ?[,;:(.]))"
_PLACE = (
    r"(?:(?:19|20)\d\d[a-z]?\)?(?: [A-Z][a-z]{2,8}(?: \d{1,2})?)?; ?\d"  # 2003 Jan 4;361
    r"|\b\d{1,4}(?: ?\(\d[\w-]{0,8}\))? ?: ?e?\d"  # 361(2):12
    r"|\bdoi\b|\b10\.\d{4,9}/)"
)
_YEAR = r"\b(?:19|20)\d\d"
_ENTRY = re.compile(
    rf"(?=[^\n]*(?:{_YEAR}|\bdoi\b|\b10\.\d{{4}}))"
    rf"{_NUMBER}{_AUTHORS}{_AUTHORS_END}[^\n]{{10,600}}?{_PLACE}"
)
_WORK = re.compile(rf"{_NUMBER}{_AUTHORS}{_AUTHORS_END}[^\n]*?{_YEAR}")
_ENTRY_ZH = re.compile(r"\s*\[\d{1,3}\][^\n]{4,300}?\[[JMCDPNRS](?:/OL)?\]")
_LONGEST_LINE = 1200


def is_apparatus(heading: str) -> bool:
    """Whether a heading announces a list of references, links or notes."""
    return len(heading) < 60 and _APPARATUS.fullmatch(heading) is not None


def is_noise(line: str) -> bool:
    """Whether a line is only an address or an entry of a list of references."""
    if len(line) > _LONGEST_LINE:
        return False
    return _is_address(line) or any(kind.match(line) for kind in (_ENTRY, _ENTRY_ZH))


def _is_address(line: str) -> bool:
    if "/" not in line and "www." not in line:
        return False
    rest = [word for word in line.split() if _ADDRESS.match(word) is None]
    return len(rest) < len(line.split()) and all(map(_ABOUT_ADDRESS.fullmatch, rest))


def without_noise(sections: Iterable[Section]) -> tuple[tuple[Section, ...], int]:
    """The sections without lists of references and addresses, and the number of lines removed."""
    kept: list[Section] = []
    removed = 0
    for section in sections:
        lines = section.text.split("\n")
        if _is_list(section.path, lines):
            removed += sum(bool(line.strip()) for line in lines)
            continue
        stay = [line for line in lines if not is_noise(line)]
        removed += len(lines) - len(stay)
        if len(stay) == len(lines):
            kept.append(section)
        elif text := clean_text("\n".join(stay)):
            kept.append(Section(text, section.path, section.page))
    return tuple(kept), removed


def _is_list(path: Iterable[str], lines: Iterable[str]) -> bool:
    """Whether these lines, under this heading path, are a list of references, links or notes."""
    headings = [heading for heading in path if is_apparatus(heading)]
    if not headings or not all(map(_MAY_SAY_MORE.fullmatch, headings)):
        return bool(headings)
    listed = [is_noise(line) or _WORK.match(line) is not None for line in lines if line.strip()]
    return sum(listed) * 2 >= len(listed)


def finish_document(document: Document, where: str) -> Record:
    """The document in the language of its first sections, or a drop when it has no section."""
    if not document.sections:
        return Drop(where, "no text")
    sample = " ".join(section.text for section in document.sections[:20])
    return replace(document, language=language_of(sample))


def finish_cleaned(document: Document, where: str) -> Iterator[Record]:
    """As `finish_document`, without noise; what was removed is counted in a drop."""
    sections, removed = without_noise(document.sections)
    if removed:
        yield Drop(f"{where}: {removed} lines", "addresses and references left out")
    yield finish_document(replace(document, sections=sections), where)


Triple = tuple[str, str, str]
"""Subject, relation, object: (STR2, RELA, STR1)."""

_LONGEST = 1000


def concept_record(
    where: str, names: Iterable[str], definition: str, relations: Iterable[Triple], **more: Any
) -> Record:
    """The document of a concept with its code and other fields, or why there is none."""
    sections = concept_sections(definition, relations)
    if not sections:
        return Drop(where, "no definition and no relation")
    title = names_line(names)
    language = language_of(definition or title)
    return Document(title=title, sections=sections, language=language, **more)


def concept_sections(definition: str, relations: Iterable[Triple]) -> tuple[Section, ...]:
    """`Definition: …\\nRelation: (STR2, RELA, STR1); (…).`, either line left out when empty.

    What is longer than a passage (1,000 characters) goes on in further sections of
    the same form, so that no triple is ever cut in two.
    """
    opening = f"Definition: {definition}" if definition else ""
    return tuple(
        Section(clean_text(text))
        for text in _wrap_triples(opening, (f"({', '.join(triple)})" for triple in relations))
    )


def names_line(names: Iterable[str]) -> str:
    """All names joined by "/"; one that differs from an earlier only in case is left out."""
    seen: dict[str, str] = {}
    for name in names:
        seen.setdefault(name.casefold(), name)
    return "/".join(seen.values())


def _wrap_triples(opening: str, triples: Iterator[str]) -> Iterator[str]:
    text = opening
    started = False
    for triple in triples:
        if text and len(text) + len(triple) + len("\nRelation: .") > _LONGEST:
            yield f"{text}." if started else text
            text, started = "", False
        if not started:
            text = f"{text}\nRelation: {triple}" if text else f"Relation: {triple}"
        else:
            text = f"{text}; {triple}"
        started = True
    if text:
        yield f"{text}." if started else text
