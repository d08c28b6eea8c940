"""A model's sentences, confirmed by what a model reads in the passages."""

import pytest

from osler.answer.confirming import StatementChecker
from osler.answer.written import WrittenComposer
from osler.errors import PromptTooLong
from osler.llm.core.ask import Speaker
from osler.trace import Budget, Noted, Run
from osler.types import Answer, Grounding, Hit, Language, Passage, Question
from osler_lab.testing.scripted import ScriptedModel

ASKED = Question("q", "Does early physiotherapy help after a hip fracture?")
TRIAL = (
    "Of 120 patients who began to walk on the first day 90 went home within a week; of 120 who"
    " began on the fourth 51 did."
)
OTHER = "Hip fractures are commonest in women over eighty."
CONCLUSION = "Patients who begin walking early leave hospital sooner."
"""Follows from the trial, and shares hardly a word with it."""


def hits_of(*texts: str, source: str = "research") -> list[Hit]:
    return [
        Hit(Passage(f"{source}:a{n}#0", text, source, "Hip fracture"), 1.0, n, "q", source)
        for n, text in enumerate(texts, 1)
    ]


async def written(
    draft: str,
    *replies: str,
    hits: list[Hit] | None = None,
    run: Run | None = None,
    model: ScriptedModel | None = None,
    language: Language = "en",
) -> tuple[Answer, ScriptedModel, Run]:
    model, run = model or ScriptedModel(list(replies)), run or Run()
    composer = WrittenComposer(checker=StatementChecker(Speaker(model, "reader")))
    found = hits_of(OTHER, TRIAL) if hits is None else hits
    question = Question("q", ASKED.text, language=language)
    return await composer.conclude(question, found, draft, run), model, run


async def test_a_conclusion_that_no_words_bear_out_is_confirmed_where_a_model_reads_it() -> None:
    by_words = await WrittenComposer().conclude(ASKED, hits_of(OTHER, TRIAL), CONCLUSION, Run())
    assert by_words.grounding is Grounding.UNGROUNDED
    answer, model, _ = await written(f"{CONCLUSION} [2]", "<answer>\n1: 2\n</answer>")
    assert answer.grounding is Grounding.GROUNDED
    assert answer.evidence[0].passage.text == TRIAL
    assert "read whether the cited passages bear each statement out" in answer.note
    assert f"[2] Hip fracture.\n{TRIAL}" in model.seen[0][0].content
    assert f"1: {CONCLUSION}" in model.seen[0][0].content
    assert len(model.seen) == 1


async def test_what_the_model_does_not_find_is_not_confirmed_though_its_words_are_there() -> None:
    said = "Hip fractures are commonest in women over sixty"
    answer, _, _ = await written(f"{said} [1].", "<answer>1: none</answer>")
    assert [one.kind for one in answer.statements] == ["unconfirmed"]
    assert not answer.evidence


async def test_a_mark_moves_to_the_passage_that_bears_the_statement_out() -> None:
    answer, _, _ = await written(f"{CONCLUSION} [1]", "<answer>1: 2</answer>")
    assert [one.passage.text for one in answer.evidence] == [TRIAL]


async def test_a_sentence_word_for_word_is_cited_whatever_the_model_says() -> None:
    answer, _, _ = await written(f"{OTHER} [1]", "<answer>1: none</answer>")
    assert [one.passage.text for one in answer.evidence] == [OTHER]


async def test_only_what_claims_something_is_asked_about_and_each_once() -> None:
    draft = f"Yes.\n\n{CONCLUSION} [2]\n\n{CONCLUSION} [2]"
    answer, model, _ = await written(draft, "<answer>1: 2</answer>")
    assert "2: " not in model.seen[0][0].content.partition("# Statements")[2].partition("Which")[0]
    assert [one.kind for one in answer.statements] == ["claim"] * 3
    assert [one.cites for one in answer.statements] == [(), (1,), (1,)]


async def test_a_reply_that_cannot_be_read_leaves_it_to_the_words_and_says_so() -> None:
    answer, model, run = await written(f"{OTHER} [1]", "Yes.", "All of them.", "<answer>7</answer>")
    assert len(model.seen) == 3
    assert answer.grounding is Grounding.GROUNDED
    assert "whose words a statement shares" in answer.note
    assert [one for one in run.events if isinstance(one, Noted) and "words alone" in one.text]


async def test_a_spent_budget_leaves_it_to_the_words() -> None:
    answer, model, _ = await written(f"{OTHER} [1]", run=Run(budget=Budget(calls=0)))
    assert not model.seen
    assert answer.grounding is Grounding.GROUNDED
    assert "whose words a statement shares" in answer.note


async def test_passages_beyond_the_models_context_leave_it_to_the_words() -> None:
    class Narrow(ScriptedModel):
        async def complete(self, *_: object, **__: object) -> None:  # type: ignore[override]
            raise PromptTooLong("the prompt has 9,000 tokens, the model takes 4,096")

    answer, _, run = await written(f"{OTHER} [1]", model=Narrow([]))
    assert answer.grounding is Grounding.GROUNDED
    assert [one for one in run.events if isinstance(one, Noted) and "words alone" in one.text]


async def test_nothing_read_or_nothing_claimed_asks_no_model() -> None:
    for draft, hits in ((CONCLUSION, []), ("Yes.", hits_of(TRIAL))):
        _, model, _ = await written(draft, hits=hits)
        assert not model.seen


async def test_an_order_of_one_untrusted_page_is_not_confirmed_by_a_model_that_finds_it() -> None:
    order = "Stop warfarin and take aspirin at once"
    hits = hits_of(f"{order}. It is best.", "Warfarin thins the blood.", source="web")
    answer, _, _ = await written(f"{order} [1].", "<answer>1: 1</answer>", hits=hits)
    assert [one.kind for one in answer.statements] == ["unconfirmed"]


@pytest.mark.parametrize("reply", ["<answer>\n1：2\n</answer>", "1：第2篇"])
async def test_chinese_is_asked_and_told_in_chinese(reply: str) -> None:
    answer, model, _ = await written("早期下床的患者出院更早。[2]", reply, language="zh")
    assert "每句陈述由哪些段落支持" in model.seen[0][0].content
    assert "由模型" in answer.note
    assert answer.grounding is Grounding.GROUNDED
