"""Cutting elements out of the bytes is the same as cutting them out of the tree."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from osler.sources.formats.trimmed_stream import TrimmedStream

NAMES = ("ReferenceList", "AuthorList")
TAGS = st.sampled_from([*NAMES, "ReferenceLists", "Author", "Title"])
HEADS = st.sampled_from(["", ' a="b"', '\n  a="b"'])


def element(tag: str, head: str, inside: list[str], text: str, empty: bool) -> str:
    if empty:
        return f"<{tag}{head}/>"
    return f"<{tag}{head}>{text}{''.join(inside)}</{tag}>"


TEXTS = st.sampled_from(["", "iron", "AuthorList", "&lt;AuthorList&gt;", "!", "\n", "a - b"])
ELEMENTS = st.recursive(
    st.builds(element, TAGS, HEADS, st.just([]), TEXTS, st.booleans()),
    lambda inside: st.builds(element, TAGS, HEADS, st.lists(inside), TEXTS, st.just(False)),
    max_leaves=12,
)
DOCUMENTS = st.lists(ELEMENTS | TEXTS, max_size=6).map(lambda parts: f"<Set>{''.join(parts)}</Set>")


def read(data: bytes, block: int, size: int) -> bytes:
    stream, pieces = TrimmedStream(io.BytesIO(data), NAMES, block=block), []
    while piece := stream.read(size):
        pieces.append(piece)
    return b"".join(pieces)


def canonical(root: etree._Element) -> bytes:
    return etree.tostring(root, method="c14n")


def without(document: str) -> bytes:
    root = etree.fromstring(document)
    for name in NAMES:
        for found in list(root.iter(name)):
            parent = found.getparent()
            if parent is not None:
                _take_out(parent, found)
    return canonical(root)


def _take_out(parent: etree._Element, child: etree._Element) -> None:
    """With the text after it kept."""
    before, tail = child.getprevious(), child.tail or ""
    if before is None:
        parent.text = (parent.text or "") + tail
    else:
        before.tail = (before.tail or "") + tail
    child.tail = None
    parent.remove(child)


@given(DOCUMENTS, st.integers(1, 40), st.integers(1, 40))
def test_what_is_left_is_the_tree_without_them(document: str, block: int, size: int) -> None:
    left = read(document.encode(), block, size)
    # Where the file's last block ends, what is still open is passed on as it is.
    assert without(left.decode()) == without(document)


@given(DOCUMENTS)
def test_read_at_once_nothing_of_them_is_left(document: str) -> None:
    left = read(document.encode(), 1 << 20, 1 << 20)
    assert canonical(etree.fromstring(left)) == without(document)


@given(DOCUMENTS, st.integers(1, 200), st.integers(1, 40))
def test_a_file_that_breaks_off_is_still_no_xml(document: str, cut: int, block: int) -> None:
    data = document.encode()[:-cut]
    left = read(data, block, 7)
    with pytest.raises(etree.XMLSyntaxError):
        etree.fromstring(left)


@given(st.sampled_from(["<!--", "<![CDATA["]), st.integers(1, 40))
def test_a_name_in_a_comment_or_a_cdata_section_is_no_element(opener: str, block: int) -> None:
    closer = {"<!--": "-->", "<![CDATA[": "]]>"}[opener]
    document = (
        f"<Set>{opener} <AuthorList> {closer}<Title>iron</Title><AuthorList>x</AuthorList></Set>"
    )
    assert read(document.encode(), block, 9) == document.encode()
