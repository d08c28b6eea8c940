"""A sample's chat read back into its parts: what rules look at."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from osler.errors import MalformedOutput
from osler.llm.core.base import Message
from osler.llm.core.spans import answer_span, tagged
from osler.methods.kag.logical_forms import Plan
from osler.methods.kag.parse import read_plan
from osler.train.thinker.quality import Item

THINK = re.compile(r"<think>(.*?)</think>", re.DOTALL)
TAGS = ("think", "answer", "search", "Python", "references", "result")
_TAG = {name: re.compile(rf"<(/?){name}>") for name in TAGS}


@dataclass(frozen=True, slots=True)
class Reply:
    """A turn of the assistant's with what it answers."""

    asked: str
    text: str

    @property
    def thought(self) -> str:
        return "\n".join(part.strip() for part in THINK.findall(self.text))

    @property
    def visible(self) -> str:
        """Without the thought."""
        return THINK.sub("", self.text).strip()

    @property
    def searches(self) -> bool:
        return "<search>" in self.visible

    @property
    def programs(self) -> bool:
        return "<Python>" in self.visible

    @property
    def answer(self) -> str | None:
        r"""Inside `\boxed{}`, else inside `<answer>`; `None` for neither."""
        visible = self.visible
        span = answer_span(visible) or tagged(visible, "answer")
        return None if span is None else visible[slice(*span)].strip()

    @property
    def plan(self) -> Plan | None:
        """`None` for a turn that is no plan."""
        if "Action" not in self.visible or self.searches:
            return None
        try:
            return read_plan(self.visible)
        except MalformedOutput:
            return None


@dataclass(frozen=True, slots=True)
class Dug:
    """A sub-answer and the references that came before it."""

    question: str
    references: str
    answer: str


def replies(item: Item) -> list[Reply]:
    """The assistant's turns in order."""
    found, asked = [], ""
    for message in item.messages:
        if message.role == "user":
            asked = message.content
        elif message.role == "assistant":
            found.append(Reply(asked, message.content))
    return found


def alternates(messages: Sequence[Message]) -> bool:
    """At most one system turn, first; then user and assistant in turn, the assistant last."""
    roles = [message.role for message in messages]
    if roles[:1] == ["system"]:
        roles = roles[1:]
    wanted = ["user", "assistant"] * (len(roles) // 2)
    return bool(roles) and roles == wanted


def unbalanced(text: str) -> str:
    """The first tag that is not opened and closed in turn; "" for none."""
    for name, pattern in _TAG.items():
        depth = 0
        for mark in pattern.finditer(text):
            depth += -1 if mark[1] else 1
            if depth not in (0, 1):
                return name
        if depth:
            return name
    return ""


def dug(found: Sequence[Reply]) -> Iterator[Dug]:
    """Each answer that was searched for, with all that the searches brought."""
    question, references = "", ""
    for reply in found:
        if reply.asked.startswith("<references>"):
            references += reply.asked
        else:
            question, references = reply.asked, ""
        if references and not reply.searches and reply.answer is not None:
            yield Dug(question, references, reply.answer)
            references = ""
