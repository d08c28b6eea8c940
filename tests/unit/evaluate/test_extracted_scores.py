"""Precision and recall of extraction, worked by hand, and the annotated chunks themselves."""

from __future__ import annotations

import annotated
import pytest
from extraction_scores import (
    LEVELS,
    AnnotatedChunk,
    LevelHits,
    count_hits,
    score_extraction,
)

from osler.extract.anchor import Anchors
from osler.extract.items import Entity, EntityRelation, medicine_schema
from osler.graph.derive import normalize_name
from osler.types import Passage

CHUNK = AnnotatedChunk(
    Passage("a:1#0", "Aspirin treats Fever and pain.", "a", ""),
    (("Aspirin", "Drug"), ("fever", "Symptom"), ("pain", "Symptom")),
    (("Aspirin", "is used to treat", "fever"), ("Aspirin", "is used to treat", "pain")),
)


def test_names_types_pairs_and_predicates_are_counted_apart() -> None:
    found = (
        Entity("ASPIRIN", "Drug", 0, 7),
        Entity("Fever", "Disease", 15, 20),
        Entity("treats", "", 8, 14),
        EntityRelation("fever", "is caused by", "aspirin", 0, 20),
        EntityRelation("Aspirin", "is used to treat", "pain", 0, 29),
    )
    assert count_hits(CHUNK, found) == {
        "name": LevelHits(2, 3, 3),
        "name and type": LevelHits(1, 3, 3),
        "pair": LevelHits(2, 2, 2),
        "pair and predicate": LevelHits(1, 2, 2),
    }
    assert count_hits(CHUNK, ()) == {
        level: LevelHits(0, 0, 2 + (level in LEVELS[:2])) for level in LEVELS
    }


def test_figures_are_over_all_names_of_all_chunks() -> None:
    found = score_extraction([LevelHits(2, 3, 4), LevelHits(1, 1, 4)])
    assert found.precision.value == pytest.approx(3 / 4)
    assert found.recall.value == pytest.approx(3 / 8)
    assert found.f1.value == pytest.approx(2 * 3 / (4 + 8))
    assert found.precision.low == pytest.approx(2 / 3)
    assert found.precision.high == 1.0
    nothing = score_extraction([LevelHits(0, 0, 0)])
    assert (nothing.precision.value, nothing.recall.value, nothing.f1.value) == (0, 0, 0)
    with pytest.raises(ValueError, match="no chunks"):
        score_extraction([])


def test_thirty_chunks_are_annotated_with_what_stands_in_them() -> None:
    chunks = annotated.chunks()
    assert [sum(c.passage.language == of for c in chunks) for of in ("en", "zh")] == [20, 10]
    for chunk in chunks:
        language, text = chunk.passage.language, chunk.passage.text
        assert 60 <= len(text.split() if language == "en" else text) <= 140
        names = [normalize_name(name) for name, _ in chunk.entities]
        assert len(set(names)) == len(names)
        assert all(Anchors(text).first_span(name) for name, _ in chunk.entities)
        assert {type_ for _, type_ in chunk.entities} <= set(medicine_schema().types)
        for subject, predicate, object_ in chunk.relations:
            assert {normalize_name(subject), normalize_name(object_)} <= set(names)
            assert predicate.strip()


async def test_the_dictionary_is_as_good_on_them_as_the_log_says() -> None:
    rows = [row.split(" | ") for row in await annotated.dictionaries()]
    f1 = {(row[0], row[1], row[2]): float(row[7].split()[0]) for row in rows}
    for language in ("en", "zh"):
        assert f1["| dictionary", language, "name"] >= 0.6
        assert f1["| dictionary, without word forms", language, "name"] <= 0.2
