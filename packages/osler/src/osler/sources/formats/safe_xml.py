"""XML as a stream of finished records, safe for untrusted files.

No entity is expanded, no DTD is loaded, no network is touched, and libxml2's
limits on depth, size and amplification stay on. A file that declares entities
of its own is refused: no public corpus needs them, every XML attack does. So is a
record of more than 16 MiB: what is not finished is held in memory, as a tree that is
many times larger than its text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from lxml import etree

from osler.errors import MalformedSource
from osler.sources.formats.reading import too_large
from osler.text import one_line

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
