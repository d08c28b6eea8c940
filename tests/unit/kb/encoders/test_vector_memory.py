"""A question is encoded once, however many searches ask for its vector."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from osler.kb.encoders.base import VectorMemory
from osler_lab.testing.scripted import HashingEncoder

if TYPE_CHECKING:
    from osler.kb.encoders.base import Kind, Vectors


class Counting(HashingEncoder):
    """Counts what it is asked to encode."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        self.asked += texts
        return super().encode(texts, kind=kind)


async def test_searches_of_all_sources_at_once_encode_the_question_once() -> None:
    counting = Counting()
    memory = VectorMemory(counting)
    vectors = await asyncio.gather(
        *(asyncio.to_thread(memory.encode, ["gout"], kind="query") for _ in range(8))
    )
    assert counting.asked == ["gout"]
    expected = HashingEncoder().encode(["gout"], kind="query")
    assert all((vector == expected).all() for vector in vectors)


def test_it_is_the_encoder_in_all_else() -> None:
    counting = Counting()
    memory = VectorMemory(counting)
    assert memory.identity == counting.identity
    assert memory.dimension == counting.dimension
    assert memory.languages == counting.languages
    memory.encode(["gout", "iron"], kind="query")
    memory.encode(["gout", "iron"], kind="query")
    assert counting.asked == ["gout", "iron", "gout", "iron"]


def test_no_passage_is_encoded_twice() -> None:
    counting = Counting()
    memory = VectorMemory(counting)
    first = memory.encode(["gout", "iron", "gout"], kind="passage")
    again = memory.encode(["iron", "gout", "zinc"], kind="passage")
    assert counting.asked == ["gout", "iron", "zinc"]
    assert (first == HashingEncoder().encode(["gout", "iron", "gout"], kind="passage")).all()
    assert (again == HashingEncoder().encode(["iron", "gout", "zinc"], kind="passage")).all()


def test_passages_whose_vectors_a_search_has_read_are_not_encoded_again() -> None:
    counting = Counting()
    memory = VectorMemory(counting, passages=2)
    known = HashingEncoder().encode(["a", "b", "c"], kind="passage")
    memory.remember_passages(["a", "b", "c"], list(known))
    vectors = memory.encode(["c", "new", "b", "a"], kind="passage")
    assert counting.asked == ["new", "a"]
    expected = HashingEncoder().encode(["c", "new", "b", "a"], kind="passage")
    assert (vectors == expected).all()
    assert memory.encode([], kind="passage").shape == (0, counting.dimension)
    memory.encode(["b"], kind="query")
    assert counting.asked == ["new", "a", "b"]


def test_the_query_that_was_asked_longest_ago_is_forgotten_first() -> None:
    counting = Counting()
    memory = VectorMemory(counting, most=2)
    for query in ("a", "b", "a", "c", "a", "b"):
        memory.encode([query], kind="query")
    assert counting.asked == ["a", "b", "c", "b"]
