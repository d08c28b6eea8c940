"""Shows a model as many passages as its context has room for, and tells what was not shown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from osler.errors import PromptTooLong
from osler.trace import Noted, Run
from osler.types import Solution

T = TypeVar("T")

_NO_ROOM = {
    "en": "The model's context had no room for all passages: the last of them were not read.",
    "zh": "模型的上下文放不下全部段落：排在最后的没有读。",
}


async def ask_with_documents(
    documents: Sequence[str], ask: Callable[[Sequence[str]], Awaitable[T]], run: Run
) -> T:
    """Asks with all documents; where that is too long, with the first half of them, and so on.

    Raises `PromptTooLong` where there is no room for the first alone.
    """
    shown = len(documents)
    while True:
        try:
            reply = await ask(documents[:shown])
        except PromptTooLong:
            if shown < 2:
                raise
            shown //= 2
            continue
        if shown < len(documents):
            run.unread = True
            run.emit(
                Noted(f"the model's context had room for {shown} of {len(documents)} passages")
            )
        return reply


def tell_unread(solution: Solution, run: Run) -> Solution:
    """The solution, whose note says so where passages were not read."""
    if not run.unread:
        return solution
    answer = solution.answer
    note = f"{answer.note} {_NO_ROOM[answer.language]}".strip()
    return replace(solution, answer=replace(answer, note=note))
