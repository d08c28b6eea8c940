r"""Trajectories as multi-turn samples, in the paper's format (App. 12).

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

Prompts, plans and searches are the solver's own strings, and the turns are those that a trained
model is served with (`osler.methods.kag.transcript`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

from osler.llm.core.base import Message
from osler.methods.kag.boundary import REFUSAL, attempt_prompt
from osler.methods.kag.transcript import references_turn, result_turn, system_turn
from osler.prompts import render_prompt
from osler.types import Language
from osler_lab.train.thinker.trajectory import SolvedStep, Trajectory

Stage = Literal["logical-form", "deep-search", "thinker"]
"""KAG-LogicalForm, KAG-DeepSearch and the whole of KAG-Thinker (App. 9)."""
STAGES: tuple[Stage, ...] = get_args(Stage)
Layout = Literal["dialogue", "calls"]
"""Layout of samples: a growing chat, as the paper trains; or one sample per call of the solver."""

_CAN: dict[Language, str] = {
    "en": "I can answer this question now.",
    "zh": "现在可以回答这个问题了。",
}
_GIVES: dict[Language, str] = {"en": "The program gives {value}.", "zh": "程序的结果是 {value}。"}
_WRITES: dict[Language, str] = {
    "en": "This is to be calculated, so I write a program.",
    "zh": "这一步需要计算，因此编写程序。",
}


def stage_messages(trajectory: Trajectory, stage: Stage, language: Language) -> list[Message]:
    """The whole chat of a stage."""
    system = system_turn(language)
    match stage:
        case "logical-form":
            return [system, *_plan_turns(trajectory)]
        case "deep-search":
            return [
                system,
                *(m for step in trajectory.retrievals for m in _search_turns(step, language)),
            ]
        case "thinker":
            inner = (m for step in trajectory.steps for m in _step_turns(step, language))
            return [system, *_plan_turns(trajectory), *inner, *_final_turns(trajectory, language)]


def call_messages(trajectory: Trajectory, language: Language) -> Iterator[list[Message]]:
    """A chat for every call of the solver whose reply could be read."""
    for exchange in trajectory.exchanges:
        thinking = wrap_thought(exchange.thinking) + "\n\n" if exchange.thinking else ""
        yield [
            Message("user", exchange.asked),
            Message("assistant", f"{thinking}{exchange.reply.strip()}"),
        ]


def wrap_thought(text: str) -> str:
    return f"<think>{text.strip()}</think>"


def box_answer(answer: str) -> str:
    return rf"<answer>\boxed{{{answer}}}</answer>"


def _plan_turns(trajectory: Trajectory) -> Iterator[Message]:
    yield Message("user", trajectory.prompt)
    yield Message(
        "assistant", f"{wrap_thought(trajectory.thought)}\n\n<answer>{trajectory.plan}</answer>"
    )


def _step_turns(step: SolvedStep, language: Language) -> Iterator[Message]:
    match step.fn:
        case "Retrieval":
            yield from _search_turns(step, language)
        case "Deduce":
            yield Message("user", step.prompt)
            known = wrap_thought(step.thought or _CAN[language])
            yield Message("assistant", f"{known}\n\n{box_answer(step.answer)}")
        case "Math":
            yield Message("user", step.prompt)
            program = f"<Python>\n{step.code}\n</Python>"
            yield Message(
                "assistant", f"{wrap_thought(step.thought or _WRITES[language])}\n{program}"
            )
            yield Message("user", result_turn(step.answer))
            gives = wrap_thought(_GIVES[language].format(value=step.answer))
            yield Message("assistant", f"{gives}\n\n{box_answer(step.answer)}")
        case _:  # an Output is answered by the last turn, as in the paper's sample
            return


def _search_turns(step: SolvedStep, language: Language) -> Iterator[Message]:
    """Yields the boundary, then search after search until the answer (§3.1.2, §3.2)."""
    yield Message("user", attempt_prompt(f"\n{step.words}", language).text)
    if step.known:
        yield Message(
            "assistant",
            f"{wrap_thought(_boundary_thought(step, language))}\n\n{box_answer(step.answer)}",
        )
        return
    doubt = wrap_thought(_boundary_thought(step, language))
    for turn in step.turns:
        yield Message("assistant", f"{doubt}\n<search>{turn.search}</search>")
        yield Message("user", references_turn(turn.references))
        # The focuser's reason is the thought before the next search, or before the answer (§3.3).
        doubt = wrap_thought(turn.thought or turn.reason)
    yield Message("assistant", f"{doubt}\n\n{box_answer(step.answer)}")


def _boundary_thought(step: SolvedStep, language: Language) -> str:
    """Thought that precedes any search."""
    # A model that gave no answer has nothing to assess: it refuses in the solver's words.
    if not step.attempt:
        return REFUSAL[language]
    thought = render_prompt(
        "train/assess", language, answer=step.attempt, reasoning=step.reasoning, known=step.known
    )
    return thought.text


def _final_turns(trajectory: Trajectory, language: Language) -> Iterator[Message]:
    yield Message("user", trajectory.final_prompt)
    known = wrap_thought(trajectory.final_thought or _CAN[language])
    yield Message("assistant", f"{known}\n\n{trajectory.final.strip()}")
