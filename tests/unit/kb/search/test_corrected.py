"""Corrections beside an embedded index that stays as it is."""

import pytest

from osler.kb.base import KnowledgeBase
from osler.kb.search.base import EVERYTHING, PassageFilter
from osler.kb.search.generation import read_current
from osler_lab.testing.scripted import HashingEncoder

pytest.importorskip("qdrant_edge", reason="the extra edge is not installed")


def test_a_correction_is_found_without_a_new_generation(edge: KnowledgeBase) -> None:
    encoder, before = HashingEncoder(), read_current(edge.path)
    old = edge.get("guideline:advice#0").text
    edge.correct("guideline:advice#0", "Give ferrous salts weekly.", encoder)
    edge.correct("guideline:advice#0", "Give ferrous sulfate weekly.", encoder)
    assert read_current(edge.path) == before
    for within in (EVERYTHING, PassageFilter(sources=("guideline",), trust=5)):
        (best, _), *_ = edge.by_words(["weekly", "sulfate"], k=1, within=within)
        assert best.text == "Give ferrous sulfate weekly."
    assert edge.by_words(["weekly"], k=5, within=PassageFilter(sources=("wiki",))) == []
    (query,) = encoder.encode(["Give ferrous sulfate weekly."], kind="query")
    (near, score), *others = edge.by_vector(query, encoder=encoder.identity, k=20)
    assert near.id == "guideline:advice#0"
    assert score == pytest.approx(1, abs=1e-3)
    assert old not in [passage.text for passage, _ in others]
    dense, words = edge.rank_by_both(["weekly"], query, encoder=encoder.identity, k=3)
    assert dense[0][0] == words[0][0]
    assert edge.verify() == []


def test_a_corrected_passage_ranks_where_the_next_build_ranks_it(edge: KnowledgeBase) -> None:
    terms = ["ferrous", "salts", "anaemia", "weekly"]
    edge.correct("guideline:advice#0", "Ferrous salts weekly for anaemia.", HashingEncoder())
    told = edge.by_words(terms, k=9)
    edge.build(HashingEncoder())
    built = edge.by_words(terms, k=9)
    assert [passage.id for passage, _ in told] == [passage.id for passage, _ in built]
    assert told[0][1] == pytest.approx(built[0][1], rel=0.1)
    assert edge.verify() == []
