"""The sample knowledge base: what it promises, checked on the base that is really built from it."""

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from osler.build import knowledge
from osler.build.knowledge import build_sample, open_knowledge_base
from osler.kb.base import KnowledgeBase
from osler.retrieve.instructions import blank_instructions, has_blanked_order
from osler.settings import Settings
from osler.sources.catalogue import ALL_SOURCES, TRIAL
from osler_lab.testing.scripted import HashingEncoder

SAMPLE = Path(str(files("osler.sample")))
FILES = ("questions_en.jsonl", "questions_zh.jsonl", "calibration_en.jsonl", "calibration_zh.jsonl")


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    """The sample texts through the real parsers; only the vectors are a double's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knowledge, "load_encoder", lambda settings: HashingEncoder())
        settings = Settings.model_validate({"home": tmp_path_factory.mktemp("home")})
        build_sample(settings)
        with open_knowledge_base(settings) as built:
            yield built


def rows(name: str) -> list[dict[str, object]]:
    text = (SAMPLE / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


QUESTIONS = [row for name in FILES[:2] for row in rows(name)]
GOLD = [
    (row["id"], gold["passage"], gold["quote"])
    for name in FILES
    for row in rows(name)
    for gold in row["gold"]  # type: ignore[attr-defined]
]


def test_sample_has_every_source_in_its_native_format(kb: KnowledgeBase) -> None:
    assert set(kb.sources) == {*ALL_SOURCES} - {TRIAL}


def test_sample_has_enough_passages_in_both_languages(kb: KnowledgeBase) -> None:
    info = kb.info()
    texts = [s for s in info.sources if s.source not in ("graph", "emr")]
    count = {"en": 0, "zh": 0}
    for id in passage_ids(kb):
        passage = kb.get(id)
        if passage.source in {s.source for s in texts}:
            count[passage.language] += 1
    assert count["en"] >= 150
    assert count["zh"] >= 40


def passage_ids(kb: KnowledgeBase) -> list[str]:
    import sqlite3

    with sqlite3.connect(kb.path / "kb.sqlite") as db:
        return [row[0] for row in db.execute("SELECT id FROM passage")]


def test_all_of_it_is_marked_as_illustrative_and_leads_to_no_invented_address(
    kb: KnowledgeBase,
) -> None:
    passages = [kb.get(id) for id in passage_ids(kb)]
    assert all(passage.illustrative for passage in passages)
    assert all(passage.licence == "Apache-2.0" for passage in passages)
    assert {passage.locator.url for passage in passages} == {""}
    assert max(len(passage.text) for passage in passages) <= 1_000


def test_only_what_is_meant_to_be_dropped_is_dropped(kb: KnowledgeBase) -> None:
    drops = {s.source: dict(s.drops) for s in kb.info().sources if s.drops}
    assert drops == {"graph": {"obsolete term": 1}}


def test_sample_knowledge_base_verifies(kb: KnowledgeBase) -> None:
    assert kb.verify() == []


def test_forty_questions_of_three_kinds_in_two_languages() -> None:
    kinds = [row["kind"] for row in QUESTIONS]
    assert (kinds.count("choice"), kinds.count("yesno"), kinds.count("open")) == (20, 10, 10)
    assert [row["language"] for row in QUESTIONS].count("zh") == 10
    assert len({row["id"] for row in QUESTIONS}) == 40


@pytest.mark.parametrize(("id", "passage", "quote"), GOLD)
def test_a_gold_passage_says_what_answers_the_question(
    kb: KnowledgeBase, id: str, passage: str, quote: str
) -> None:
    assert " ".join(quote.split()) in " ".join(kb.get(passage).text.split())


def test_no_question_that_is_reported_on_is_used_to_calibrate() -> None:
    reported = {row["question"] for row in QUESTIONS}
    assert not reported & {row["question"] for name in FILES[2:] for row in rows(name)}


def test_no_passage_loses_an_order_to_a_clinician(kb: KnowledgeBase) -> None:
    for id in passage_ids(kb):
        assert not has_blanked_order(blank_instructions(kb.get(id)).text), id
