"""Focusing and reasoning: judges whether references answer the question (KAG-Thinker §3.3)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from osler.errors import MalformedOutput
from osler.llm.core.base import Completion
from osler.llm.core.grammar import Grammar, alt, free_text, maybe, seq
from osler.llm.core.spans import tagged_span
from osler.llm.core.speaker import Speaker
from osler.llm.core.verdict import parse_verdict
from osler.prompts import render_prompt
from osler.retrieve.words import content_terms
from osler.text import split_sentences
from osler.trace import Run
from osler.types import Hit, Language

_NUMBER = re.compile(
    r"(?:references?|资料)\s*[\[(（]?\s*(?:\d{1,2})(?:\s*(?:,|and|、|和)\s*(?:\d{1,2}))*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Focus:
    enough: bool
    reason: str
    relevant: tuple[int, ...]
    """0-based indices of the references that the reason names; all when it names none."""


@dataclass(frozen=True)
class Focuser:
    speaker: Speaker
    longest: int = 1_000
    """Characters of one reference; longer ones are compressed to the relevant sentences."""

    async def focus(
        self, question: str, hits: Sequence[Hit], language: Language, run: Run
    ) -> Focus:
        """The verdict of Table 4; "no" without hits or when the reply cannot be read."""
        if not hits:
            return Focus(False, "nothing was found", ())
        references = self.list_references(question, hits)
        prompt = render_prompt("kag/focus", language, references=references, question=question)

        def parse(reply: Completion) -> Focus:
            span = tagged_span(reply.text, "reason")
            reason = reply.text[slice(*span)] if span else reply.text
            return Focus(
                parse_verdict(reply.text), reason.strip(), _named_references(reason, len(hits))
            )

        try:
            return await self.speaker.ask(
                prompt, parse, run, grammar=focus_grammar(self.speaker.reasoning)
            )
        except MalformedOutput as error:
            return Focus(False, error.message, tuple(range(len(hits))))

    def list_references(self, question: str, hits: Sequence[Hit]) -> list[str]:
        """The passages as the prompt shows them, each with its heading."""
        return [
            f"{hit.passage.heading}: {compress_passage(hit.passage.text, question, self.longest)}"
            for hit in hits
        ]


def focus_grammar(longest: int = 400) -> Grammar:
    """`<answer>Yes</answer><reason>…</reason>` (Table 4), of up to `longest` characters."""
    verdict = seq("<answer>", alt("Yes", "No"), "</answer>")
    return Grammar(
        "focus", seq(verdict, maybe("\n"), "<reason>", free_text(longest, without="<"), "</reason>")
    )


def compress_passage(text: str, question: str, longest: int) -> str:
    """The sentences of `text` that share most words with the question, in text order (§5.1).

    Keeps whole sentences up to `longest` characters; a text that fits is returned unchanged.
    """
    if len(text) <= longest:
        return text
    wanted = set(content_terms(question))
    spans = list(split_sentences(text))
    shared = [len(wanted & set(content_terms(text[start:end]))) for start, end in spans]
    kept: set[int] = set()
    room = longest
    # Greedy by shared words, ties in text order; too long sentences are skipped, not cut.
    for i in sorted(range(len(spans)), key=lambda i: (-shared[i], i)):
        length = spans[i][1] - spans[i][0] + 1
        if length <= room:
            kept.add(i)
            room -= length
    return " ".join(text[slice(*spans[i])].strip() for i in sorted(kept)) or text[:longest]


def _named_references(reason: str, count: int) -> tuple[int, ...]:
    found = {
        int(number) for match in _NUMBER.finditer(reason) for number in re.findall(r"\d+", match[0])
    }
    return tuple(sorted(n for n in found if n < count)) or tuple(range(count))
