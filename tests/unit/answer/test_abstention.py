"""Why a model said nothing is told as it is."""

from pathlib import Path
from typing import Any

import pytest
from mannered_runs import IRON, run_mannered
from manners import REFUSAL, Manners

from osler.answer import NOT_SEARCHED, NOTHING_SAID
from osler.answer.abstention import explain_abstention, note_languages, read_draft
from osler.llm.reading.answers import answer_words, declines
from osler.trace import Budget, BudgetExceeded, PassagesOrdered, Run
from osler.types import Answer, Evidence, Halt, Hit, Language, Passage, Solution

SAID = IRON.text.split(". ")[0] + "."
DECLINED = [
    REFUSAL,
    "I cannot provide medical advice. Please see a doctor.",
    "I'm unable to help with that.",
    "Sorry, I can't assist with this request.",
    "As an AI language model, I cannot answer medical questions.",
    "抱歉，我无法回答医疗问题。请咨询医生。",
    "I can't recommend any specific treatment.",
    "I'm sorry, but I cannot offer medical advice on this.",
    "I cannot advise you on this. Please see a doctor.",
    "I cannot continue.",
]
ANSWERS = [
    "Iron cannot help with this. Please take folate.",
    "Patients cannot help with their care.",
    "Sorry states are treated with iron.",
    "Please take iron.",
    "I'm sorry to hear that. Iron helps.",
    "I can't recommend iron in infections: it feeds the germs.",
    "I cannot advise taking iron with milk.",
    "I cannot help with this without a test of ferritin [1].",
    "",
]


@pytest.mark.parametrize("text", DECLINED)
def test_a_model_that_declines_says_nothing(text: str) -> None:
    run = Run()
    assert declines(text)
    assert read_draft(text, run) == ""
    assert run.unsaid == "the model declined to answer"


@pytest.mark.parametrize(
    "text",
    ["I don't have enough information to answer this.", "The references do not mention this."],
)
def test_what_the_references_lack_is_no_answer_and_no_refusal(text: str) -> None:
    run = Run()
    assert read_draft(text, run) == ""
    assert run.unsaid == ""


def test_what_was_read_or_refused_by_the_budget_was_not_left_unsearched() -> None:
    silent = Solution(Answer(note=NOTHING_SAID["en"]), Halt.NO_EVIDENCE, "nothing was found")
    planned, spent = Run(), Run(budget=Budget(searches=0))
    planned.emit(PassagesOrdered(("book:a#0",)))  # found when the plan was made
    with pytest.raises(BudgetExceeded):
        spent.require_budget("search")
    assert [explain_abstention(silent, run).answer.note for run in (planned, spent)] == [
        NOTHING_SAID["en"]
    ] * 2
    assert explain_abstention(silent, Run()).answer.note == NOT_SEARCHED["en"]


@pytest.mark.parametrize("text", ANSWERS)
def test_what_answers_does_not_decline(text: str) -> None:
    assert not declines(text)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("**Answer:** Iron helps.[^1] I hope this helps!", "Iron helps.[1]"),
        ("<think>Is it?</think>\nIron helps (Reference 2).", "Iron helps [2]."),
        ("Iron helps the blood. [1] Iron helps the blood. [1]", "Iron helps the blood. [1]"),
        ("- Yes.\n- Iron.\n- Yes.", "- Yes.\n- Iron.\n- Yes."),
    ],
)
def test_an_answer_is_what_is_said_once(reply: str, words: str) -> None:
    assert answer_words(reply) == words


@pytest.mark.parametrize("where", ["text", "apart", "template"])
@pytest.mark.parametrize("kind", ["rag", "cot", "direct", "search-o1", "fs-rag", "tc-rag"])
async def test_cut_thinking_is_told_as_such(kind: str, where: Any, tmp_path: Path) -> None:
    manners = Manners(thinking=where, thought_tokens=4000)
    done = await run_mannered({"kind": kind}, manners, tmp_path)
    assert "cut while thinking" in done.solution.why
    assert done.solution.halt is Halt.BUDGET
    assert "cut while it was thinking" in done.text
    assert "Let me think" not in done.text
    assert done.chats <= 4


@pytest.mark.parametrize("kind", ["rag", "cot", "chain-of-note", "fs-rag", "react"])
async def test_a_refusal_is_no_answer(kind: str, tmp_path: Path) -> None:
    done = await run_mannered({"kind": kind}, Manners(refuses=True), tmp_path)
    assert done.solution.answer.is_silent
    assert "declined" in done.solution.why
    assert "sorry" not in done.text


@pytest.mark.parametrize("kind", ["rag", "direct", "cot", "omni-rag"])
async def test_an_answer_that_was_cut_is_told_as_such(kind: str, tmp_path: Path) -> None:
    done = await run_mannered({"kind": kind}, Manners(), tmp_path, sampling={"max_tokens": 6})
    assert not done.solution.answer.is_silent
    assert SAID not in done.text
    assert "its tokens ended before its last sentence did" in done.text
    assert done.solution.halt is Halt.BUDGET
    assert "raise sampling.max_tokens" in done.solution.why


async def test_an_answer_whose_last_sentence_ended_is_not_told_as_cut(tmp_path: Path) -> None:
    done = await run_mannered({"kind": "rag"}, Manners(), tmp_path)
    assert "cut" not in f"{done.text} {done.solution.why}"


def test_citations_in_another_language_than_the_answer_are_named() -> None:
    texts: dict[Language, str] = {
        "zh": "痛风急性发作时可用秋水仙碱。",
        "en": "Colchicine is given for gout.",
    }
    passages = (Passage(f"book:{one}#0", texts[one], "book", "Gout", language=one) for one in texts)
    evidence = tuple(Evidence(Hit(one, 1.0, 1, "q", "lexical"), 0, 5) for one in passages)
    told = {
        one: note_languages(Solution(Answer(evidence=evidence, language=one), Halt.CONVERGED, ""))
        for one in texts
    }
    assert told["zh"].answer.note.endswith("引自英文资料：[2]。")
    assert told["en"].answer.note.endswith("Quoted from texts in Chinese: [1].")
    own = Solution(Answer(evidence=evidence[:1], language="zh"), Halt.CONVERGED, "")
    assert note_languages(own) is own
