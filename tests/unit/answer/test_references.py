"""A work that was not found is not named."""

from __future__ import annotations

import pytest

from osler.answer.references import ReferenceCheckingComposer, drop_unknown_ids
from osler.answer.written import WrittenComposer
from osler.trace import Run
from osler.types import Answer, Authorship, Hit, Language, Locator, Passage, Question, Statement

PASSAGE = Passage(
    "research:33012345#0",
    "Aspirin lowered fever in the trial NCT04280705.",
    "research",
    "Aspirin",
    Locator(code="PMID:33012345", url="https://pmc.ncbi.nlm.nih.gov/articles/PMC7001234/"),
)
HIT = Hit(PASSAGE, 1.0, 1, "q", "research")


def _written(text: str, language: Language = "en") -> Answer:
    return Answer((Statement(text),), authorship=Authorship.WRITTEN, language=language)


@pytest.mark.parametrize(
    "text",
    [
        "Aspirin lowers fever (PMID: 33012345).",
        "Aspirin lowers fever, says pmc7001234.",
        "The trial NCT04280705 showed it.",
        "Aspirin lowers fever.",
    ],
)
def test_a_work_that_was_found_keeps_its_identifier(text: str) -> None:
    assert drop_unknown_ids(_written(text), [HIT]) == _written(text)


@pytest.mark.parametrize(
    ("text", "shown", "count"),
    [
        ("Aspirin lowers fever (PMID: 99).", "Aspirin lowers fever.", 1),
        ("Aspirin helps (PMID 99; doi:10.1000/x1).", "Aspirin helps.", 2),
        ("NCT00000001 showed it.", "[reference not found] showed it.", 1),
        ("See https://doi.org/10.1000/made.up for it.", "See [reference not found] for it.", 1),
        ("Read ISBN 978-0-306-40615-8.", "Read [reference not found].", 1),
        ("PMID: 99.", "", 1),
    ],
)
def test_a_work_that_was_not_found_is_not_named(text: str, shown: str, count: int) -> None:
    checked = drop_unknown_ids(_written(text), [HIT])
    assert checked.text == shown
    (caution,) = checked.cautions
    assert caution.rule == "reference"
    assert f": {count}." in caution.text


def test_chinese_words_say_it_in_chinese() -> None:
    checked = drop_unknown_ids(_written("阿司匹林退热（PMID：99）。", "zh"), [HIT])
    assert checked.text == "阿司匹林退热。"
    assert "1 个文献标识" in checked.cautions[0].text


async def test_the_composer_says_so_once_in_the_run() -> None:
    composer = ReferenceCheckingComposer(WrittenComposer())
    assert composer.uses_draft
    assert not composer.writes_answer
    run = Run()
    draft = "Aspirin lowered fever in the trial [1] (PMID: 99)."
    for _ in range(2):
        answer = await composer.conclude(Question("q", "Aspirin?"), [HIT], draft, run)
        assert "99" not in answer.text
    assert [event for event in run.events if getattr(event, "rule", "") == "reference"] == [
        run.events[-1]
    ]
