"""A sample's chat read back into its parts: what rules look at."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from osler.errors import MalformedOutput
from osler.llm.core.base import Message
from osler.llm.core.spans import answer_span, tagged_span
from osler.methods.kag.logical_forms import LogicalPlan
from osler.methods.kag.parse import read_plan
from osler_lab.train.thinker.quality import QualityItem

THINK = re.compile(r"<think>(.*?)</think>", re.DOTALL)
TAGS = ("think", "answer", "search", "Python", "references", "result")
_TAG = {name: re.compile(rf"<(/?){name}>") for name in TAGS}


@dataclass(frozen=True, slots=True)
class AssistantTurn:
    """A turn of the assistant's with what it answers."""

    asked: str
    text: str

    @property
    def thought(self) -> str:
        return "\n".join(part.strip() for part in THINK.findall(self.text))

    @property
    def visible(self) -> str:
        """Text without the thought."""
        return THINK.sub("", self.text).strip()

    @property
    def has_search(self) -> bool:
        return "<search>" in self.visible

    @property
    def has_program(self) -> bool:
        return "<Python>" in self.visible

    @property
    def answer(self) -> str | None:
        r"""Text inside `\boxed{}`, else inside `<answer>`; `None` for neither."""
        # `\boxed{}` inside a thought is a draft, no answer.
        visible = self.visible
        span = answer_span(visible) or tagged_span(visible, "answer")
        return None if span is None else visible[slice(*span)].strip()

    @property
    def plan(self) -> LogicalPlan | None:
        """Plan of the turn; `None` for a turn that is no plan."""
        # A search has the form of a plan of one step, so it is recognised first.
        if "Action" not in self.visible or self.has_search:
            return None
        try:
            return read_plan(self.visible)
        except MalformedOutput:
            return None


@dataclass(frozen=True, slots=True)
class SearchedAnswer:
    """A sub-answer and the references that came before it."""

    question: str
    references: str
    answer: str


def assistant_turns(item: QualityItem) -> list[AssistantTurn]:
    """The assistant's turns in order."""
    turns, asked = [], ""
    for message in item.messages:
        if message.role == "user":
            asked = message.content
        elif message.role == "assistant":
            turns.append(AssistantTurn(asked, message.content))
    return turns


def roles_alternate(messages: Sequence[Message]) -> bool:
    """Whether user and assistant take turns, after one system turn at most; assistant last."""
    roles = [message.role for message in messages]
    if roles[:1] == ["system"]:
        roles = roles[1:]
    wanted = ["user", "assistant"] * (len(roles) // 2)
    return bool(roles) and roles == wanted


def unbalanced_tag(text: str) -> str:
    """The first tag that is not opened and closed in turn; "" for none."""
    for name, pattern in _TAG.items():
        depth = 0
        for mark in pattern.finditer(text):
            depth += -1 if mark[1] else 1
            # Tags of one name never nest in the paper's format, so a depth of 2 is an error, too.
            if depth not in (0, 1):
                return name
        if depth:
            return name
    return ""


def searched_answers(turns: Sequence[AssistantTurn]) -> Iterator[SearchedAnswer]:
    """Yields each answer that was searched for, with all that the searches brought."""
    question, references = "", ""
    for reply in turns:
        if reply.asked.startswith("<references>"):
            # Several searches for one sub-question: the answer may rest on any of them.
            references += reply.asked
        else:
            question, references = reply.asked, ""
        if references and not reply.has_search and reply.answer is not None:
            yield SearchedAnswer(question, references, reply.answer)
            references = ""
