"""Defaults that a paper states are the paper's."""

import pytest

from osler.kb.ingest.chunk import document_passages
from osler.llm.core.base import Sampling
from osler.settings import STRATEGIES, Settings
from osler.sources.catalogue import SOURCES
from osler.sources.records import Document, Section


def test_decoding_defaults_are_the_paper_s() -> None:
    """TC-RAG App. 8.5."""
    assert (Sampling().temperature, Sampling().max_tokens) == (0.6, 500)
    assert (Settings().sampling.temperature, Settings().sampling.max_tokens) == (0.6, 500)


def test_the_five_sources_stand_in_the_paper_s_order() -> None:
    """Omni-RAG §3 and its wire format."""
    assert SOURCES == ("book", "guideline", "research", "wiki", "graph")


def test_a_passage_has_at_most_a_thousand_characters() -> None:
    """Omni-RAG §3.1."""
    long = Document("d", "T", (Section("A sentence of some length stands here. " * 200),))
    cut = list(document_passages(long, "book"))
    assert len(cut) > 7
    assert max(len(passage.text) for passage in cut) <= 1_000


def test_ten_passages_are_read() -> None:
    """Omni-RAG §5.1.2."""
    assert Settings().retrieve.k == 10


@pytest.mark.parametrize(
    ("kind", "passages"),
    [
        ("kag-thinker", 3),
        ("ircot", 3),
        ("search-o1", 3),
        ("search-r1", 3),
        ("zero-search", 3),
        ("step-search", 3),
        ("research", 5),
    ],
)
def test_the_methods_of_table_6_read_what_the_paper_had_them_read(kind: str, passages: int) -> None:
    """KAG-Thinker §4.1: "Except for ReSearch, … the top 5 …, all other methods … the top 3"."""
    assert STRATEGIES[kind].model_fields["k"].default == passages
