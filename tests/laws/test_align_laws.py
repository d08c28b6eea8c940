"""Laws of token alignment: bytes in, character spans out."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from osler.llm.core.spans import decode_pieces

TEXT = st.text(max_size=40)


@st.composite
def cut(draw: st.DrawFn) -> tuple[str, list[bytes]]:
    """A text and its bytes, cut anywhere, also inside characters."""
    text = draw(TEXT)
    whole = text.encode()
    places = sorted(draw(st.sets(st.integers(0, len(whole)), max_size=8)) | {0, len(whole)})
    return text, [whole[a:b] for a, b in pairwise(places)]


@given(cut())
def test_the_text_comes_back_whole(case: tuple[str, list[bytes]]) -> None:
    text, pieces = case
    assert decode_pieces(pieces)[0] == text


@given(cut())
def test_spans_cover_every_character_in_order(case: tuple[str, list[bytes]]) -> None:
    text, pieces = case
    _, spans = decode_pieces(pieces)
    covered = {i for start, end in spans for i in range(start, end)}
    assert covered == set(range(len(text)))
    assert [s for s, _ in spans] == sorted(s for s, _ in spans)


@given(cut())
def test_a_piece_lies_inside_the_characters_of_its_span(case: tuple[str, list[bytes]]) -> None:
    text, pieces = case
    for piece, (start, end) in zip(pieces, decode_pieces(pieces)[1], strict=True):
        assert piece in text[start:end].encode()


@given(st.lists(st.binary(max_size=6), max_size=8))
def test_any_bytes_give_spans_within_the_text(pieces: list[bytes]) -> None:
    text, spans = decode_pieces(pieces)
    assert len(spans) == len(pieces)
    assert all(0 <= start <= end <= len(text) for start, end in spans)


def test_three_tokens_of_one_chinese_character_share_its_span() -> None:
    """首 is E9 A6 96; the engine's vocabulary has it as three byte tokens."""
    text, spans = decode_pieces([b"\xe9", b"\xa6", b"\x96", "选".encode(), b"a"])
    assert text == "首选a"
    assert spans == ((0, 1), (0, 1), (0, 1), (1, 2), (2, 3))


def test_a_reply_cut_inside_a_character_loses_only_that_character() -> None:
    text, spans = decode_pieces(["高".encode(), b"\xe8\xa1"])
    assert text == "高"
    assert spans == ((0, 1), (1, 1))
