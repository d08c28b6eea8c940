"""Answers in a capable model's words, each sentence held against the passage that it cites."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import ClassVar

from osler.answer import NOTHING_SAID, UNDECIDED, Decision
from osler.answer.confirming import StatementChecker
from osler.answer.directions import read_poles, read_words
from osler.answer.option_reading import written_option
from osler.answer.read_passages import ReadPassage, read_passage
from osler.answer.support import Support, find_support
from osler.llm.core.ask import complete
from osler.llm.core.base import LanguageModel, Message, Sampling
from osler.llm.reading.answers import bare_words, without_lead
from osler.llm.reading.refusals import is_non_answer
from osler.prompts import render_prompt
from osler.retrieve import content_terms
from osler.retrieve.instructions import blank_instructions, is_foreign
from osler.sources.catalogue import trust_of
from osler.text import split_sentences
from osler.trace import BudgetExceeded, Run
from osler.types import (
    CITATION_MARK,
    Answer,
    Authorship,
    Evidence,
    Halt,
    Hit,
    Language,
    Question,
    Solution,
    Statement,
    numbered,
)

NOTE = {
    "en": "A citation shows the sentence whose words a statement shares; whether that bears the"
    " statement out is yours to judge.",
    "zh": "引文标出与陈述用词相同的句子；它是否支持该陈述，请自行判断。",
}
_LEFT_OUT = {
    "en": "{n} sentence{s} of the model that no passage bears out {was} left out.",
    "zh": "模型有 {n} 句话没有段落支持，已略去。",
}
_UNCONFIRMED = {
    "en": "No passage confirms a sentence of this answer: it is the model's own.",
    "zh": "没有段落能证实此回答中的任何一句：以下为模型自己的说法。",
}
_WHY_UNCONFIRMED = "no sentence of the answer is confirmed by a passage"
_ANSWER_TAG = re.compile(r"<answer>.*?(?:</answer>|$)", re.DOTALL | re.IGNORECASE)
_LEAST_CONTENT = 2
"""Words of content below which a sentence ("Yes.", "In short:") claims nothing of its own."""
_UNMARKED_SHARE, _UNMARKED_WORDS = 0.8, 3
"""Share of a sentence's words from which a passage that is not marked is cited, and how many it
must have: a mark of the model's is evidence too."""
_APART = 0.25
"""Share of a sentence's words, its subject's aside, up to which it stands apart from what was read:
.10 of a web page's own sentences do, at .34 it was .18 (`benchmarks/woven.py`)."""
_TRUSTED = 2
"""Trust of a source from which one passage is enough for an order, and whose own is no intruder."""
_ACT = re.compile(
    r"\b(?:stop|give|take|double|triple|halve|start|switch|skip|discontinue|withhold|inject"
    r"|administer|replace|swallow|drink|apply|omit|(?:increase|reduce|change|lower|raise) the dose"
    r"|(?:should|must|may|can) (?:not |never |always )?be \w+(?:ed|en)|treated with"
    r"|doses? (?:of|is|are))\b"
    r"|停用|停药|停止|服用|给予|加倍|减半|注射|改用|换用|输注",
    re.IGNORECASE,
)
"""An order to do something to a patient or to oneself, or a dose."""


@dataclass(frozen=True)
class WrittenComposer:
    """Statements are the draft's sentences; the mark [n] names the n-th hit.

    A mark is kept where the passage bears the sentence out (`support`), or the passages marked
    together do; an unmarked sentence, and one whose marks are refused, cites the passage read that
    bears it out best. The rest is the model's, and said to be not confirmed. So is what only one
    document of an untrusted source says, where it is an order or has but the subject in common with
    what was read: texts are made to be found and obeyed.

    Where `drops_uncited` says so of the hits, orders in the passages bear out nothing, and a
    sentence is left out that nothing bears out; with `keeps_akin` only one that has nothing to do
    with the question or the passages. A sentence of the passage that it cites is always kept.
    """

    drops_uncited: Callable[[Sequence[Hit]], bool] = lambda _: False
    keeps_akin: bool = False
    checker: StatementChecker | None = None
    """Says in the place of `support` which passages bear a sentence out; `support` remains where
    its reply cannot be read."""

    uses_draft: ClassVar[bool] = True
    writes_answer: ClassVar[bool] = False

    async def conclude(
        self,
        question: Question,
        hits: Sequence[Hit],
        draft: str,
        run: Run,
        *,
        decision: Decision = UNDECIDED,
    ) -> Answer:
        text = _without_question(_worded_part(draft, question), question)
        option = decision.option
        if option is None and question.options:
            option = written_option(draft, question)
        if text in ("", NOTHING_SAID[question.language]):
            note = NOTHING_SAID[question.language]
            return Answer(option=option, note=note, language=question.language)
        drops = self.drops_uncited(hits)
        reader = _DraftReader(question, hits, decision.select_hits(hits), careful=drops)
        parts = _split_draft(text)
        found = await self._find_bearing(parts, reader, run)
        read = await asyncio.to_thread(
            lambda: [reader.read_part(one, found.get(one)) for one in parts]
        )
        kept = [one for one in read if not drops or self._is_shown(one, reader)]
        by = self.checker.describe_check if self.checker and found else NOTE.__getitem__
        notes = [by(question.language)] if reader.evidence else []
        if not kept:
            notes.append(NOTHING_SAID[question.language])
        if dropped := len(read) - len(kept):
            notes.append(_word_left_out(dropped, question.language))
        return Answer(
            tuple(kept),
            tuple(reader.evidence),
            option,
            Authorship.WRITTEN,
            " ".join(notes),
            question.language,
        )

    async def _find_bearing(
        self, parts: Sequence[str], reader: _DraftReader, run: Run
    ) -> dict[str, list[Hit]]:
        """The hits that the checker names for each part that claims something; none unread."""
        claims = [part for part in dict.fromkeys(parts) if _claims(_bare(part))]
        if self.checker is None or not claims or not reader.hits:
            return {}
        passages = [reader.passage_of(hit).whole for hit in reader.hits]
        statements = [_bare(part) for part in claims]
        named = await self.checker.find_bearing(reader.question, statements, passages, run)
        rows = zip(claims, named or [], strict=bool(named))
        return {part: [reader.hits[n] for n in row] for part, row in rows}

    def _is_shown(self, one: Statement, reader: _DraftReader) -> bool:
        return bool(one.cites) or (self.keeps_akin and reader.is_akin(one.text))


class _DraftReader:
    """Reads the sentences of a draft as statements, and gathers what they cite."""

    def __init__(
        self, question: Question, hits: Sequence[Hit], rests_on: Sequence[Hit], *, careful: bool
    ) -> None:
        self.evidence: list[Evidence] = []
        self.question, self.hits, self._rests_on = question, hits, rests_on
        self._careful = careful

    def read_part(self, part: str, named: Sequence[Hit] | None = None) -> Statement:
        """A sentence with its marks as a statement with its citations. `named`: the hits that
        bear it out, where a model has said which."""
        text = _bare(part)
        marks = [int(number) for number in CITATION_MARK.findall(part)]
        marked = [self.hits[n - 1] for n in dict.fromkeys(marks) if 1 <= n <= len(self.hits)]
        borne = self._find_borne(text, marked) if named is None else named or self._find_whole(text)
        if self._is_lone_order(text, borne):
            borne = []
        cites = dict.fromkeys(self._number_of(self._quote_from(hit, text)) for hit in borne)
        # Of passages that nobody vouches for, what a reader adds is told too.
        told = bool(marks) or self._careful or _ACT.search(text) is not None or named is not None
        if not cites and _claims(text) and told and self.hits:
            return Statement(text, kind="unconfirmed")
        return Statement(text, tuple(cites))

    def is_akin(self, text: str) -> bool:
        """Whether a sentence has to do with the question or with the passages."""
        told = [self.question.text, *(self.passage_of(hit).whole for hit in self.hits)]
        return not is_foreign(text, 0, len(text), " ".join(told)) and _share_of(text, told) > 0.5

    def _find_whole(self, text: str) -> list[Hit]:
        """A hit that has the text word for word, whatever a model says of it."""
        words = read_words(text)
        return [hit for hit in self.hits if self.passage_of(hit).has_sentences(words)][:1]

    def _find_borne(self, text: str, marked: Sequence[Hit]) -> list[Hit]:
        """The hits that bear the text out by its words: those marked, else the best of the rest."""
        confirmed = self._confirm_marks(without_lead(text), marked)
        if confirmed and self._is_disputed(without_lead(text), marked):
            return []
        return confirmed or self._find_unmarked(text)

    def _confirm_marks(self, text: str, marked: Sequence[Hit]) -> list[Hit]:
        """The marked hits that bear the text out, each alone, or all together."""
        borne = self._find_bearing(text, marked)
        if borne or len(marked) < 2:
            return borne
        return list(marked) if self._support_together(text, marked).is_enough else []

    def _is_disputed(self, text: str, marked: Sequence[Hit]) -> bool:
        """Whether hits of which one bears the text out say something else together."""
        return len(marked) > 1 and bool(self._support_together(text, marked).lacks)

    def _support_together(self, text: str, marked: Sequence[Hit]) -> Support:
        together = "\n".join(self.passage_of(hit).whole for hit in marked)
        return find_support(text, read_passage("", together), self.question.text)

    def _find_unmarked(self, text: str) -> list[Hit]:
        """The best of the hits that the answer rests on, where it has nearly all that is said."""
        poles = read_poles()
        content = [one for one in read_words(text) if one.is_content]
        claimed = [one for one in content if one.word not in poles]
        # A bare name is an answer; "The dose is lowered." may be said of anything.
        if len(claimed) < min(_UNMARKED_WORDS, len(content)):
            return []
        return self._find_bearing(text, self._rests_on, least=_UNMARKED_SHARE)[:1]

    def _find_bearing(self, text: str, hits: Sequence[Hit], *, least: float = 0.0) -> list[Hit]:
        """The hits that bear the text out, the best first."""
        found = [(self._support_of(text, hit), hit) for hit in hits]
        best = sorted(found, key=lambda pair: -pair[0].share)
        return [hit for support, hit in best if support.is_enough and support.share >= least]

    def _support_of(self, text: str, hit: Hit) -> Support:
        passage = self.passage_of(hit)
        doubted = self._careful and trust_of(hit.passage.source) < _TRUSTED
        if doubted and not passage.has_sentences(read_words(text)):
            quote = self._quote_from(hit, text)
            # Led in by words of its own ("As ordered: …"), an order is no part of its passage.
            if is_foreign(hit.passage.text, quote.start, quote.end, self.question.text):
                return Support(0.0, ())
        return find_support(text, passage, self.question.text)

    def passage_of(self, hit: Hit) -> ReadPassage:
        one = hit.passage
        text = blank_instructions(one, self.question.text).text if self._careful else one.text
        return read_passage(one.heading, text)

    def _is_lone_order(self, text: str, borne: Sequence[Hit]) -> bool:
        """Whether one document alone, of an untrusted source, says it, and it is an order or has
        but the subject in common with what else was read."""
        if not borne or not (_ACT.search(text) or self._stands_apart(text, borne[0])):
            return False
        every = [*borne, *self._find_bearing(text, self.hits, least=_UNMARKED_SHARE)]
        documents = {hit.passage.id.partition("#")[0] for hit in every}
        trusted = any(trust_of(hit.passage.source) >= _TRUSTED for hit in every)
        return not trusted and len(documents) == 1

    def _stands_apart(self, text: str, hit: Hit) -> bool:
        """Whether hardly a word of it but the subject's stands anywhere else."""
        quote = self._quote_from(hit, text)
        said, others = hit.passage.text, (one.passage.text for one in self.hits if one != hit)
        rest = " ".join((said[: quote.start], said[quote.end :], *others))
        subject = {*content_terms(f"{hit.passage.heading} {self.question.text}")}
        words = {*content_terms(text)} - subject
        found = words & {*content_terms(rest)}
        return bool(words) and len(found) <= _APART * len(words)

    def _quote_from(self, hit: Hit, text: str) -> Evidence:
        start, end = _nearest_sentence(text, hit.passage.text)
        return Evidence(hit, start, end, "answer")

    def _number_of(self, quote: Evidence) -> int:
        # Equal quotes share one number.
        if quote not in self.evidence:
            self.evidence.append(quote)
        return self.evidence.index(quote) + 1


def _worded_part(draft: str, question: Question) -> str:
    """The draft without its tagged answer, which for a question with options is a letter; of an
    open one it is kept where nothing before it says it."""
    text = _ANSWER_TAG.sub("", draft).strip()
    tagged = _ANSWER_TAG.findall(draft)
    if question.options or not tagged:
        return text
    said = re.sub(r"(?i)</?answer>", "", tagged[-1]).strip()
    if not said or bare_words(said) in bare_words(text) or is_non_answer(said):
        return text
    return f"{text} {said}".strip()


def _without_question(text: str, question: Question) -> str:
    """The draft without the question, which models say again before they answer it."""
    asked = bare_words(question.text).rstrip("?？")
    for start, end in split_sentences(text)[:1]:
        if bare_words(text[start:end]).rstrip("?？") == asked:
            # Of a bold question its last stars.
            return re.sub(r"^\**(?:\s+|$)", "", text[end:])
    return text


def say_unconfirmed(solution: Solution) -> Solution:
    """A written answer of which no passage confirms a sentence says so first, and has not
    converged; any other is as it was."""
    answer = solution.answer
    confirmed = any(one.cites for one in answer.statements)
    if answer.authorship is not Authorship.WRITTEN or confirmed or answer.is_silent:
        return solution
    said = Statement(_UNCONFIRMED[answer.language], kind="notice")
    told = replace(answer, statements=(said, *answer.statements))
    if solution.halt is not Halt.CONVERGED:
        return replace(solution, answer=told)
    return replace(solution, answer=told, halt=Halt.NO_EVIDENCE, why=_WHY_UNCONFIRMED)


def _bare(part: str) -> str:
    """A sentence without its marks."""
    return CITATION_MARK.sub("", part).strip()


def _claims(text: str) -> bool:
    return len(content_terms(text)) >= _LEAST_CONTENT


def _share_of(text: str, told: Sequence[str]) -> float:
    wanted = {*content_terms(text)}
    return len(wanted & {*content_terms(" ".join(told))}) / max(1, len(wanted))


def _word_left_out(n: int, language: Language) -> str:
    one = n == 1
    return _LEFT_OUT[language].format(n=n, s="" if one else "s", was="was" if one else "were")


def _split_draft(text: str) -> list[str]:
    """Splits the draft into sentences, each with the marks after its full stop."""
    parts: list[str] = []
    for start, end in split_sentences(text):
        part = text[start:end]
        if parts and not CITATION_MARK.sub("", part).strip():
            parts[-1] += part
            continue
        # "… thigh. [1] Repeat after …": a leading mark belongs to the sentence before.
        lead = re.match(rf"(?:{CITATION_MARK.pattern})+\s*", part)
        if parts and lead:
            parts[-1] += lead.group()
            part = part[lead.end() :]
        parts.append(part)
    return [part for part in parts if CITATION_MARK.sub("", part).strip()]


def _nearest_sentence(text: str, passage: str) -> tuple[int, int]:
    """The passage's sentence that shares most stems with the text, of equal ones the shortest."""
    wanted = {one.stem for one in read_words(text) if one.is_content}

    def shared(span: tuple[int, int]) -> tuple[int, int]:
        start, end = span
        said = {one.stem for one in read_words(passage[start:end])}
        return len(wanted & said), start - end

    return max(split_sentences(passage), key=shared)


@dataclass(frozen=True)
class Rewriter:
    """A composer whose `reader` rewrites the answer from the passages and the draft.

    Without budget for that call the draft is the answer.
    """

    reader: LanguageModel
    sampling: Sampling = field(default_factory=Sampling)
    written: WrittenComposer = field(default_factory=WrittenComposer)

    uses_draft: ClassVar[bool] = True
    writes_answer: ClassVar[bool] = True

    async def conclude(
        self,
        question: Question,
        hits: Sequence[Hit],
        draft: str,
        run: Run,
        *,
        decision: Decision = UNDECIDED,
    ) -> Answer:
        prompt = render_prompt(
            "answer/reread",
            question.language,
            question=question.text,
            options=question.lettered,
            documents=numbered(hits),
            draft=draft,
        )
        asked = [Message("user", prompt.text)]
        with suppress(BudgetExceeded):
            reply = await complete(
                self.reader, asked, self.sampling, run, role="reader", prompt=prompt.identity
            )
            draft = reply.text
        return await self.written.conclude(question, hits, draft, run, decision=decision)
