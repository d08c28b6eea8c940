"""XML as a stream of finished records, safe for untrusted files.

No entity is expanded, no DTD is loaded, no network is touched, and libxml2's
limits on depth, size and amplification stay on. A file that declares entities
of its own is refused: no public corpus needs them, every XML attack does. So is a
record of more than 16 MiB: what is not finished is held in memory, as a tree that is
many times larger than its text.

Documents that are trees of titled sections (JATS, CNXML) share one walk: a section gives its title
to the heading path, a block begins a line, a cell is parted from its neighbour by " | ", and what
is named as left out is. Licences get one spelling.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, BinaryIO

from lxml import etree

from osler.errors import MalformedSource
from osler.sources.formats.reading import raise_digits, too_large
from osler.sources.records import Section
from osler.text import clean_text, one_line

_BEFORE_ROOT = re.compile(
    r"\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>", re.DOTALL | re.IGNORECASE
)
_LARGEST_RECORD = 16 * 2**20
_ROOT = re.compile(r"<(?:[\w.-]+:)?([A-Za-z_][\w.-]*)")


def root_tag(head: bytes) -> str:
    """The root element's local name, or "" when `head` does not begin an XML document."""
    encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    text, place = head.decode(encoding, errors="ignore"), 0
    while before := _BEFORE_ROOT.match(text, place):
        place = before.end()
    root = _ROOT.match(text, place)
    return root[1] if root else ""


def iterate_elements(
    stream: BinaryIO, name: str, tags: tuple[str, ...]
) -> Iterator[etree._Element]:
    """Each finished element with one of the tags; it is emptied when the next is asked for.

    Raises `MalformedSource` where the XML is not well-formed or declares entities.
    """
    watched = _WatchedStream(stream, name)
    context = etree.iterparse(
        watched,
        events=("end",),
        tag=tags,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    checked = False
    try:
        for _, element in context:
            if not checked:
                _refuse_entities(element, name)
            checked = True
            keep_powers(element)
            fill_spans(element)
            for line_end in element.iter("{*}break", "{*}br"):
                line_end.text = " "  # in a text on one line
            yield element
            _forget_element(element)
            watched.read_since_record = 0
    except etree.XMLSyntaxError as error:
        raise MalformedSource(
            f"{name} is not well-formed XML: {error.msg}", fix="fetch or unpack the file again"
        ) from error
    if not checked:
        _refuse_entities(context.root, name)


class _WatchedStream:
    """A stream that raises `MalformedSource` when one record takes more than 16 MiB."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream, self._name = stream, name
        self.read_since_record = 0

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self.read_since_record += len(data)
        if self.read_since_record > _LARGEST_RECORD:
            raise too_large(self._name, _LARGEST_RECORD)
        return data


def _refuse_entities(element: etree._Element, name: str) -> None:
    dtd: Any = element.getroottree().docinfo.internalDTD  # the stubs do not know its entities
    if dtd is not None and next(dtd.iterentities(), None) is not None:
        raise MalformedSource(
            f"{name} declares XML entities, which can be an attack",
            fix="remove the <!ENTITY> declarations from its DOCTYPE if you trust it",
        )


def _forget_element(element: etree._Element) -> None:
    parent = element.getparent()
    element.clear()
    # The emptied elements before it still hang on the parent: without this memory grows.
    if parent is not None:
        while element.getprevious() is not None:
            del parent[0]


def keep_powers(root: etree._Element) -> None:
    """Writes superscripts, and the powers and fractions of formulas, so that their digits do not
    run into a number before them once the markup is left out: 10⁹, x^n, 1/2."""
    for element in root.iter("{*}sup", "{*}style", "{*}msup", "{*}mfrac"):
        kind = local_name(element)
        if kind == "sup" or element.get("face") == "superscript":  # the latter: EndNote's
            _raise_texts(element)
        elif kind == "msup" and len(element) == 2:
            flat = raw_text(element[1])
            _raise_texts(element[1])
            element[0].tail = "^" if raw_text(element[1]) == flat else ""
        elif kind == "mfrac" and len(element) == 2:
            element.text = "" if element.getprevious() is None else " "
            for part in (one for one in element if len(one) > 1):
                part.text, part[-1].tail = f"({part.text or ''}", f"{part[-1].tail or ''})"
            element[0].tail = "/"


def _raise_texts(root: etree._Element) -> None:
    for element in root.iter():
        if element.text and isinstance(element.tag, str):  # that of an entity cannot be set
            element.text = raise_digits(element.text)
        if element.tail and element is not root:
            element.tail = raise_digits(element.tail)


# Cells that are added to the tables of a document; characters and elements of one of them.
_MOST_ADDED, _LONGEST_ADDED, _MOST_WITHIN = 100_000, 200, 20
# Columns and rows that a cell may cover (HTML standard).
_MOST_COVERED = {"colspan": 1000, "rowspan": 65_534}
_Going = dict[int, tuple[etree._Element | None, int]]
"""By column the cell that goes on in it, and in how many rows; `None`: an empty one."""


def fill_spans(root: etree._Element) -> None:
    """Repeats a cell that spans columns or rows in each of them, so that every value stands below
    its column's head. One that is all of its row stands once; of a long one the place is kept."""
    left = _MOST_ADDED
    for table in reversed([*root.iter("{*}table")]):  # those in a cell before those around it
        going, group = _Going(), None
        for row in table.iter("{*}tr"):
            if next(row.iterancestors("{*}table"), None) is not table:
                continue
            if row.getparent() is not group:
                going, group = _Going(), row.getparent()
            left -= _fill_row(row, going)
            if left < 0:  # an attack: no table has so many
                return


def _fill_row(row: etree._Element, going: _Going) -> int:
    """Fills a row by what goes on from those above. Returns how many cells were added."""
    own, at = dict[int, etree._Element](), 0
    cells = [*row.iterchildren("{*}td", "{*}th")]
    is_title = len(cells) == 1 and not going
    for cell in cells:
        while at in going:
            at += 1
        own[at] = cell
        columns = 1 if is_title else _span_of(cell, "colspan")
        begun = _if_short(cell), _span_of(cell, "rowspan")
        going.update(dict.fromkeys(range(at, at + columns), begun))
        at += columns
    end = max(going, default=-1) + 1
    for at in range(end):
        again, rows = going.pop(at, (None, 1))
        empty = row.makeelement(f"{str(row.tag)[:-2]}td")
        row.append(own[at] if at in own else empty if again is None else deepcopy(again))
        if rows > 1:
            going[at] = again, rows - 1
    return end - len(own)


def _span_of(cell: etree._Element, name: str) -> int:
    told = cell.get(name, "1").strip()[:5]
    most = _MOST_COVERED[name]
    return min(int(told) or (most if name == "rowspan" else 1), most) if told.isdecimal() else 1


def _if_short(cell: etree._Element) -> etree._Element | None:
    is_large = next(islice(cell.iter(), _MOST_WITHIN, None), None) is not None
    return None if is_large or len(raw_text(cell)) > _LONGEST_ADDED else cell


def text_of(element: etree._Element | None) -> str:
    """All text inside, markup left out, on one line; "" for no element."""
    return one_line(raw_text(element))


def raw_text(element: etree._Element | None) -> str:
    """All text inside, markup left out, white space as it stands; "" for no element."""
    if element is None:
        return ""
    text = "".join(map(str, element.itertext())) if len(element) else element.text or ""
    # References to entities of a DTD that is not read (&nbsp;) come through as they are written.
    return html.unescape(text) if "&" in text else text


# Not the single blanks, which are most of all matches.
_SPACES = re.compile(r"\s{2,}|[^\S ]")
CELL = " | "
# Of a row without a text nothing stays.
_ROW_START = re.compile(r"^\| ?(?:[| ]*$)?", re.MULTILINE)
_BULLET = re.compile(r"^-(?: *\n| +)", re.MULTILINE)
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
        text = _MARKS.sub("", text) if GONE in text else text
        text = _BULLET.sub("- ", _ROW_START.sub("", text))
        text = clean_text(text)
        if text:
            self.sections.append(Section(text, self._path))
        self._pieces.clear()

    def _meet_element(self, element: Element) -> None:
        grammar, name = self._grammar, local_name(element)
        if isinstance(element, etree._Entity):
            self._add_text(element.text)  # as in `raw_text`
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


_CC_ADDRESS = re.compile(
    r"creativecommons\.org/(?:licenses/(?P<kind>by(?:-nc)?(?:-nd|-sa)?)(?:/(?P<version>\d\.\d))?"
    r"|publicdomain/(?P<public>zero|mark)(?:/(?P<level>\d\.\d))?)",
    re.IGNORECASE,
)
# In this order: "Attribution" alone is a part of the longer names.
_CC_WORDS = (
    (re.compile(r"public\s+domain\s+dedication|\bCC0\b", re.IGNORECASE), "CC0"),
    (re.compile(r"Attribution[- ]Non-?Commercial[- ]No-?Deriv", re.IGNORECASE), "CC BY-NC-ND"),
    (re.compile(r"Attribution[- ]Non-?Commercial[- ]Share", re.IGNORECASE), "CC BY-NC-SA"),
    (re.compile(r"Attribution[- ]Non-?Commercial", re.IGNORECASE), "CC BY-NC"),
    (re.compile(r"Attribution[- ]Share-?Alike", re.IGNORECASE), "CC BY-SA"),
    (re.compile(r"Creative\s+Commons\s+Attribution", re.IGNORECASE), "CC BY"),
    (re.compile(r"public\s+domain", re.IGNORECASE), "public domain"),
)
_LONGEST = 160


def licence_of(*statements: str) -> str:
    """A short name ("CC BY 4.0") of what the statements say, else their first words.

    An address is more exact than words, so one anywhere goes before them. "" for nothing.
    """
    for statement in statements:
        if match := _CC_ADDRESS.search(statement):
            return _short_name(match)
    text = one_line(" ".join(statements))
    for pattern, name in _CC_WORDS:
        if pattern.search(text):
            return name
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1].rstrip()}…"


def _short_name(match: re.Match[str]) -> str:
    if match["public"]:
        name = "CC0" if match["public"].lower() == "zero" else "public domain"
        return f"{name} {match['level'] or ''}".strip() if name == "CC0" else name
    return f"CC {match['kind'].upper()} {match['version'] or ''}".strip()
