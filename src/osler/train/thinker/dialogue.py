r"""Trajectories as multi-turn samples, in the paper's format (App. 12, F-KT-67).

    system     a thought process is to be given
    user       the decomposition prompt (Table 1)
    assistant  <think>…</think>, <answer>Step1: … Action1: …</answer>
    user       can you answer Step1 by yourself? (Table 2)
    assistant  <think>…</think>, then <answer>\boxed{…}</answer> where it is known,
               else <search>Step1: … Action1: …</search>
    user       <references>…</references>
    assistant  <think>…</think>, then a new <search> or the answer
    …          a Deduce or a Math: its prompt, its answer or <Python>…</Python>
    user       the question, the sub-questions and their answers
    assistant  <think>…</think>, the answer

Prompts, plans and searches are the solver's own strings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

from osler.llm.core.base import Message
from osler.methods.kag.boundary import REFUSAL, attempt_prompt
from osler.prompts import render
from osler.train.thinker.trajectory import Solved, Trajectory
from osler.types import Language

Stage = Literal["logical-form", "deep-search", "thinker"]
"""KAG-LogicalForm, KAG-DeepSearch and the whole of KAG-Thinker (App. 9)."""
STAGES: tuple[Stage, ...] = get_args(Stage)
Layout = Literal["dialogue", "calls"]
"""One growing chat, as the paper trains; or a sample a call, as Osler's solver asks."""
LAYOUTS: tuple[Layout, ...] = get_args(Layout)

_CAN: dict[Language, str] = {
    "en": "I can answer this question now.",
    "zh": "现在可以回答这个问题了。",
}
_GIVES: dict[Language, str] = {"en": "The program gives {value}.", "zh": "程序的结果是 {value}。"}
_WRITES: dict[Language, str] = {
    "en": "This is to be calculated, so I write a program.",
    "zh": "这一步需要计算，因此编写程序。",
}


def messages(made: Trajectory, stage: Stage, language: Language) -> list[Message]:
    """The whole chat of a stage."""
    system = Message("system", render("train/system", language).text)
    match stage:
        case "logical-form":
            return [system, *_plan(made)]
        case "deep-search":
            return [system, *(m for step in made.retrievals for m in _retrieved(step, language))]
        case "thinker":
            inner = (m for step in made.steps for m in _step(step, language))
            return [system, *_plan(made), *inner, *_final(made, language)]


def calls(made: Trajectory, language: Language) -> Iterator[list[Message]]:
    """A chat for every call of the solver whose reply could be read."""
    for exchange in made.exchanges:
        thinking = thought(exchange.thinking) + "\n\n" if exchange.thinking else ""
        yield [
            Message("user", exchange.asked),
            Message("assistant", f"{thinking}{exchange.reply.strip()}"),
        ]


def thought(text: str) -> str:
    return f"<think>{text.strip()}</think>"


def box(answer: str) -> str:
    return rf"<answer>\boxed{{{answer}}}</answer>"


def _plan(made: Trajectory) -> Iterator[Message]:
    yield Message("user", made.prompt)
    yield Message("assistant", f"{thought(made.thought)}\n\n<answer>{made.plan}</answer>")


def _step(step: Solved, language: Language) -> Iterator[Message]:
    match step.fn:
        case "Retrieval":
            yield from _retrieved(step, language)
        case "Deduce":
            yield Message("user", step.prompt)
            known = thought(step.thought or _CAN[language])
            yield Message("assistant", f"{known}\n\n{box(step.answer)}")
        case "Math":
            yield Message("user", step.prompt)
            program = f"<Python>\n{step.code}\n</Python>"
            yield Message("assistant", f"{thought(step.thought or _WRITES[language])}\n{program}")
            yield Message("user", f"<result>{step.answer}</result>")
            gives = thought(_GIVES[language].format(value=step.answer))
            yield Message("assistant", f"{gives}\n\n{box(step.answer)}")
        case _:  # an Output is answered by the last turn, as in the paper's sample
            return


def _retrieved(step: Solved, language: Language) -> Iterator[Message]:
    """Boundary, then search after search until the answer (§3.1.2, §3.2)."""
    yield Message("user", attempt_prompt(f"\n{step.words}", language).text)
    if step.known:
        yield Message("assistant", f"{thought(_assessed(step, language))}\n\n{box(step.answer)}")
        return
    doubt = thought(_assessed(step, language))
    for turn in step.turns:
        yield Message("assistant", f"{doubt}\n<search>{turn.search}</search>")
        references = "\n\n".join(turn.references)
        yield Message("user", f"<references>{references}\n\n</references>")
        doubt = thought(turn.thought or turn.reason)
    yield Message("assistant", f"{doubt}\n\n{box(step.answer)}")


def _assessed(step: Solved, language: Language) -> str:
    """What is thought before anything is looked up."""
    if not step.attempt:
        return REFUSAL[language]
    told = render(
        "train/assess",
        language,
        answer=step.attempt,
        reasoning=step.reasoning,
        known=step.known,
    )
    return told.text


def _final(made: Trajectory, language: Language) -> Iterator[Message]:
    yield Message("user", made.final_prompt)
    known = thought(made.final_thought or _CAN[language])
    yield Message("assistant", f"{known}\n\n{made.final.strip()}")
