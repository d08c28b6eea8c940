"""A corrected passage is found at once, and only by what it says now."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from osler.errors import KnowledgeBaseError, KnowledgeBaseUnbuilt, UnknownPassage
from osler.kb.base import KnowledgeBase
from osler_lab.testing.scripted import HashingEncoder

TEXTS = {"gout": "Urate crystals form.", "scurvy": "Vitamin is low.", "cough": "Airways narrow."}


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    path = tmp_path / "book.jsonl"
    rows = [{"id": id, "title": id.title(), "content": text} for id, text in TEXTS.items()]
    path.write_text("\n".join(map(json.dumps, rows)))
    with KnowledgeBase.create(tmp_path / "kb") as made:
        made.add([path], source="book")
        yield made


def by_word(kb: KnowledgeBase, word: str) -> list[str]:
    return [passage.text for passage, _ in kb.by_words([word], k=5)]


def by_meaning(kb: KnowledgeBase, text: str) -> str:
    encoder = HashingEncoder()
    (vector,) = encoder.encode([text], kind="query")
    return kb.by_vector(vector, encoder=encoder.identity, k=1)[0][0].text


def test_a_corrected_passage_is_found_by_words_and_meaning_at_once(kb: KnowledgeBase) -> None:
    encoder = HashingEncoder()
    before = kb.build(encoder).snapshot
    assert by_meaning(kb, "Scurvy Vitamin is low.") == "Vitamin is low."  # it holds the vectors
    corrected = kb.correct("book:scurvy#0", "Ascorbate is absent.", encoder)
    assert (corrected.id, corrected.text) == ("book:scurvy#0", "Ascorbate is absent.")
    assert kb.get("book:scurvy#0") == corrected
    assert by_word(kb, "ascorbate") == ["Ascorbate is absent."]
    assert by_word(kb, "vitamin") == []
    assert by_meaning(kb, "Scurvy Ascorbate is absent.") == "Ascorbate is absent."
    assert kb.count_unindexed(encoder.identity) == 0
    assert kb.snapshot != before
    assert kb.verify() == []


def test_vectors_that_are_held_are_not_read_again(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = HashingEncoder()
    kb.build(encoder)
    by_meaning(kb, "Cough Airways narrow.")
    monkeypatch.setattr("osler.kb.search.base.load_vectors", None)
    monkeypatch.setattr("osler.kb.index.sum_contents", None)  # nor are all texts hashed
    for text in ("Ascorbate is absent.", "Gums bleed.", "Collagen fails."):
        kb.correct("book:scurvy#0", text, encoder)
        assert by_meaning(kb, f"Scurvy {text}") == text
    kb.correct("book:gout#0", "Tophi grow.", encoder)
    kb.correct("book:gout#0", "Toes swell.", encoder)
    assert by_meaning(kb, "Gout Toes swell.") == "Toes swell."
    assert by_meaning(kb, "Scurvy Collagen fails.") == "Collagen fails."


def test_a_passage_that_had_no_vector_gets_one(kb: KnowledgeBase) -> None:
    class English(HashingEncoder):
        languages = frozenset({"en"})

    kb.build(English())
    by_meaning(kb, "Cough Airways narrow.")
    kb.correct("book:gout#0", "尿酸盐结晶形成。", English())
    by_meaning(kb, "Cough Airways narrow.")
    kb.correct("book:gout#0", "Sodium urate forms.", English())
    assert by_meaning(kb, "Gout Sodium urate forms.") == "Sodium urate forms."


def test_after_many_corrections_a_build_is_asked_for(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = HashingEncoder()
    kb.build(encoder)
    monkeypatch.setattr("osler.kb.index._MOST_CORRECTIONS", 2)
    kb.correct("book:gout#0", "Tophi grow.", encoder)
    kb.require_built(encoder.identity)
    kb.correct("book:cough#0", "Mucus gathers.", encoder)
    with pytest.raises(KnowledgeBaseUnbuilt):
        kb.require_built(encoder.identity)
    kb.build(encoder)
    assert by_meaning(kb, "Cough Mucus gathers.") == "Mucus gathers."
    assert kb.verify() == []


def test_the_state_that_a_build_would_make_is_the_same(kb: KnowledgeBase) -> None:
    encoder = HashingEncoder()
    kb.build(encoder)
    kb.correct("book:gout#0", "Sodium urate forms.", encoder)
    told = kb.snapshot
    assert kb.build(encoder, rebuild=True).snapshot == told


def test_an_unbuilt_knowledge_base_is_corrected_and_stays_unbuilt(kb: KnowledgeBase) -> None:
    kb.correct("book:gout#0", "Sodium urate forms.", None)
    assert by_word(kb, "sodium") == ["Sodium urate forms."]
    assert kb.build(HashingEncoder()).encoded == 3


def test_the_same_text_changes_nothing(kb: KnowledgeBase) -> None:
    built = kb.build(HashingEncoder())
    kb.correct("book:gout#0", TEXTS["gout"], HashingEncoder())
    assert kb.snapshot == built.snapshot


def test_a_text_in_another_language_is_found_by_words(kb: KnowledgeBase) -> None:
    class English(HashingEncoder):
        languages = frozenset({"en"})

    kb.build(English())
    assert kb.correct("book:gout#0", "尿酸盐结晶形成。", English()).language == "zh"
    assert by_word(kb, "尿酸") == ["尿酸盐结晶形成。"]
    assert kb.verify() == []


def test_what_is_not_there_and_what_says_nothing_are_refused(kb: KnowledgeBase) -> None:
    with pytest.raises(UnknownPassage, match="book:none"):
        kb.correct("book:none#0", "x", None)
    with pytest.raises(KnowledgeBaseError, match="empty"):
        kb.correct("book:gout#0", " \n", None)
    assert by_word(kb, "urate") == [TEXTS["gout"]]


def test_a_file_that_stays_keeps_the_correction(kb: KnowledgeBase, tmp_path: Path) -> None:
    kb.correct("book:gout#0", "Sodium urate forms.", None)
    kb.update()
    kb.update(checksum=True)
    assert by_word(kb, "sodium") == ["Sodium urate forms."]
