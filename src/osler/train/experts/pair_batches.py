"""What one step of training the pair model reads: questions, each with one right text.

Each step draws from its own seed, so that a training that was stopped goes on as if it had not
been. Within a step all texts have one form, a passage or a sentence: length must not tell.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from osler.retrieve.words import content_terms
from osler.text import split_sentences
from osler.train.experts.pair_questions import (
    BIOASQ,
    MEDQUAD,
    PUBMEDQA,
    CandidateText,
    PairQuestion,
)

Form = Literal["passage", "sentence"]
PASSAGE = 700
"""Characters of a passage; a chunk of the knowledge base has at most 1,000."""
SHORTEST = 30
"""Characters of a sentence, as where quotes are chosen."""
MIX: Mapping[str, float] = {MEDQUAD: 0.6, BIOASQ: 0.27, PUBMEDQA: 0.13}
"""Shares of the sets in a step, whatever their sizes."""
_OWN = ("same page", "said before the results")
_TRIES = 20
"""Random questions that are looked at where a question has too few wrong texts of its own."""
_FILLER = 0.12
"""Share of wrong texts that are questions, navigation or thanks: no answer to anything."""
_UNTITLED = 0.3
"""Share of questions whose texts come without their title, so that the text itself is read."""
_SWAPPED = 0.3
"""Share of rows in which a wrong text is the right one, said of a look-alike."""
_ALIKE = 0.7
"""Share of wrong sentences, late in training, that share most words with the question."""
_LEAD = 0.7
"""Share of right sentences that are the first of their answer."""
_FILLERS = (
    "See the section on {}.",
    "For more information about {}, see the links below.",
    "Thank you for your question about {}.",
    "Thanks for writing to us about {}.",
    "Where can I read more about {}?",
    "What do I need to know about {}?",
    "Related topics: {}.",
    "Talk to your doctor if you have questions about {}.",
    "This page gives an overview of {}.",
    "Click here to read more on {}.",
    "These resources address {}.",
    "The following table lists facts about {}.",
)


@dataclass(frozen=True, slots=True)
class PairRow:
    """One question with its texts in a fixed number; the first one is right."""

    question: str
    texts: tuple[CandidateText, ...]


@dataclass(frozen=True)
class PairSampler:
    """Draws the rows of a step. `questions` are those of the train part."""

    questions: Sequence[PairQuestion]
    rows: int = 8
    texts: int = 4
    """Texts of a row: one right, the others wrong."""
    seed: int = 0
    hard_from: int | None = None
    """Step from which wrong sentences are like the question in their words."""

    def draw_step(self, step: int) -> list[PairRow]:
        """Rows of one step; the same step of the same seed is the same."""
        chance = random.Random(f"{self.seed}:{step}")
        form: Form = "passage" if chance.random() < 0.5 else "sentence"
        by_set = {name: [q for q in self.questions if q.source == name] for name in MIX}
        sets = [name for name in MIX if by_set[name]]
        shares = [MIX[name] for name in sets]
        chosen = [chance.choice(by_set[name]) for name in chance.choices(sets, shares, k=self.rows)]
        hard = self.hard_from is not None and step >= self.hard_from
        return [self._make_row(one, form, chance, hard=hard) for one in chosen]

    def _make_row(
        self, one: PairQuestion, form: Form, chance: random.Random, *, hard: bool
    ) -> PairRow:
        texts = [chance.choice(one.right), *self._draw_wrong(one, chance)]
        cut = [cut_text(text, form, chance, lead=n == 0) for n, text in enumerate(texts)]
        if hard and form == "sentence":
            cut[1:] = [
                _cut_alike(text, one.text) if chance.random() < _ALIKE else short
                for text, short in zip(texts[1:], cut[1:], strict=True)
            ]
        if chance.random() < _UNTITLED:
            cut = [replace(text, title="") for text in cut]
        while len(cut) < self.texts:
            cut.append(make_filler(one, cut[0], chance))
        if chance.random() < _SWAPPED and (swapped := swap_subject(one, texts[0], cut[0], chance)):
            cut[-1] = swapped
        cut[1:] = [
            make_filler(one, text, chance) if chance.random() < _FILLER else text
            for text in cut[1:]
        ]
        return PairRow(one.text, tuple(cut))

    def _draw_wrong(self, one: PairQuestion, chance: random.Random) -> list[CandidateText]:
        """Distinct wrong texts, half from the question's own page where it has as many."""
        wanted = self.texts - 1
        wrong = list(one.wrong)
        chance.shuffle(wrong)
        own = [text for text in wrong if text.why in _OWN]
        others = [text for text in wrong if text.why not in _OWN]
        drawn = dict.fromkeys([*own[: (wanted + 1) // 2], *others, *own])
        for other in (chance.choice(self.questions) for _ in range(_TRIES)):
            if len(drawn) >= wanted:
                break
            if set(other.documents).isdisjoint(one.documents):
                drawn[replace(chance.choice(other.right), why="at random")] = None
        return list(drawn)[:wanted]


def cut_text(
    candidate: CandidateText, form: Form, chance: random.Random, *, lead: bool
) -> CandidateText:
    """The candidate as a passage or as one sentence: mostly the first if `lead`, else any early.

    An answer's first sentence is the one that most surely answers, unless it asks; of a wrong text
    any may stand for it, and half the time the first, so that being first tells nothing.
    """
    if form == "passage":
        return replace(candidate, text=candidate.text[:PASSAGE])
    sentences = sentences_of(candidate.text)
    if lead:
        sentences = [one for one in sentences if not one.endswith("?")] or sentences
    first = chance.random() < (_LEAD if lead else 0.5)
    at = 0 if first else chance.randrange(min(5, len(sentences)))
    return replace(candidate, text=sentences[at])


def _cut_alike(candidate: CandidateText, question: str) -> CandidateText:
    """The sentence that shares most words with the question, as a search by words finds it."""
    asked = set(content_terms(question))
    sentences = [one for one in sentences_of(candidate.text) if not one.endswith("?")]
    best = max(sentences, key=lambda one: len(asked & set(content_terms(one))), default="")
    return replace(candidate, text=best or candidate.text[:PASSAGE])


def swap_subject(
    question: PairQuestion, right: CandidateText, cut: CandidateText, chance: random.Random
) -> CandidateText | None:
    """The right text said of another subject; `None` where it does not name its own.

    `right` has the subject as its title, `cut` is what of it is shown.
    """
    others = [one.title for one in question.wrong if one.title and one.title != right.title]
    if not right.title or not others:
        return None
    other = chance.choice(others)
    named = re.compile(re.escape(right.title), re.IGNORECASE)
    text = named.sub(lambda _: other, cut.text)
    title = other if cut.title else ""
    if (text, title) == (cut.text, cut.title):
        return None
    return CandidateText(text, title, "said of another")


def sentences_of(text: str) -> list[str]:
    """Sentences that are long enough to be quoted; the text itself where there is none."""
    found = [text[start:end] for start, end in split_sentences(text)]
    return [one for one in found if len(one) >= SHORTEST] or [text[:PASSAGE]]


def make_filler(
    question: PairQuestion, candidate: CandidateText, chance: random.Random
) -> CandidateText:
    """A text that is about the subject and answers nothing."""
    subject = candidate.title or " ".join(question.text.rstrip("?").split()[-4:])
    text = chance.choice((question.text, *(form.format(subject) for form in _FILLERS)))
    return CandidateText(text, candidate.title, "no statement")
