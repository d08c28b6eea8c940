"""Focusing and reasoning: judges whether references answer the question (KAG-Thinker §3.3)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from osler.errors import MalformedOutput
from osler.llm.core.base import Completion
from osler.llm.core.grammar import Grammar, alt, free_text, maybe, seq
from osler.llm.core.spans import tagged_span
from osler.llm.core.speaker import Speaker
from osler.llm.reading.verdicts import read_verdict
from osler.prompts import render_prompt
from osler.retrieve.words import content_terms
from osler.text import split_sentences
from osler.trace import Run
from osler.types import Hit, Language, Relevance

_NUMBER = re.compile(
    r"(?:references?|资料)\s*[\[(（]?\s*(?:\d{1,2})(?:\s*(?:,|and|、|和)\s*(?:\d{1,2}))*",
    re.IGNORECASE,
)
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
_DENIED_BEFORE = re.compile(
    r"\b(?:neither|unlike|except(?: for)?|other than|apart from|nothing in|not(?: in)?)\s*$"
    r"|除了?$|不是$",
    re.IGNORECASE,
)


_LIKENESS: dict[Language, str] = {
    "en": "Reference {n} is nearest to the question: likeness {score:.2f}, needed {least:.2f}.",
    "zh": "资料 {n} 与问题最接近：相似度 {score:.2f}，所需 {least:.2f}。",
}


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


@dataclass(frozen=True)
class LikenessFocuser(Focuser):
    """Judges references by their likeness to the question, for models whose verdict is chance.

    It says what a reader of the trace needs: the likeness and its limit. Languages without a
    scorer are judged by the model.
    """

    scorers: Mapping[Language, LikenessScorer] = field(default_factory=dict)

    async def focus(
        self, question: str, hits: Sequence[Hit], language: Language, run: Run
    ) -> Focus:
        scorer = self.scorers.get(language)
        if scorer is None or not hits:
            return await Focuser.focus(self, question, hits, language, run)
        scores = await scorer.relevance.relevance(question, self.list_references(question, hits))
        best = max(range(len(hits)), key=lambda i: scores[i])
        relevant = tuple(i for i, score in enumerate(scores) if score >= scorer.least)
        reason = _LIKENESS[language].format(n=best, score=scores[best], least=scorer.least)
        return Focus(bool(relevant), reason, relevant)


@dataclass(frozen=True, slots=True)
class LikenessScorer:
    """A scorer, and the score from which a reference answers a question."""

    relevance: Relevance
    least: float


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
            numbers = {int(number) for number in re.findall(r"\d+", mention[0])}
            before, behind = sentence[start : mention.start()], sentence[mention.end() : end]
            if not _JOINS.fullmatch(behind):
                negated = bool(_DENIED.search(_own_words(behind)))
            denies = negated or bool(_DENIED_BEFORE.search(before))
            (denied if denies else affirmed).update(n for n in numbers if n < count)
    if affirmed:
        return tuple(sorted(affirmed))
    return tuple(n for n in range(count) if n not in denied) or tuple(range(count))


def _own_words(text: str) -> str:
    """The words behind a mention that are about it: up to a contrast, whose subject is another."""
    return _CONTRAST.split(text)[0]
