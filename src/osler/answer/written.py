"""Answers in a capable model's words, each sentence attributed to its passage."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from osler.answer import NOTHING_SAID, UNDECIDED, Decision
from osler.answer.option_reading import written_option
from osler.retrieve.instructions import is_foreign
from osler.retrieve.words import content_terms
from osler.text import split_sentences
from osler.trace import Run
from osler.types import (
    CITATION_MARK,
    Answer,
    Authorship,
    Evidence,
    Hit,
    Language,
    Question,
    Statement,
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
_ANSWER_TAG = re.compile(r"<answer>.*?(?:</answer>|$)", re.DOTALL)


@dataclass(frozen=True)
class WrittenComposer:
    """Statements are the draft's sentences; the mark [n] names the n-th hit.

    A mark is accepted only when the passage has a sentence with `overlap` of the statement's
    content words; an unmarked statement is attributed on the same terms. A statement without
    such a sentence stays uncited, which lowers the answer's grounding, or is left out where
    `drops_uncited` says so of the hits: a passage may hold an order that the model obeyed. Then a
    sentence that has nothing to do with the rest of its passage, or with the question, bears out
    nothing. Shared words are no proof, and the answer's note says so.
    """

    overlap: float = 0.75
    drops_uncited: Callable[[Sequence[Hit]], bool] = lambda _: False

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
        text = _ANSWER_TAG.sub("", draft).strip()
        said_nothing = text.strip() in ("", NOTHING_SAID[question.language])
        option = decision.option
        if option is None and question.options:
            option = written_option(draft, question)
        if said_nothing:
            note = NOTHING_SAID[question.language]
            return Answer(option=option, note=note, language=question.language)
        evidence: list[Evidence] = []
        rests_on = decision.select_hits(hits)
        drops = self.drops_uncited(hits)
        akin_to = question.text if drops else None
        statements = [
            self._build_statement(part, hits, rests_on, evidence, akin_to)
            for part in _split_draft(text)
        ]
        notes = [NOTE[question.language]] if evidence else []
        if drops:
            cited = [statement for statement in statements if statement.cites]
            if dropped := len(statements) - len(cited):
                notes.append(_word_left_out(dropped, question.language))
            statements = cited
        return Answer(
            tuple(statements),
            tuple(evidence),
            option,
            Authorship.WRITTEN,
            " ".join(notes),
            question.language,
        )

    def _build_statement(
        self,
        part: str,
        hits: Sequence[Hit],
        rests_on: Sequence[Hit],
        evidence: list[Evidence],
        akin_to: str | None,
    ) -> Statement:
        text = CITATION_MARK.sub("", part).strip()
        marks = [int(number) for number in CITATION_MARK.findall(part)]
        marked = [hits[n - 1] for n in marks if 1 <= n <= len(hits)]
        cites = []
        for quote in self._find_support(text, marked or rests_on, every=bool(marked)):
            if akin_to is not None and _is_foreign(quote, akin_to):
                continue
            # Equal quotes share one number.
            if quote not in evidence:
                evidence.append(quote)
            cites.append(evidence.index(quote) + 1)
        return Statement(text, tuple(cites))

    def _find_support(self, text: str, hits: Sequence[Hit], *, every: bool) -> list[Evidence]:
        """The best sentence of each hit (or of the best hit) with enough shared words."""
        wanted = set(content_terms(text))
        found = []
        for hit in hits:
            share, start, end = _nearest_sentence(wanted, hit)
            if wanted and share >= self.overlap:
                found.append((share, Evidence(hit, start, end, "answer")))
        found.sort(key=lambda pair: -pair[0])
        return [quote for _, quote in (found if every else found[:1])]


def _is_foreign(quote: Evidence, question: str) -> bool:
    return is_foreign(quote.passage.text, quote.start, quote.end, question)


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


def _nearest_sentence(wanted: set[str], hit: Hit) -> tuple[float, int, int]:
    """The passage's sentence with the largest share of the wanted words, and that share."""
    best = (0.0, 0, 0)
    for start, end in split_sentences(hit.passage.text):
        shared = len(wanted & set(content_terms(hit.passage.text[start:end])))
        best = max(best, (shared / max(1, len(wanted)), start, end), key=lambda b: b[0])
    return best
