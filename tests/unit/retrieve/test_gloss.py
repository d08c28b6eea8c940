"""A question's words in the other language, and the texts that are found by them."""

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.kb.base import KnowledgeBase
from osler.kb.search.base import PassageFilter
from osler.retrieve.asked import QuestionReader
from osler.retrieve.gloss import gloss_question, other_language
from osler.retrieve.hybrid import HybridRetriever, retriever_over
from osler.text import language_of
from osler.types import Language
from osler_lab.testing.scripted import HashingEncoder

TEXTS = {
    "gout": ("Gout", "Colchicine is given for the acute attack of gout."),
    "asthma": ("Asthma", "Salbutamol opens the airways in an attack of asthma."),
    "tongfeng": ("痛风", "痛风急性发作时可用秋水仙碱。"),
    "xiaochuan": ("哮喘", "哮喘发作时吸入沙丁胺醇。"),
}


class EnglishOnly(HashingEncoder):
    languages: frozenset[Language] = frozenset({"en"})


@pytest.fixture
def kb(tmp_path: Path) -> KnowledgeBase:
    made = KnowledgeBase.create(tmp_path / "kb")
    rows = [{"id": id, "title": t, "content": c} for id, (t, c) in TEXTS.items()]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    made.add([file], source="book")
    made.build(EnglishOnly())
    return made


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("痛风急性发作怎么治？", ("gout", "acute", "attack", "treatment")),
        (
            "阿司匹林 and warfarin 能一起吃吗",
            ("aspirin", "and", "warfarin", "can", "take together"),
        ),
        ("How is acute gout treated?", ("急性", "痛风", "治疗")),
        ("Is Coumadin safe in pregnancy?", ("华法林", "抗凝", "维生素K", "安全", "怀孕")),
        ("帆船甲板", ()),
    ],
)
def test_words_stand_in_the_order_of_the_question(text: str, words: tuple[str, ...]) -> None:
    assert gloss_question(text).words == words


def test_what_has_no_word_is_not_covered() -> None:
    assert gloss_question("痛风怎么治").covered == 1.0
    assert gloss_question("痛风和邻居的帆船怎么治").covered < 0.8
    assert gloss_question("邻居的帆船").covered == 0.0


@given(st.text(max_size=60))
def test_any_text_has_a_share_between_none_and_all(text: str) -> None:
    assert 0.0 <= gloss_question(text).covered <= 1.0


@pytest.mark.parametrize(
    ("query", "own", "across"),
    [("痛风发作用什么药治疗", "痛风", "Gout"), ("drug treatment of acute gout", "Gout", "痛风")],
)
def test_texts_in_the_other_language_are_found_behind_those_in_the_question_s(
    kb: KnowledgeBase, query: str, own: str, across: str
) -> None:
    hits = asyncio.run(retriever_over(kb, EnglishOnly()).search(query, k=4))
    titles = [hit.passage.title for hit in hits]
    assert titles[0] == own
    assert across in titles
    languages = [language_of(title) == language_of(own) for title in titles]
    assert languages == sorted(languages, reverse=True)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))


def test_the_other_language_has_at_most_a_quarter_where_there_is_enough_of_its_own(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    file = tmp_path / "more.jsonl"
    rows = [{"id": f"n{n}", "title": "痛风", "content": f"痛风发作{n}。"} for n in range(20)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    kb.add([file], source="wiki")
    kb.build(EnglishOnly())
    hits = asyncio.run(retriever_over(kb, EnglishOnly()).search("痛风发作治疗", k=8))
    assert len(hits) == 8
    assert sum(hit.passage.language == "en" for hit in hits) <= 2


def test_an_encoder_of_both_languages_finds_no_passage_twice(kb: KnowledgeBase) -> None:
    kb.build(HashingEncoder(), rebuild=True)
    hits = asyncio.run(retriever_over(kb, HashingEncoder()).search("acute attack of gout", k=4))
    ids = [hit.passage.id for hit in hits]
    assert len(ids) == len(set(ids)) == 4


def test_a_filter_on_the_language_keeps_the_other_out(kb: KnowledgeBase) -> None:
    within = PassageFilter(languages=("zh",))
    search = HybridRetriever(kb, EnglishOnly(), within, reader=QuestionReader())
    hits = asyncio.run(search.search("痛风发作用什么药治疗", k=4))
    assert {hit.passage.language for hit in hits} == {"zh"}


def test_there_are_two_languages() -> None:
    assert (other_language("en"), other_language("zh")) == ("zh", "en")
