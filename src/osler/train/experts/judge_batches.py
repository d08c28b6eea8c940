"""What one step of training the judge reads: questions, each with sentences and their worth.

Each step draws from its own seed, so that a training that was stopped goes on as if it had not
been. Questions are read as they are in use: spelt right, with other names beside what they name.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate

from osler.retrieve.asked import QuestionReader
from osler.retrieve.experts.judge import JudgedText
from osler.train.experts.judge_cases import COVIDQA, LABELLED, SEARCHED, JudgedCase
from osler.train.experts.judge_voices import ask_plainly, change_voice
from osler.train.experts.pair_questions import BIOASQ, MEDQUAD, PUBMEDQA

MIX: Mapping[str, float] = {
    LABELLED: 0.5,
    MEDQUAD: 0.22,
    BIOASQ: 0.1,
    PUBMEDQA: 0.06,
    COVIDQA: 0.12,
}
"""Shares of the sets in a step, whatever their sizes."""
_WITH_SEARCHED: Mapping[str, float] = {**MIX, LABELLED: 0.3, SEARCHED: 0.35, COVIDQA: 0.1}
_MOST_SEARCHED: Mapping[str, float] = {
    LABELLED: 0.2,
    SEARCHED: 0.56,
    MEDQUAD: 0.08,
    BIOASQ: 0.06,
    PUBMEDQA: 0.04,
    COVIDQA: 0.06,
}
MIXES = (MIX, _WITH_SEARCHED, _MOST_SEARCHED)
"""Of each cycle of the learning rate; the last also of those after it. What searches found, which
lies near to an answer, comes when the rest has been learnt."""
_PLAINLY = 0.6
"""Share of MedQuAD's questions that are asked in plain words."""
_ASKED_IN_HEADING = 0.4
"""Share of those under whose headings the page's question stands."""
_BARE, _ALONE, _ELSEWHERE = 0.1, 0.15, 0.35
"""Shares of texts without heading, without neighbours, and of rows with a text of another case."""


@dataclass(frozen=True, slots=True)
class JudgeRow:
    """One question with its sentences in a fixed number, and what each is worth."""

    question: str
    texts: tuple[JudgedText, ...]
    worth: tuple[float, ...]


@dataclass(frozen=True)
class JudgeSampler:
    """Draws the rows of a step. `cases` are those of the train part."""

    cases: Sequence[JudgedCase]
    rows: int = 6
    texts: int = 4
    seed: int = 0
    cycles: tuple[int, ...] = (0,)
    """Steps of each cycle."""
    reader: QuestionReader = field(default_factory=QuestionReader)

    @cached_property
    def by_set(self) -> dict[str, list[JudgedCase]]:
        """The cases of each set that has any."""
        found = {name: [one for one in self.cases if one.source == name] for name in MIXES[-1]}
        return {name: cases for name, cases in found.items() if cases}

    def draw_step(self, step: int) -> list[JudgeRow]:
        """Rows of one step; the same step of the same seed is the same."""
        chance = random.Random(f"{self.seed}:{step}")
        mix = self._mix_of(step)
        names = [name for name in self.by_set if name in mix]
        sets = chance.choices(names, [mix[name] for name in names], k=self.rows)
        return [self._draw_row(chance.choice(self.by_set[name]), chance) for name in sets]

    def _mix_of(self, step: int) -> Mapping[str, float]:
        ends = accumulate(self.cycles[: len(MIXES) - 1])
        return MIXES[sum(step >= end for end in ends)]

    def _draw_row(self, case: JudgedCase, chance: random.Random) -> JudgeRow:
        good = case.texts_worth(1, 1)
        drawn = [(chance.choice(good), 1.0)] if good else []
        if (partly := case.texts_worth(0.1, 0.9)) and chance.random() < 0.5:
            drawn.append((chance.choice(partly), 0.5))
        bad = case.texts_worth(0, 0)
        room = self.texts - len(drawn) - (chance.random() < _ELSEWHERE)
        drawn += [(text, 0.0) for text in chance.sample(bad, min(max(0, room), len(bad)))]
        while len(drawn) < self.texts:
            drawn.append((self._draw_elsewhere(case, chance), 0.0))
        heading = case.source != MEDQUAD or chance.random() < _ASKED_IN_HEADING
        texts = tuple(_vary_text(text, chance, headed=heading) for text, _ in drawn)
        question = self._ask(case, chance)
        return JudgeRow(question, texts, tuple(worth for _, worth in drawn))

    def _draw_elsewhere(self, case: JudgedCase, chance: random.Random) -> JudgedText:
        """A sentence that answers another question of the same set."""
        while True:
            other = chance.choice(self.by_set[case.source])
            texts = other.texts_worth(0.1, 1) or list(other.texts)
            if other.document != case.document or len(self.by_set[case.source]) < 2:
                return chance.choice(texts)

    def _ask(self, case: JudgedCase, chance: random.Random) -> str:
        asked = case.question
        if case.source == MEDQUAD and chance.random() < _PLAINLY:
            subject = case.texts[0].heading.partition(" > ")[0]
            asked = ask_plainly(case.kind, subject, chance) or asked
        return self.reader.read(change_voice(asked, chance)).full


def _vary_text(text: JudgedText, chance: random.Random, *, headed: bool) -> JudgedText:
    if not headed:
        text = replace(text, heading=text.heading.partition(" > ")[0])
    if chance.random() < _BARE:
        text = replace(text, heading="")
    if chance.random() < _ALONE:
        text = replace(text, before="", after="")
    return text
