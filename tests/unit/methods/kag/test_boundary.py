"""The knowledge boundary, with probabilities worked by hand (KAG-Thinker §3.2)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log

import pytest

from osler.llm.core.ask import Speaker
from osler.llm.core.base import Completion, Message, Sampling, TokenScore
from osler.methods.kag.boundary import GenerateThenAssess, NoBoundary, SignalValue
from osler.trace import BoundaryChecked, Noted, Run
from osler.types import Language
from osler_lab.testing.scripted import KeyedModel, ScriptedModel, TextOnly

QUESTION = "Who is the author of The Pequod?"
ANSWER = r"It is by <answer>\boxed{Herman Melville}</answer>"
TRUE, FALSE = r"<answer>\boxed{True}</answer>", r"<answer>\boxed{False}</answer>"
REFUSAL = "Based on my internal knowledge, I can't answer this question."


@dataclass
class Weighted:
    """One reply with a probability for each of its tokens, then verdicts."""

    tokens: Sequence[tuple[str, float]]
    verdicts: list[str]
    name: str = "weighted"
    asked: int = field(default=0)

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        self.asked += 1
        if self.asked > 1:
            return Completion(self.verdicts[self.asked - 2])
        scores, at = [], 0
        for text, probability in self.tokens:
            scores.append(TokenScore(text, at, at + len(text), log(probability)))
            at += len(text)
        return Completion("".join(text for text, _ in self.tokens), tuple(scores))


def boundary(model: object, **options: object) -> GenerateThenAssess:
    return GenerateThenAssess(Speaker(model, "reader"), **options)  # type: ignore[arg-type]


BOXED = (
    ("<answer>", 0.1),
    (r"\boxed{", 0.2),
    ("Herman", 0.9),
    (" Mel", 0.6),
    ("ville", 0.99),
    ("}", 0.3),
    ("</answer>", 0.4),
)


async def assess(model: object, **options: object) -> BoundaryChecked:
    run = Run()
    verdict = await boundary(model, **options).assess(1, QUESTION, "en", run)
    assert verdict is not None
    assert run.events[-1] is verdict
    return verdict


async def test_the_least_token_inside_the_box_is_the_confidence() -> None:
    verdict = await assess(Weighted(BOXED, [TRUE]))
    assert verdict.probability == pytest.approx(0.6, abs=1e-9)
    assert (verdict.answer, verdict.known, verdict.self_check) == ("Herman Melville", True, True)


@dataclass
class Recording:
    """A third signal, which notes the tokens that it was given."""

    given: list[str] = field(default_factory=list)

    async def weigh_answer(
        self, question: str, answer: str, tokens: Sequence[TokenScore], language: Language, run: Run
    ) -> SignalValue:
        self.given += [token.text for token in tokens]
        return SignalValue("uct", 1.0, 20.0)


async def test_a_third_signal_has_all_tokens_of_the_answer() -> None:
    """A word's token begins with its space, which is no part of the answer."""
    spaced = (*BOXED[:2], (" Herman", 0.9), *BOXED[3:])
    signal = Recording()
    verdict = await assess(Weighted(spaced, [TRUE]), state=signal)
    assert verdict.answer == "Herman Melville"
    assert signal.given == [" Herman", " Mel", "ville"]


async def test_one_token_under_tau_is_enough_to_look_it_up() -> None:
    model = Weighted(BOXED, [TRUE])
    verdict = await assess(model, tau=0.61)
    assert (verdict.known, verdict.self_check) == (False, None)
    assert model.asked == 1, "the self-check is not paid for when it cannot matter"


async def test_an_answer_as_likely_as_tau_is_reliable() -> None:
    """ "Reliable iff at least the threshold" (§3.2): equal is enough."""
    verdict = await assess(ScriptedModel([ANSWER, TRUE], probability=0.5), tau=0.5)
    assert verdict.probability == 0.5
    assert (verdict.known, verdict.self_check) == (True, True)


async def test_training_data_have_the_analysis_also_of_an_unlikely_answer() -> None:
    model = Weighted(BOXED, [TRUE])
    verdict = await assess(model, tau=0.61, always_check=True)
    assert (verdict.known, verdict.self_check, model.asked) == (False, True, 2)


async def test_a_model_that_does_not_stand_by_its_answer_does_not_know() -> None:
    verdict = await assess(Weighted(BOXED, [FALSE]))
    assert (verdict.known, verdict.self_check) == (False, False)


async def test_each_signal_alone_is_an_ablation() -> None:
    alone = await assess(Weighted(BOXED, []), self_check=False)
    assert (alone.known, alone.self_check) == (True, None)
    unweighed = await assess(Weighted(BOXED, [TRUE]), likelihood=False, tau=0.99)
    assert (unweighed.known, unweighed.probability) == (True, None)


async def test_a_refusal_is_not_taken_for_an_answer() -> None:
    verdict = await assess(ScriptedModel([REFUSAL]))
    assert (verdict.answer, verdict.known) == ("", False)


@pytest.mark.parametrize("box", ["Unknown.", r"\text{Unknown}", r"\text{未知}。"])
async def test_unknown_in_the_box_is_a_refusal(box: str) -> None:
    verdict = await assess(ScriptedModel([rf"<answer>\boxed{{{box}}}</answer>"]))
    assert (verdict.answer, verdict.known) == ("", False)


async def test_an_answer_set_as_text_is_what_the_box_says() -> None:
    reply = r"<answer>\boxed{\text{Herman Melville}, 1819\text{ to }1891}</answer>"
    verdict = await assess(ScriptedModel([reply, TRUE]), likelihood=False)
    assert verdict.answer == "Herman Melville, 1819 to 1891"


async def test_without_log_probabilities_nothing_is_taken_for_known_and_that_is_said() -> None:
    run = Run()
    silent = TextOnly(ScriptedModel([ANSWER]))
    verdict = await boundary(silent).assess(1, QUESTION, "en", run)
    assert verdict is not None
    assert not verdict.known
    assert any(isinstance(event, Noted) for event in run.events)


async def test_boundary_verdict_that_cannot_be_read_counts_as_no() -> None:
    model = KeyedModel({"Can you answer": [ANSWER], "Analyze whether": ["perhaps"], "": ["hm"]})
    verdict = await assess(model)
    assert (verdict.known, verdict.self_check) == (False, False)


async def test_without_a_boundary_nobody_is_asked() -> None:
    run = Run()
    assert await NoBoundary().assess(1, QUESTION, "en", run) is None
    assert run.events == []


def test_a_boundary_without_a_signal_is_refused() -> None:
    with pytest.raises(ValueError, match="NoBoundary"):
        boundary(ScriptedModel([]), self_check=False, likelihood=False)


async def test_the_chinese_question_is_asked_in_chinese() -> None:
    model = ScriptedModel(
        [r"<answer>\boxed{梅尔维尔}</answer>", r"<answer>\boxed{True}</answer>"], 0.9
    )
    verdict = await boundary(model).assess(1, "《白鲸》的作者是谁？", "zh", Run())
    assert verdict is not None
    assert (verdict.answer, verdict.known) == ("梅尔维尔", True)
    assert "你能一步一步地回答" in model.seen[0][-1].content
