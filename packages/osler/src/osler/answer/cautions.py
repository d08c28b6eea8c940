"""Cautions about an answer's evidence, by the rules of `currency`.

Only cited passages are compared with the others found, so that every caution concerns text that
the reader sees.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from osler.answer import UNDECIDED, Composer, Decision
from osler.answer.currency import Issue, newer_issue, read_issue, retraction_notice
from osler.answer.disagreement import read_claim, shared_content
from osler.retrieve import content_terms
from osler.retrieve.instructions import has_blanked_order
from osler.text import split_sentences
from osler.trace import Cautioned, Run
from osler.types import (
    Answer,
    Caution,
    Evidence,
    Hit,
    Language,
    Passage,
    Question,
)

_WORDS = {
    "retracted": {
        "en": '{mine} was retracted: "{said}".',
        "zh": "{mine} 已被撤稿：“{said}”。",
    },
    "superseded": {
        "en": "{mine} ({old}) has a later issue among what was found: {theirs} ({new}).",
        "zh": "{mine}（{old}）有更新的版本：{theirs}（{new}）。",
    },
}
_INSTRUCTION = {
    "en": "Passages that were found hold instructions to a program, which were left out: {ids}.",
    "zh": "检索到的段落含有针对程序的指令，已被去除：{ids}。",
}


Review = Callable[[Answer], Answer]


@dataclass(frozen=True)
class ReviewingComposer(ABC):
    """A composer around another, whose draft and words are that one's: it chooses what that one
    reads, and reviews the answer, without a model; each caution that it adds is an event."""

    composer: Composer

    @property
    def uses_draft(self) -> bool:
        return self.composer.uses_draft

    @property
    def writes_answer(self) -> bool:
        return self.composer.writes_answer

    @abstractmethod
    async def read_hits(
        self, question: Question, hits: Sequence[Hit]
    ) -> tuple[Sequence[Hit], Review]:
        """The hits that the answer is composed of, and what reviews the answer."""

    async def conclude(
        self,
        question: Question,
        hits: Sequence[Hit],
        draft: str,
        run: Run,
        *,
        decision: Decision = UNDECIDED,
    ) -> Answer:
        kept, review = await self.read_hits(question, hits)
        answer = await self.composer.conclude(question, kept, draft, run, decision=decision)
        reviewed = review(answer)
        for caution in reviewed.cautions[len(answer.cautions) :]:
            ids = tuple(one.passage.id for one in caution.evidence)
            quotes = tuple(one.quote for one in caution.evidence)
            event = Cautioned(caution.rule, caution.text, ids, quotes)
            if event not in run.events:  # an answer may be composed several times in a run
                run.emit(event)
        return reviewed


def add_cautions(answer: Answer, found: Iterable[Caution]) -> Answer:
    """The answer with these cautions, each once, behind its own."""
    return replace(answer, cautions=(*answer.cautions, *dict.fromkeys(found)))


@dataclass(frozen=True)
class CautiousComposer(ReviewingComposer):
    """Adds the cautions about what an answer cites."""

    async def read_hits(
        self, question: Question, hits: Sequence[Hit]
    ) -> tuple[Sequence[Hit], Review]:
        return hits, lambda answer: add_cautions(answer, find_cautions(answer, hits))


@dataclass(frozen=True)
class InstructionCautiousComposer(ReviewingComposer):
    """Adds one caution to an answer for which such passages were found."""

    async def read_hits(
        self, question: Question, hits: Sequence[Hit]
    ) -> tuple[Sequence[Hit], Review]:
        found = [hit.passage for hit in hits if has_blanked_order(hit.passage.text)]
        ids = ", ".join(dict.fromkeys(passage.id for passage in found))

        def review(answer: Answer) -> Answer:
            words = _INSTRUCTION[answer.language].format(ids=ids)
            return add_cautions(answer, [Caution("instruction", words, ())] if ids else [])

        return hits, review


def find_cautions(answer: Answer, hits: Sequence[Hit]) -> tuple[Caution, ...]:
    """Finds one caution per rule and pair of passages, in the order of the evidence."""
    found: dict[tuple[str, ...], Caution] = {}
    for caution in _all_cautions(answer, hits):
        ids = sorted({each.passage.id for each in caution.evidence})
        found.setdefault((caution.rule, *ids), caution)
    return tuple(found.values())


def _all_cautions(answer: Answer, hits: Sequence[Hit]) -> Iterator[Caution]:
    others = _distinct_hits([*(each.hit for each in answer.evidence), *hits])
    for cited, mark in zip(answer.evidence, answer.marks, strict=True):
        own = document_id(cited.passage)
        # Passages of one document cannot disagree about its own currency.
        apart = [hit for hit in others if document_id(hit.passage) != own]
        yield from _out_of_date(
            cited, f"{mark} {passage_name(cited.passage)}", apart, answer.language
        )


def _out_of_date(
    cited: Evidence, mine: str, others: Sequence[Hit], language: Language
) -> Iterator[Caution]:
    if said := retraction_notice(cited.passage):
        text = _WORDS["retracted"][language].format(mine=mine, said=said)
        yield Caution("retracted", text, (cited,))
    if later := newer_issue(cited.passage, others):
        old, new = read_issue(cited.passage), read_issue(later.passage)
        text = _WORDS["superseded"][language].format(
            mine=mine, theirs=passage_name(later.passage), old=old, new=new
        )
        yield Caution("superseded", text, (cited, _nearest_sentence(cited.quote, later)))


def _nearest_sentence(words: str, other: Hit) -> Evidence:
    """The sentence of the other passage that shares most content words with these."""
    mine, text = read_claim(words), other.passage.text
    start, end = max(
        split_sentences(text),
        key=lambda span: shared_content(mine, read_claim(text[span[0] : span[1]]))[1],
    )
    return Evidence(other, start, end, "caution")


def _distinct_hits(hits: Sequence[Hit]) -> list[Hit]:
    """Each passage once, in order, without empty ones, which cannot be quoted."""
    unique = {hit.passage.id: hit for hit in reversed(hits) if hit.passage.text.strip()}
    return list(reversed(unique.values()))


def document_id(passage: Passage) -> str:
    """The document of a passage, with its source; of an id that names none, the passage."""
    return passage.id.rpartition("#")[0] or passage.id


def passage_name(passage: Passage) -> str:
    return passage.title or passage.id


SHARED_WORDS = 0.5
"""Share of the older passage's words from which the later one covers it."""
_NUMBERS = re.compile(r"[\d.]+")


_GONE_WORDS = {
    "superseded": {
        "en": "{mine} ({old}) was left out: its later issue was found, {theirs} ({new}){quote}.",
        "zh": "{mine}（{old}）未被采用：检索到其更新的版本 {theirs}（{new}）{quote}。",
    },
    "retracted": {
        "en": '{mine} was left out: "{said}".',
        "zh": "{mine} 未被采用：“{said}”。",
    },
}


@dataclass(frozen=True, slots=True)
class Replaced:
    """A passage that no longer stands, and why."""

    hit: Hit
    later: Hit | None
    """Its later issue; `None` where it was retracted."""

    def concerns(self, answer: Answer) -> bool:
        """Whether it was found before something that is cited, or its later issue is cited."""
        last = max((one.hit.rank for one in answer.evidence), default=1)
        return self.later is None or self.hit.rank <= last or _cites(answer, self.later)

    def caution(self, question: Question, answer: Answer) -> Caution:
        """Why it was left out, and what the later issue says, unless the answer cites it."""
        mine, language = self.hit.passage, answer.language
        if self.later is None:
            words = _GONE_WORDS["retracted"][language]
            return Caution(
                "retracted",
                words.format(mine=passage_name(mine), said=retraction_notice(mine)),
                (),
            )
        text = _GONE_WORDS["superseded"][language].format(
            mine=passage_name(mine),
            theirs=passage_name(self.later.passage),
            old=read_issue(mine),
            new=read_issue(self.later.passage),
            quote=_quote_uncited(self.later, question, answer),
        )
        return Caution("superseded", text, ())


def _quote_uncited(later: Hit, question: Question, answer: Answer) -> str:
    """Its sentence nearest to the question; "" where the answer cites its document."""
    if _cites(answer, later):
        return ""
    said = _nearest_sentence(question.text, later).quote
    return f"：“{said}”" if answer.language == "zh" else f': "{said}"'


def _cites(answer: Answer, hit: Hit) -> bool:
    """Whether the answer cites the document of the hit."""
    document = document_id(hit.passage)
    return any(document_id(one.passage) == document for one in answer.evidence)


def split_current(hits: Sequence[Hit]) -> tuple[tuple[Hit, ...], tuple[Replaced, ...]]:
    """The hits that still stand, in their order, and those that do not."""
    gone = [Replaced(hit, None) for hit in hits if retraction_notice(hit.passage)]
    retracted = {each.hit.passage.id for each in gone}
    standing = [hit for hit in hits if hit.passage.id not in retracted]
    issues = [(hit, read_issue(hit.passage)) for hit in standing]
    replaced = [
        Replaced(hit, later)
        for hit, issue in issues
        if (later := _later_issue(hit.passage, issue, issues))
    ]
    left = {each.hit.passage.id for each in replaced}
    current = tuple(hit for hit in standing if hit.passage.id not in left)
    return current, (*gone, *replaced)


def _later_issue(old: Passage, issue: Issue, among: Sequence[tuple[Hit, Issue]]) -> Hit | None:
    """The first of the hits that is of a later issue and covers the passage."""
    for hit, other in among:
        same = hit.passage.source == old.source
        if same and issue.is_before(other) and covers(hit.passage, old):
            return hit
    return None


def covers(later: Passage, old: Passage) -> bool:
    """Whether the later passage is about what the old one is: by its section, or by its words."""
    section = _section_name(old)
    if section and section == _section_name(later):
        return True
    words = set(content_terms(old.text))
    return len(words & set(content_terms(later.text))) >= SHARED_WORDS * max(1, len(words))


def _section_name(passage: Passage) -> str:
    return " ".join(_NUMBERS.sub(" ", passage.locator.section).casefold().split())


@dataclass(frozen=True)
class CurrentComposer(ReviewingComposer):
    """A composer that sees only evidence that still stands."""

    async def read_hits(
        self, question: Question, hits: Sequence[Hit]
    ) -> tuple[Sequence[Hit], Review]:
        current, gone = split_current(hits)
        return current, lambda answer: add_cautions(
            answer, (each.caution(question, answer) for each in gone if each.concerns(answer))
        )
