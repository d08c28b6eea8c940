"""The hundred labelled sentences are what they are said to be, and linking is as good on them."""

from __future__ import annotations

from pathlib import Path

import link_mentions
import pytest

from osler.graph.link import ConceptMention, Dictionary
from osler.graph.store import Graph
from osler.retrieve import STOP_WORDS
from osler.types import Language


def test_fifty_sentences_of_each_language_are_labelled_in_place() -> None:
    found = link_mentions.sentences()
    assert [sum(s.language == language for s in found) for language in ("en", "zh")] == [50, 50]
    known = {name.concept for name in link_mentions.vocabulary()}
    for sentence in found:
        assert "[" not in sentence.text
        assert "|" not in sentence.text
        for start, end, concept in sentence.mentions:
            assert sentence.text[start:end].strip() == sentence.text[start:end] != ""
            assert concept in known


@pytest.mark.parametrize(
    ("language", "precision", "recall"), [("en", 0.97, 0.92), ("zh", 0.98, 0.98)]
)
def test_linking_is_as_precise_and_complete_as_the_log_says(
    tmp_path: Path, language: Language, precision: float, recall: float
) -> None:
    sample = [s for s in link_mentions.sentences() if s.language == language]
    with Graph.create(tmp_path) as graph:
        graph.add(link_mentions.vocabulary())
        score = link_mentions.scored(Dictionary(graph, STOP_WORDS), sample)
    assert score.precision >= precision
    assert score.recall >= recall


class Everything:
    """Finds the first letter of every text, and nothing else."""

    def find_mentions(self, text: str) -> list[ConceptMention]:
        return [ConceptMention(0, 1, ("OURS:1",))]


def test_a_bad_recogniser_is_scored_as_one() -> None:
    score = link_mentions.scored(Everything(), link_mentions.sentences())
    assert (score.right, score.found) == (0, 100)
    assert score.precision == score.recall == 0
