"""State values that compare an answer with its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import pytest

from osler.errors import CapabilityMissing
from osler.llm.core.base import Message, Scored
from osler.methods.tcrag.evidence_values import (
    EvidenceGain,
    OptionEntropy,
    QuestionGain,
    SemanticEntropy,
    entropy_of,
    read_documents,
)
from osler.methods.tcrag.monitor import Draft
from osler.methods.tcrag.stack import FrameKind, MemoryStack
from osler.testing.scripted import ScriptedModel, tokens_of
from osler.trace import Run
from osler.types import Answer, Evidence, Hit, Passage, Question, Statement

OPEN = Question("q", "What does amiodarone do to warfarin?")
CHOICE = Question("q", OPEN.text, ("It raises the INR", "It lowers the INR"))
SAID = "It slows the clearance of warfarin."
PASSAGE = Passage("book:inr#0", f"Amiodarone is an antiarrhythmic. {SAID}", "book", "INR")
OTHER = Passage("book:tea#0", "Tea is drunk in many countries.", "book", "Tea")


def hit(passage: Passage) -> Hit:
    return Hit(passage, 1.0, 1, OPEN.text, passage.source)


def memory(question: Question = OPEN, *passages: Passage) -> MemoryStack:
    stack = MemoryStack(question)
    stack.push(FrameKind.OBSERVATION, "", hits=tuple(map(hit, passages)))
    return stack


def quoted(passage: Passage, text: str) -> Answer:
    start = passage.text.index(text)
    return Answer((Statement(text, (1,)),), (Evidence(hit(passage), start, start + len(text)),))


@dataclass
class Reader:
    """Gives each text after a context that holds a key the key's probability, else 1/8."""

    likely: dict[str, float]
    name: str = "reader"

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        said = context if isinstance(context, str) else context[0].content
        found = [value for key, value in self.likely.items() if key in f"{said}\n{text}"]
        return Scored(tokens_of(text, found[0] if found else 1 / 8))


async def test_the_gain_is_the_ratio_of_two_perplexities() -> None:
    monitor = EvidenceGain(Reader({PASSAGE.text: 1 / 2}))
    draft = Draft(SAID, answer=quoted(PASSAGE, SAID))
    assert (await monitor.state_value(draft, memory(), Run())).value == pytest.approx(2 / 8)
    # Of passages that say nothing of it the text is as likely as before.
    other = Draft(SAID, answer=quoted(OTHER, OTHER.text))
    assert (await monitor.state_value(other, memory(), Run())).value == pytest.approx(1.0)


async def test_the_whole_gain_grows_with_the_text_and_stays_a_number() -> None:
    monitor = EvidenceGain(Reader({PASSAGE.text: 1 / 2}), whole=True)
    draft = Draft(SAID, answer=quoted(PASSAGE, SAID))
    n = len(tokens_of(SAID, 1.0))
    valued = await monitor.state_value(draft, memory(), Run())
    assert valued.value == pytest.approx((2 / 8) ** n)
    long = Draft(f"{SAID} " * 200, answer=quoted(PASSAGE, SAID))
    assert 0 < (await monitor.state_value(long, memory(), Run())).value < 1e-300


async def test_a_question_is_likelier_after_a_text_on_its_subject() -> None:
    monitor = QuestionGain(Reader({SAID: 1 / 4}))
    assert (await monitor.state_value(Draft(SAID), memory(), Run())).value == pytest.approx(0.5)
    value = (await monitor.state_value(Draft(OTHER.text), memory(), Run())).value
    assert value == pytest.approx(1.0)


class Options:
    """Holds the first option likelier where there are documents."""

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        sure = "# Documents" in str(context) and text == CHOICE.options[0]
        return Scored(tokens_of(text, 1 / 2 if sure else 1 / 8))


async def test_evidence_that_speaks_for_one_option_takes_entropy_away() -> None:
    model = ScriptedModel([], scores={CHOICE.options[0]: 1 / 2, CHOICE.options[1]: 1 / 8})
    draft = Draft(SAID, answer=quoted(PASSAGE, SAID))
    valued = await OptionEntropy(model).state_value(draft, memory(CHOICE), Run())
    shares = [0.8, 0.2]  # 1/2 against 1/8
    assert valued.value == pytest.approx(-sum(p * log(p) for p in shares) / log(2))
    unread = OptionEntropy(model, change=True)  # this model reads no documents
    assert (await unread.state_value(draft, memory(CHOICE), Run())).value == pytest.approx(1.0)
    read = OptionEntropy(Options(), change=True)
    assert (await read.state_value(draft, memory(CHOICE), Run())).value < 0.9


async def test_an_open_question_has_no_entropy_over_options() -> None:
    with pytest.raises(CapabilityMissing, match="options"):
        await OptionEntropy(ScriptedModel([])).state_value(Draft(SAID), memory(), Run())


class SameFirstWord:
    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        return tuple(float(query.split()[0] == text.split()[0]) for text in texts)


async def test_answers_of_one_meaning_have_no_semantic_entropy() -> None:
    one = ScriptedModel(["Yes it does.", "Yes indeed", "Yes it is", "Yes of course", "Yes"])
    valued = await SemanticEntropy(one, SameFirstWord()).state_value(Draft(SAID), memory(), Run())
    assert valued.value == 0.0
    assert len({sampling.seed for sampling in one.samplings}) == 5
    apart = ScriptedModel(["Yes", "No", "Perhaps", "Never", "Always"])
    valued = await SemanticEntropy(apart, SameFirstWord()).state_value(Draft(SAID), memory(), Run())
    assert valued.value == pytest.approx(1.0)


def test_entropy_is_of_shares_not_of_weights() -> None:
    assert entropy_of([-700.0, -700.0]) == pytest.approx(log(2))
    assert entropy_of([0.0, -1e4]) == pytest.approx(0.0)


def test_a_long_passage_is_read_around_its_quote() -> None:
    long = Passage("book:long#0", "word " * 400 + SAID + " end" * 400, "book", "INR")
    (read,) = read_documents(Draft(SAID, answer=quoted(long, SAID)), memory())
    assert SAID in read
    assert len(read) <= 500
    # A model's own text cites nothing: what is in memory is read.
    assert read_documents(Draft(SAID), memory(OPEN, PASSAGE, OTHER)) == (PASSAGE.text, OTHER.text)
