r"""The knowledge boundary: generate first, then assess (KAG-Thinker §3.2).

The model answers without references. The answer is accepted when the model confirms it
(Table 3) *and* the least likely token inside `\boxed{}` has probability tau or more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from osler.errors import MalformedOutput
from osler.llm.core.ask import Speaker
from osler.llm.core.base import Message, TokenScore
from osler.llm.core.grammar import Grammar, alt
from osler.llm.core.spans import Probability, answer_span, least_probability, span_tokens
from osler.llm.reading.verdicts import after_reasoning, read_verdict, verdict_grammar
from osler.methods.kag.parse import boxed_answer, reply_answer
from osler.prompts import RenderedPrompt, render_prompt
from osler.trace import BoundaryChecked, Noted, Run
from osler.types import Language

TAU = 0.5
"""Our default: the paper names a threshold and gives no value (§3.2). `osler calibrate` fits it."""
REFUSAL: dict[Language, str] = {
    "en": "I can't answer this question, I need to retrieve external knowledge.",
    "zh": "我无法回答这个问题，需要检索外部知识。",
}
"""The refusal in the words of Table 2."""


EXAMPLES: dict[Language, tuple[tuple[str, str], ...]] = {
    "en": (
        ("What is the capital of France?", "It is Paris.\n<answer>\\boxed{Paris}</answer>"),
        ("What did Anna Holm eat on 3 May 1911?", REFUSAL["en"]),
        ("How many legs has a spider?", "It has eight.\n<answer>\\boxed{eight}</answer>"),
    ),
    "zh": (
        ("法国的首都是哪里？", "是巴黎。\n<answer>\\boxed{巴黎}</answer>"),
        ("1911年5月3日王安吃了什么？", REFUSAL["zh"]),
        ("蜘蛛有几条腿？", "有八条。\n<answer>\\boxed{八条}</answer>"),
    ),
}
"""Example turns for small models, which repeat the prompt of Table 2 without them."""


def attempt_grammar(language: Language, *, reason: int) -> Grammar:
    """The format of Table 2: up to `reason` characters of reasoning, then a boxed answer or the
    refusal."""
    ending = alt(boxed_answer(), REFUSAL[language])
    return Grammar("attempt", after_reasoning(ending, reason))


@dataclass(frozen=True, slots=True)
class SignalValue:
    """A signal's value of an answer (lower is surer) and the limit below which it is accepted."""

    metric: str
    value: float
    limit: float

    @property
    def is_sure(self) -> bool:
        return self.value < self.limit


class ConfidenceSignal(Protocol):
    """A third signal beside the paper's two, such as TC-RAG's state value."""

    async def weigh_answer(
        self, question: str, answer: str, tokens: Sequence[TokenScore], language: Language, run: Run
    ) -> SignalValue:
        """Weighs an answer; `tokens` are those inside its box, empty when the model reports none.

        Raises `BudgetExceeded`.
        """


class Boundary(Protocol):
    async def assess(
        self, n: int, question: str, language: Language, run: Run
    ) -> BoundaryChecked | None:
        """Assesses sub-problem `n` and emits the verdict; `None` when the model was not asked."""


@dataclass(frozen=True)
class NoBoundary:
    """The ablation without a boundary: everything is looked up."""

    async def assess(
        self, n: int, question: str, language: Language, run: Run
    ) -> BoundaryChecked | None:
        return None


@dataclass(frozen=True)
class GenerateThenAssess:
    """Generate-then-assess with both signals of the paper; ablations may switch off all but one."""

    speaker: Speaker
    tau: float = TAU
    self_check: bool = True
    likelihood: bool = True
    always_check: bool = False
    """Whether the self-check is asked for also where it cannot change the verdict: training data
    show its analysis (App. 12)."""
    examples: bool = False
    """Whether the prompt begins with example turns (`EXAMPLES`)."""
    state: ConfidenceSignal | None = None
    """A third signal; the paper has none."""

    def __post_init__(self) -> None:
        if not (self.self_check or self.likelihood or self.state):
            raise ValueError("a boundary without a signal is no boundary: use NoBoundary")

    async def assess(
        self, n: int, question: str, language: Language, run: Run
    ) -> BoundaryChecked | None:
        answer, confidence, tokens = await self._attempt_with_tokens(question, language, run)
        # Signals are asked in order of cost, each only while the answer may still be accepted.
        surely, checked, weighed = True, None, None
        if answer and self.likelihood:
            surely = confidence is not None and confidence.value >= self.tau
        # The costlier signals only where they can matter.
        if answer and surely and self.state is not None:
            weighed = await self.state.weigh_answer(question, answer, tokens, language, run)
            surely = weighed.is_sure
        if answer and self.self_check and (surely or self.always_check):
            checked = await self.stands_by(question, answer, language, run)
        verdict = BoundaryChecked(
            n,
            question,
            answer,
            known=bool(answer) and surely and checked is not False,
            self_check=checked,
            probability=confidence.value if confidence else None,
            tau=self.tau,
            exact=confidence.exact if confidence else True,
            state=weighed.value if weighed else None,
            sigma=weighed.limit if weighed else None,
            metric=weighed.metric if weighed else "",
        )
        run.emit(verdict)
        return verdict

    async def attempt_answer(
        self, question: str, language: Language, run: Run
    ) -> tuple[str, Probability | None]:
        """The model's answer without references (Table 2), "" when it refuses, and its
        confidence."""
        answer, confidence, _ = await self._attempt_with_tokens(question, language, run)
        return answer, confidence

    async def _attempt_with_tokens(
        self, question: str, language: Language, run: Run
    ) -> tuple[str, Probability | None, tuple[TokenScore, ...]]:
        """The answer with its confidence and the tokens inside its box."""
        reply = await self.speaker.ask(
            attempt_prompt(question, language),
            lambda reply: reply,
            run,
            grammar=attempt_grammar(language, reason=self.speaker.reasoning),
            # Log-probabilities are requested only if a signal uses them: some engines slow down.
            top=int(self.likelihood or self.state is not None),
            shown=example_turns(language) if self.examples else (),
        )
        try:
            answer = reply_answer(reply)
        except MalformedOutput:  # "I can't answer this question": no box is the paper's refusal
            return "", None, ()
        span, confidence = answer_span(reply.text), None
        if self.likelihood and not reply.tokens:
            run.emit(Noted("no log-probabilities: the boundary takes nothing for known"))
        elif self.likelihood and span:
            confidence = least_probability(reply.tokens, span)
        return answer, confidence, span_tokens(reply.tokens, span) if span else ()

    async def stands_by(self, question: str, answer: str, language: Language, run: Run) -> bool:
        """Whether the model confirms the answer (Table 3)."""
        prompt = render_prompt("kag/self_check", language, question=question, answer=answer)
        try:
            return await self.speaker.ask(
                prompt,
                lambda reply: read_verdict(reply.text),
                run,
                grammar=verdict_grammar(boxed=True, reason=self.speaker.reasoning),
            )
        except MalformedOutput:  # who cannot say "True" does not stand by it
            return False


def example_turns(language: Language) -> list[Message]:
    """`EXAMPLES` as conversation turns."""
    turns = []
    for question, reply in EXAMPLES[language]:
        prompt = attempt_prompt(question, language)
        turns += [Message("user", prompt.text), Message("assistant", reply)]
    return turns


def attempt_prompt(question: str, language: Language) -> RenderedPrompt:
    """The prompt of Table 2."""
    return render_prompt("kag/attempt", language, question=question)
