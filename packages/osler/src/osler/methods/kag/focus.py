"""Focusing and reasoning: judges whether references answer the question (KAG-Thinker §3.3)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from osler.errors import MalformedOutput
from osler.llm.core.ask import Speaker
from osler.llm.core.base import Completion
from osler.llm.core.grammar import Grammar, alt, free_text, maybe, seq
from osler.llm.core.spans import tagged_span
from osler.llm.reading.verdicts import read_verdict
from osler.prompts import render_prompt
from osler.retrieve import content_terms
from osler.text import split_sentences
from osler.trace import Run
from osler.types import Hit, Language

_LABEL = r"(?:references?|documents?|passages?|sources?|资料|文献|文档)\s*"
_N = r"\d{1,2}(?![\d.%]|\s*(?:mg|g|ml|years?|days?)\b)"
_JOIN = r"\s*(?:,\s*and|,|，|、|&|and|or|nor|to|和|与|及|至|到|[-–])\s*"
_INSIDE = rf"\s*{_N}(?:{_JOIN}{_N})*\s*"
_BRACKETED = rf"[\[【]{_INSIDE}[\]】]"
# Labelled or in square brackets; a bare number only where the sentence is about it.
_NUMBER = re.compile(
    rf"(?:{_LABEL}(?:{_BRACKETED}|[(（]{_INSIDE}[)）]|{_N})|{_BRACKETED})"
    rf"(?:(?:{_JOIN})?{_BRACKETED}|{_JOIN}{_N})*"
    rf"|^\s*{_N}(?:{_JOIN}{_N})*(?=\s+(?:is|are|do|does|answers?|says?|mentions?)\b)",
    re.IGNORECASE,
)
_RANGE = re.compile(r"(\d+)\s*[\])】]?\s*(?:[-–]|to|至|到)\s*[\[(【]?\s*(\d+)")
_SENTENCE = re.compile(r"(?<=[.;!?])\s+|[。；！？\n]+")
_CONTRAST = re.compile(
    r"\b(?:but|while|whereas|although|however)\b|[，,]?\s*(?:但|而|然而)", re.IGNORECASE
)
_JOINS = re.compile(r"\s*(?:,|，|、)?\s*(?:and|or|nor|as well as|和|与|及)\s*", re.IGNORECASE)
# "not only" and "nothing but" say that it does.
_DENIED = re.compile(
    r"\b(?:not(?! only)|no|never|nothing(?! but)|neither|nor|without|fails?|lacks?|irrelevant"
    r"|unrelated|off-topic|cannot)\b|n['’]t\b|不(?!仅|但)|没有|没|无关|未",
    re.IGNORECASE,
)
# What a reference says may hold a "not"; that it says "nothing", or does not, is no content.
_REPORTED = re.compile(
    r"\b(?:says?|states?|indicates?|reports?|shows?|notes?|explains?|warns?|advises?|recommends?"
    r"|(?:mentions?|confirms?|suggests?) that)\b(?! (?:nothing|no information))"
    r"|(?<![未没不有])(?:指出|说明|表明|提示|建议|认为|写明|显示)(?!的?不)",
    re.IGNORECASE,
)
_BY = re.compile(
    r"(?:\baccording to|\bstated in|\bper|根据|依据|按照)\s*(?:the\s+)?$", re.IGNORECASE
)
_DENIED_BEFORE = re.compile(
    r"\b(?:neither|unlike|except(?: for)?|other than|apart from|nothing in|not(?: in)?)\s*$"
    r"|除了?$|不是$",
    re.IGNORECASE,
)


# "none of them except [1]" affirms it.
_EXCEPTED = re.compile(
    r"\b(?:none|no|nothing|neither)\b.*\b(?:except(?: for)?|other than|apart from|but)\s*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Focus:
    enough: bool
    reason: str
    relevant: tuple[int, ...]
    """0-based indices of the references that the reason calls relevant; all when it names none."""


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
                read_verdict(reply.text), reason.strip(), relevant_references(reason, len(hits))
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


def relevant_references(reason: str, count: int) -> tuple[int, ...]:
    """The references that a reason says something for; all but the denied ones when it says
    something for none.

    A mention is denied by a negation in its own words, which end at the next mention or sentence:
    "reference 0 does not mention it, reference 2 does".
    """
    affirmed: set[int] = set()
    denied: set[int] = set()
    for sentence in _SENTENCE.split(reason):
        mentions = list(_NUMBER.finditer(sentence))
        if not mentions:
            continue
        ends = [*(mention.start() for mention in mentions[1:]), len(sentence)]
        starts = [0, *(mention.end() for mention in mentions[:-1])]
        negated = False
        # From the last mention back: "reference 0 and reference 1 do not" denies both.
        for mention, start, end in reversed(list(zip(mentions, starts, ends, strict=True))):
            numbers = _mentioned_numbers(mention[0])
            before, behind = sentence[start : mention.start()], sentence[mention.end() : end]
            if not _JOINS.fullmatch(behind):
                said = "" if _BY.search(before) else _REPORTED.split(_own_words(behind))[0]
                negated = bool(_DENIED.search(said))
            denies = negated or bool(_DENIED_BEFORE.search(before))
            denies = denies and not _EXCEPTED.search(before)
            (denied if denies else affirmed).update(n for n in numbers if n < count)
    if affirmed:
        return tuple(sorted(affirmed))
    return tuple(n for n in range(count) if n not in denied) or tuple(range(count))


def _mentioned_numbers(mention: str) -> set[int]:
    """The numbers of a mention, those between the ends of a range too."""
    ranges = (range(int(low), int(high) + 1) for low, high in _RANGE.findall(mention))
    return {int(n) for n in re.findall(r"\d+", mention)} | {n for each in ranges for n in each}


def _own_words(text: str) -> str:
    """The words behind a mention that are about it: up to a contrast, whose subject is another."""
    return _CONTRAST.split(text)[0]
