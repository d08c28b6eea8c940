"""Two encoders in one knowledge base: each language is compared with its own vectors alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from osler.build.models import encoder_relevance, load_encoder, meaning_relevance
from osler.errors import ModelError
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import (
    EncoderByLanguage,
    Kind,
    LateEncoder,
    MiniLMEncoder,
    VectorMemory,
    encoder_for,
    scale_to_unit,
    shared_languages,
)
from osler.kb.search.base import Floats
from osler.llm.local.weights import E5
from osler.retrieve.asked import QuestionReader
from osler.retrieve.hybrid import HybridRetriever
from osler.settings import Settings
from osler.types import Language
from osler_lab.testing.scripted import HashingEncoder

TEXTS = {
    "iron": ("Anaemia", "Iron deficiency is the commonest cause of anaemia."),
    "asthma": ("Asthma", "Salbutamol opens the airways within minutes."),
    "tangniaobing": ("糖尿病", "糖尿病患者应控制血糖，二甲双胍是首选药物。"),
    "xiaochuan": ("哮喘", "哮喘发作时吸入沙丁胺醇。"),
}


class English(HashingEncoder):
    identity = "english-64"
    languages: frozenset[Language] = frozenset({"en"})


class Chinese(HashingEncoder):
    """Other numbers than `HashingEncoder`'s, which lie close together as E5's do."""

    identity = "chinese-64"

    def __init__(self, name: str = "chinese-64") -> None:
        self.identity = name
        self.asked: list[tuple[Kind, str]] = []

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Floats:
        self.asked += [(kind, text) for text in texts]
        vectors = super().encode(texts, kind=kind)[:, ::-1] + np.float32(0.3)
        return scale_to_unit(vectors)


def both(chinese: Chinese | None = None) -> EncoderByLanguage:
    return EncoderByLanguage(VectorMemory(English()), {"zh": VectorMemory(chinese or Chinese())})


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    rows = [{"id": id, "title": t, "content": c} for id, (t, c) in TEXTS.items()]
    file = tmp_path / "book.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with KnowledgeBase.create(tmp_path / "kb") as made:
        made.add([file], source="book")
        yield made


def vectors_of(kb: KnowledgeBase) -> dict[str, Floats]:
    numbers = range(1, len(TEXTS) + 1)
    found, passages = kb.get_vectors(numbers), kb.get_passages(numbers)
    return {passages[number].title: vector for number, vector in found.items()}


def test_every_text_has_the_vector_of_its_own_encoder(kb: KnowledgeBase) -> None:
    chinese = Chinese()
    assert kb.build(both(chinese)).encoded == 4
    assert {text[:2] for _, text in chinese.asked} == {"糖尿", "哮喘"}
    assert kb.verify() == []
    assert kb.info().languages == ("en", "zh")


def test_a_language_that_joins_leaves_the_other_vectors_as_they_are(kb: KnowledgeBase) -> None:
    kb.build(English())
    before, snapshot = vectors_of(kb), kb.snapshot
    assert kb.build(both()).encoded == 2
    after = vectors_of(kb)
    assert all(np.array_equal(after[title], before[title]) for title in ("Anaemia", "Asthma"))
    assert kb.snapshot != snapshot
    assert kb.build(both()).encoded == 0


def test_another_encoder_for_chinese_makes_its_vectors_alone_anew(kb: KnowledgeBase) -> None:
    kb.build(both())
    assert kb.build(both(Chinese("chinese-2"))).encoded == 2
    assert kb.build(English()).encoded == 0
    assert vectors_of(kb).keys() == {"Anaemia", "Asthma"}


@pytest.mark.parametrize(
    ("query", "dense"),
    [("什么药控制血糖", {"糖尿病", "哮喘"}), ("cause of anaemia", {"Anaemia", "Asthma"})],
)
async def test_a_question_is_compared_with_texts_in_its_language(
    kb: KnowledgeBase, query: str, dense: set[str]
) -> None:
    encoder = both()
    kb.build(encoder)
    hits = await HybridRetriever(kb, encoder).search(query, k=4)
    assert {hit.passage.title for hit in hits if hit.source == "dense"} <= dense
    assert hits[0].passage.title in dense


async def test_an_older_base_is_searched_by_words_in_chinese(kb: KnowledgeBase) -> None:
    kb.build(English())
    hits = await HybridRetriever(kb, both()).search("血糖", k=4)
    assert [(hit.passage.title, hit.source) for hit in hits] == [("糖尿病", "lexical")]


async def test_a_corrected_text_gets_a_vector_where_its_language_has_them(
    kb: KnowledgeBase,
) -> None:
    kb.build(English())
    kb.correct("book:xiaochuan#0", "哮喘发作时应立即吸入沙丁胺醇。", both())
    assert kb.verify() == []


async def test_what_was_found_is_remembered_by_its_own_encoder(kb: KnowledgeBase) -> None:
    chinese = Chinese()
    encoder = both(chinese)
    kb.build(encoder)
    chinese.asked.clear()
    await HybridRetriever(kb, encoder).search("血糖", k=4)
    encoder_for(encoder, "zh").encode([f"糖尿病\n{TEXTS['tangniaobing'][1]}"], kind="passage")
    assert chinese.asked == [("query", "血糖")]


def test_no_text_gives_no_vector() -> None:
    assert both().encode([], kind="passage").shape == (0, 64)


def test_encoders_of_other_lengths_do_not_stand_together() -> None:
    long = LateEncoder("long", 128, frozenset({"zh"}), HashingEncoder)
    with pytest.raises(ModelError, match="as many numbers"):
        EncoderByLanguage(English(), {"zh": long})


def test_a_late_encoder_is_loaded_once_for_its_first_text() -> None:
    loaded: list[HashingEncoder] = []

    def load() -> HashingEncoder:
        loaded.append(HashingEncoder())
        return loaded[-1]

    late = LateEncoder("late", 64, frozenset({"zh"}), load)
    assert not loaded
    late.encode(["血糖"], kind="query")
    late.encode(["血糖"], kind="passage")
    assert len(loaded) == 1


def test_languages_without_vectors_are_shared_with_none() -> None:
    assert shared_languages(English(), "zh") == frozenset()
    assert shared_languages(HashingEncoder(), "zh") == {"en", "zh"}
    assert shared_languages(both(), "zh") == {"zh"}


class _Packaged(English):
    """In the packaged encoder's place, whose weights need not be there."""


@pytest.mark.parametrize("present", [True, False])
async def test_chinese_has_its_encoder_where_the_weights_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, present: bool
) -> None:
    monkeypatch.setattr("osler.build.models.open_encoder", lambda chosen: _Packaged())
    monkeypatch.setattr("osler.build.models.is_present", lambda file: present and file == E5)
    if present:  # dimensions differ in the test alone
        monkeypatch.setattr(_Packaged, "dimension", MiniLMEncoder.dimension)
    encoder = load_encoder(Settings(home=tmp_path))
    assert ("zh" in encoder.languages) == present
    # In words, as ever, for all but the gate: cosines of E5 have another scale.
    words = await encoder_relevance(encoder).relevance("血糖", ["血糖", "火车"])
    assert words[0] > words[1] == 0
    assert (meaning_relevance(encoder, QuestionReader()) is not None) == present
