"""What one step of training the pair model reads: questions, each with one right text.

Each step draws from its own seed, so that a training that was stopped goes on as if it had not
been. Within a step all texts have one form, a passage or a sentence: length must not tell.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

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
MIX: Mapping[str, float] = {MEDQUAD: 0.55, BIOASQ: 0.3, PUBMEDQA: 0.15}
"""Shares of the sets in a step, whatever their sizes."""
_OWN = ("same page", "said before the results")
_TRIES = 20
"""Random questions that are looked at where a question has too few wrong texts of its own."""
_FILLER = 0.12
"""Share of wrong texts that are questions, navigation or thanks: no answer to anything."""
_UNTITLED = 0.3
"""Share of questions whose texts come without their title, so that the text itself is read."""
_FILLERS = (
    "See the section on {}.",
    "For more information about {}, see the links below.",
    "Thank you for your question about {}.",
    "Where can I read more about {}?",
    "What do I need to know about {}?",
    "Related topics: {}.",
    "Talk to your doctor if you have questions about {}.",
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

    def draw_step(self, step: int) -> list[PairRow]:
        """Rows of one step; the same step of the same seed is the same."""
        chance = random.Random(f"{self.seed}:{step}")
        form: Form = "passage" if chance.random() < 0.5 else "sentence"
        by_set = {name: [q for q in self.questions if q.source == name] for name in MIX}
        sets = [name for name in MIX if by_set[name]]
        shares = [MIX[name] for name in sets]
        chosen = [chance.choice(by_set[name]) for name in chance.choices(sets, shares, k=self.rows)]
        return [self._make_row(one, form, chance) for one in chosen]

    def _make_row(self, one: PairQuestion, form: Form, chance: random.Random) -> PairRow:
        texts = [chance.choice(one.right), *self._draw_wrong(one, chance)]
        cut = [cut_text(text, form, chance, lead=n == 0) for n, text in enumerate(texts)]
        while len(cut) < self.texts:
            cut.append(make_filler(one, cut[0], chance))
        cut[1:] = [
            make_filler(one, text, chance) if chance.random() < _FILLER else text
            for text in cut[1:]
        ]
        if chance.random() < _UNTITLED:
            cut = [replace(text, title="") for text in cut]
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
    """The candidate as a passage or as one sentence: the first if `lead`, else any early one.

    An answer's first sentence is the one that most surely answers; of a wrong text any may
    stand for it, and half the time the first, so that being first tells nothing.
    """
    if form == "passage":
        return replace(candidate, text=candidate.text[:PASSAGE])
    sentences = sentences_of(candidate.text)
    at = 0 if lead or chance.random() < 0.5 else chance.randrange(min(5, len(sentences)))
    return replace(candidate, text=sentences[at])


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
