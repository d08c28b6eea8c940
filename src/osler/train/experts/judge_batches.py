"""What one step of training reads: questions with sentences, their worth and a teacher's logits.

The judge, the encoder `match` and their teacher read the same rows. Each step draws from its own
seed, so that a training that was stopped goes on as if it had not been. Questions are read as they
are in use: spelt right, with other names beside what they name.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from osler.retrieve.asked import QuestionReader
from osler.retrieve.experts.judge import JudgedText
from osler.train.experts.judge_cases import COVIDQA, LABELLED, SEARCHED, UNLABELLED, JudgedCase
from osler.train.experts.judge_voices import ask_plainly, change_voice
from osler.train.experts.pair_questions import BIOASQ, MEDQUAD, PUBMEDQA

MIX: Mapping[str, float] = {
    LABELLED: 0.25,
    SEARCHED: 0.42,
    MEDQUAD: 0.1,
    BIOASQ: 0.07,
    PUBMEDQA: 0.05,
    COVIDQA: 0.11,
}
"""Shares of the sets in a step, whatever their sizes. What searches found, which lies near to an
answer, teaches most."""
_WITH_UNLABELLED: Mapping[str, float] = {
    LABELLED: 0.15,
    SEARCHED: 0.3,
    UNLABELLED: 0.3,
    MEDQUAD: 0.08,
    BIOASQ: 0.05,
    PUBMEDQA: 0.04,
    COVIDQA: 0.08,
}
_PLAINLY = 0.6
"""Share of MedQuAD's questions that are asked in plain words."""
_ASKED_IN_HEADING = 0.4
"""Share of those under whose headings the page's question stands."""
_BARE, _ALONE, _ELSEWHERE = 0.1, 0.15, 0.35
"""Shares of texts without heading, without neighbours, and of rows with a text of another case."""


@dataclass(frozen=True, slots=True)
class JudgeRow:
    """One question with its sentences in a fixed number."""

    question: str
    texts: tuple[JudgedText, ...]
    worth: tuple[float | None, ...]
    """What each is worth as an answer; `None` where nobody labelled it."""
    taught: tuple[float | None, ...]
    """The teacher's logits; `None` where it was not asked."""


@dataclass(frozen=True)
class JudgeSampler:
    """Draws the rows of a step. `cases` are those of the train part."""

    cases: Sequence[JudgedCase]
    rows: int = 6
    texts: int = 4
    seed: int = 0
    vary: bool = True
    """Whether texts lose their heading or their neighbours now and then."""
    reader: QuestionReader = field(default_factory=QuestionReader)

    @cached_property
    def by_set(self) -> dict[str, list[JudgedCase]]:
        """The cases of each set that has any."""
        found: dict[str, list[JudgedCase]] = {name: [] for name in _WITH_UNLABELLED}
        for one in self.cases:
            found[one.source].append(one)
        return {name: cases for name, cases in found.items() if cases}

    def draw_step(self, step: int) -> list[JudgeRow]:
        """Rows of one step; the same step of the same seed is the same."""
        chance = random.Random(f"{self.seed}:{step}")
        mix = _WITH_UNLABELLED if UNLABELLED in self.by_set else MIX
        shares = [mix[name] for name in self.by_set]
        sets = chance.choices(list(self.by_set), shares, k=self.rows)
        return [self._draw_row(chance.choice(self.by_set[name]), chance) for name in sets]

    def _draw_row(self, case: JudgedCase, chance: random.Random) -> JudgeRow:
        own = _draw_places(case, self.texts, chance)
        more = self.texts - len(own)
        texts = [case.texts[at] for at in own]
        texts += [self._draw_elsewhere(case, chance) for _ in range(more)]
        if self.vary:
            heading = case.source != MEDQUAD or chance.random() < _ASKED_IN_HEADING
            texts = [_vary_text(text, chance, headed=heading) for text in texts]
        worth = tuple(case.worth[at] if case.worth else None for at in own)
        taught = tuple(case.taught[at] if case.taught else None for at in own)
        asked = self._ask(case, chance)
        return JudgeRow(asked, tuple(texts), worth + (0.0,) * more, taught + (None,) * more)

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


def _draw_places(case: JudgedCase, texts: int, chance: random.Random) -> list[int]:
    """Places of a right text, now and then of a partly right one, and of wrong ones; of any where
    nobody labelled them."""
    if not case.worth:
        return chance.sample(range(len(case.texts)), min(texts, len(case.texts)))
    good = case.places_worth(1, 1)
    drawn = [chance.choice(good)] if good else []
    if (partly := case.places_worth(0.1, 0.9)) and chance.random() < 0.5:
        drawn.append(chance.choice(partly))
    bad = case.places_worth(0, 0)
    room = texts - len(drawn) - (chance.random() < _ELSEWHERE)
    return drawn + chance.sample(bad, min(max(0, room), len(bad)))


def _vary_text(text: JudgedText, chance: random.Random, *, headed: bool) -> JudgedText:
    if not headed:
        text = replace(text, heading=text.heading.partition(" > ")[0])
    if chance.random() < _BARE:
        text = replace(text, heading="")
    if chance.random() < _ALONE:
        text = replace(text, before="", after="")
    return text
