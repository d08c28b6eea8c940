"""XML documents that are trees of titled sections: JATS, CNXML.

One walk for all of them: a section gives its title to the heading path, a block begins
a line, a cell is parted from its neighbour by " | ", and what is named as left out is.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lxml import etree

from osler.sources.formats.safe_xml import text_of
from osler.sources.records import Section
from osler.text import clean_text, one_line

_SPACES = re.compile(r"\s+")
CELL = " | "
_ROW_START = re.compile(r"^(?:\| *)+", re.MULTILINE)
_BULLET = re.compile(r"^- *\n", re.MULTILINE)
_EDGES = re.compile(r" *\n[ \n]*")
GONE = "\ue000"
"""Stands where a reference mark was; it goes with the brackets and commas around it."""
_MARKS = re.compile(rf"\s?[\[(]?{GONE}(?:[\s,;–-]*(?:and\s)?{GONE})*[\])]?")

Element = etree._Element


@dataclass(frozen=True, slots=True)
class ElementRoles:
    """The roles of elements in a format, by local name."""

    sections: frozenset[str]
    title: str
    blocks: frozenset[str]
    left_out: frozenset[str]
    before: Mapping[str, str] = field(default_factory=dict)
    """Text written where such an element begins: a bullet, a cell's bar."""
    instead: Callable[[Element], str | None] = lambda element: None
    """Text that replaces a whole element; `None`: it is walked."""


def local_name(element: Element) -> str:
    """The element's name without its namespace; "" for a comment or an instruction."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def first_child(element: Element | None, name: str) -> Element | None:
    """The first child of this local name."""
    if element is None:
        return None
    return next((inner for inner in element if local_name(inner) == name), None)


def find_descendant(element: Element | None, *names: str) -> Element | None:
    """The element at a path of local names, or `None`."""
    for name in names:
        element = first_child(element, name)
    return element


def sections_of_tree(
    root: Element, grammar: ElementRoles, path: tuple[str, ...] = ()
) -> tuple[Section, ...]:
    """The text below `root` under heading paths that begin with `path`."""
    walk = _SectionWalk(grammar, path)
    walk.walk_into(root)
    walk.close_section()
    return tuple(walk.sections)


class _SectionWalk:
    def __init__(self, grammar: ElementRoles, path: tuple[str, ...]) -> None:
        self.sections: list[Section] = []
        self._grammar, self._path = grammar, path
        self._pieces: list[str] = []

    def walk_into(self, element: Element) -> None:
        self._add_text(element.text)
        for inner in element:
            self._meet_element(inner)
            self._add_text(inner.tail)

    def close_section(self) -> None:
        text = _EDGES.sub("\n", "".join(self._pieces))
        text = _BULLET.sub("- ", _ROW_START.sub("", _MARKS.sub("", text)))
        text = clean_text(text)
        if text:
            self.sections.append(Section(text, self._path))
        self._pieces.clear()

    def _meet_element(self, element: Element) -> None:
        grammar, name = self._grammar, local_name(element)
        if not name or name in grammar.left_out:
            return
        if (text := grammar.instead(element)) is not None:
            self._pieces.append(text)
        elif name in grammar.sections:
            self._enter_section(element)
        elif grammar.before.get(name) == CELL:
            self._add_cell(element)
        else:
            is_block = name in grammar.blocks
            self._pieces.append(grammar.before.get(name, "\n" if is_block else ""))
            self.walk_into(element)
            self._pieces.append("\n" if is_block else "")

    def _add_cell(self, element: Element) -> None:
        # On one line, whatever paragraphs are in it: a row is a line.
        row, self._pieces = self._pieces, []
        while row and row[-1] == " ":  # between the tags of two cells
            row.pop()
        self.walk_into(element)
        row += [CELL, one_line("".join(self._pieces))]
        self._pieces = row

    def _enter_section(self, element: Element) -> None:
        self.close_section()
        above = self._path
        title = first_child(element, self._grammar.title)
        if heading := text_of(title):
            self._path = (*above, heading)
        for heading_element in (title, first_child(element, "label")):
            if heading_element is not None:
                element.remove(heading_element)
        self.walk_into(element)
        self.close_section()
        self._path = above

    def _add_text(self, text: str | None) -> None:
        if text:
            self._pieces.append(_SPACES.sub(" ", html.unescape(text) if "&" in text else text))
