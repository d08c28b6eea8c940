"""Quotes picked by a model that names sentences and writes none."""

import random
from dataclasses import replace

import pytest

from osler.answer import NOTHING_SAID
from osler.answer.extractive import ExtractiveComposer
from osler.answer.gate import EvidenceGate
from osler.answer.picking import SHOWN, QuotePicker
from osler.llm.core.ask import Speaker
from osler.retrieve.relevance import OverlapRelevance
from osler.trace import Asked, Budget, Noted, Run
from osler.types import Answer, Grounding, Hit, Passage, Question
from osler_lab.testing.scripted import ScriptedModel

DOSE = "Adrenaline 500 micrograms is given into the outer thigh in anaphylaxis."
CAUSE = "Anaphylaxis of adults is most often caused by drugs, food and stings."
AFTER = "It is repeated after five minutes when there is no improvement of anaphylaxis."
TEXT = f"{CAUSE}\n{DOSE}\n{AFTER}"
ASKED = Question("q", "adrenaline in anaphylaxis of adults")
HITS = [Hit(Passage("book:a#0", TEXT, "book", "Allergy"), 1.0, 1, "q", "book")]

GATE = EvidenceGate(OverlapRelevance(), answers=0.0, nearest=0.0, judged=SHOWN)


async def answer(
    *replies: str, question: Question = ASKED, hits: list[Hit] = HITS, run: Run | None = None
) -> tuple[Answer, ScriptedModel, Run]:
    model, run = ScriptedModel(list(replies)), run or Run()
    composer = ExtractiveComposer(GATE, picker=QuotePicker(Speaker(model, "reader")))
    return await composer.conclude(question, hits, "", run), model, run


def number_of(sentence: str, shown: str) -> int:
    """Its number in the prompt."""
    line = next(line for line in shown.splitlines() if sentence in line)
    return int(line[1 : line.index("]")])


async def shown_numbers(*sentences: str) -> list[int]:
    _, model, _ = await answer("<answer>none</answer>")
    return [number_of(one, model.seen[0][0].content) for one in sentences]


async def test_what_the_model_names_is_quoted_in_its_order_and_nothing_else() -> None:
    cause, dose = await shown_numbers(CAUSE, DOSE)
    given, model, run = await answer(f"<answer>{dose}, {cause}</answer>")
    assert given.statements[0].text.startswith(DOSE)
    assert [one.text for one in given.statements[1:]] == [CAUSE]
    assert all(one.use == "answer" for one in given.evidence)
    assert given.grounding is Grounding.GROUNDED
    assert given.sureness is None
    assert "chose which sentences answer" in given.note
    assert len(model.seen) == 1
    assert [one.prompt.split("@")[0] for one in run.events if isinstance(one, Asked)] == [
        "answer/pick"
    ]


async def test_none_is_no_answer_but_shows_what_is_nearest_called_so() -> None:
    given, _, _ = await answer("None of these says it.\n<answer>none</answer>")
    assert given.statements[0].text.startswith("What was found does not say this directly")
    assert all(one.use == "nearest" for one in given.evidence)
    assert NOTHING_SAID["en"] not in given.note


@pytest.mark.parametrize(
    "reply",
    [
        "{}",
        "**Answer:** [{}]",
        "<think>Sentence 1 is a cause, 3 a repeat.</think>\n\n<answer>{}</answer>",
        '```json\n{{"answer": [{}]}}\n```',
        " \\boxed{{{}}}",
        "The dose is what is asked for.\n\nAnswer: {}",
    ],
)
async def test_replies_in_many_manners_are_read(reply: str) -> None:
    (dose,) = await shown_numbers(DOSE)
    filled = reply.format(dose)
    given, _, _ = await answer(filled if filled != str(dose) else f"\n{dose}\n\n{dose}")
    assert given.statements[0].text.startswith(DOSE)
    assert len(given.evidence) == 1


async def test_where_no_reply_can_be_read_the_judge_decides_and_it_is_said() -> None:
    given, model, run = await answer("I like them all.", "17", "<answer>0, 99</answer>")
    assert len(model.seen) == 3
    assert given.statements
    assert "could not be read; the packaged judge chose" in given.note
    assert given.sureness is not None
    assert [one for one in run.events if isinstance(one, Noted) and "picked" in one.text]


async def test_a_spent_budget_leaves_it_to_the_judge() -> None:
    given, model, _ = await answer(run=Run(budget=Budget(calls=0)))
    assert not model.seen
    assert given.statements
    assert given.sureness is not None
    assert "budget was spent" in given.note
    assert "could not be read" not in given.note


async def test_nothing_found_asks_no_model() -> None:
    given, model, _ = await answer(hits=[])
    assert not model.seen
    assert not given.statements


async def test_an_option_is_borne_out_by_the_judges_quotes() -> None:
    asked = replace(ASKED, options=("adrenaline", "cetirizine"))
    model = ScriptedModel([], scores={"adrenaline": 0.4, "cetirizine": 0.1})
    composer = ExtractiveComposer(GATE, model, picker=QuotePicker(Speaker(model, "reader")))
    given = await composer.conclude(asked, HITS, "", Run())
    assert given.option == "A"
    assert given.statements
    assert "could not be read" not in given.note
    assert "chose which sentences" not in given.note


async def test_chinese_is_asked_and_told_in_chinese() -> None:
    text = "肾上腺素500微克肌内注射。"
    hits = [Hit(Passage("book:b#0", text, "book", "过敏", language="zh"), 1.0, 1, "q", "book")]
    asked = Question("q", "肾上腺素剂量多少", language="zh")
    given, model, _ = await answer("<answer>1</answer>", question=asked, hits=hits)
    assert "哪些句子回答了" in model.seen[0][0].content
    assert given.statements[0].text == text
    assert "由模型" in given.note


async def test_a_sentence_is_shown_with_what_it_would_be_quoted_with() -> None:
    hits = [Hit(Passage("book:a#0", f"{DOSE} {AFTER}", "book", "Allergy"), 1.0, 1, "q", "book")]
    _, model, _ = await answer("<answer>none</answer>", hits=hits)
    shown = model.seen[0][0].content
    assert f"Allergy: {DOSE} {AFTER}" in shown


@pytest.mark.parametrize("seed", range(20))
async def test_whatever_is_named_is_verbatim_in_its_passage(seed: int) -> None:
    drawn = random.Random(seed)
    named = ", ".join(map(str, drawn.sample(range(1, 4), drawn.randint(1, 3))))
    given, _, _ = await answer(f"<answer>{named}</answer>")
    assert all(one.text in TEXT for one in given.statements)
    assert len({one.text for one in given.statements}) == len(given.statements)
