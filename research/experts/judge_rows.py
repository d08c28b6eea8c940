"""What one step of training reads: questions with sentences, their worth and a teacher's logits.

The judge, the encoder `match` and their teacher read the same rows. Questions are read as they are
in use, spelt right and with other names beside what they name, after they were asked in another
voice: misspelt, in lower case, with a greeting, by a lay word.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

from expert_sets import COVIDQA, LABELLED, SEARCHED, UNLABELLED, JudgedCase
from natural.published import BIOASQ, MEDQUAD, PUBMEDQA

from osler.retrieve.asked import QuestionReader
from osler.retrieve.experts.judge import JudgedText
from osler.retrieve.lexicon import packaged_lexicon

MIX: Mapping[str, tuple[float, float]] = {
    LABELLED: (0.25, 0.15),
    SEARCHED: (0.42, 0.3),
    UNLABELLED: (0.0, 0.3),
    MEDQUAD: (0.1, 0.08),
    BIOASQ: (0.07, 0.05),
    PUBMEDQA: (0.05, 0.04),
    COVIDQA: (0.11, 0.08),
}
"""Shares of the sets in a step, whatever their sizes: of a teacher, and of who learns from it. What
searches found, which lies near to an answer, teaches most."""
_PLAINLY, _ASKED_IN_HEADING = 0.6, 0.4
"""Shares of MedQuAD's questions that are asked in plain words, and that stand in the heading."""
_BARE, _ALONE, _ELSEWHERE = 0.1, 0.15, 0.35
"""Shares of texts without heading, without neighbours, and of rows with a text of another case."""
_GREETINGS = ("Hello, ", "Hi. ", "hi, ", "Dear doctor, ", "Good morning. ", "hello doctor ")
_THANKS = (" Thanks.", " Thank you!", " thanks in advance", " Please help.")
_SITUATIONS = (
    "My mother asks: ",
    "I am worried about this. ",
    "Question from a ward round. ",
    "My son is 8. ",
    "I am new to this. ",
)
_OF_MEDQUAD: Mapping[str, tuple[str, ...]] = {
    "symptoms": ("how do i know if i have {}", "what does {} feel like?", "signs of {}?"),
    "treatment": ("what helps against {}?", "my son has {}, what can be done", "{} treatment"),
    "causes": ("why do people get {}?", "what brings on {}", "where does {} come from?"),
    "inheritance": ("can I pass {} on to my children?", "does {} run in families"),
    "exams and tests": ("how do doctors find {}?", "which tests show {}", "diagnosing {}"),
    "prevention": ("how can I avoid getting {}?", "can {} be prevented", "protect from {}"),
    "outlook": ("how long do people live with {}?", "will {} go away", "prognosis {}"),
    "frequency": ("how common is {}?", "how many people have {}"),
    "information": ("what's {}", "tell me about {}", "someone said {}, what is that?"),
    "complications": ("what can go wrong with {}?", "dangers of {}"),
    "susceptibility": ("who gets {}?", "am I at risk of {}"),
    "genetic changes": ("which gene is behind {}?", "{} gene"),
}
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_LONG = re.compile(r"[A-Za-z]{7,}")
"""Words that are misspelt."""


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
    rows: int
    texts: int
    seed: int = 0
    vary: bool = True
    """Whether texts lose their heading or their neighbours now and then."""
    reader: QuestionReader = field(default_factory=QuestionReader)

    @cached_property
    def by_set(self) -> dict[str, list[JudgedCase]]:
        """The cases of each set that has any."""
        found = {name: [one for one in self.cases if one.source == name] for name in MIX}
        return {name: cases for name, cases in found.items() if cases}

    def draw_step(self, step: int) -> list[JudgeRow]:
        """Rows of one step; the same step of the same seed is the same."""
        chance = random.Random(f"{self.seed}:{step}")
        shares = [MIX[name][UNLABELLED in self.by_set] for name in self.by_set]
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
            if other.document != case.document or len(self.by_set[case.source]) < 2:
                places: Sequence[int] = other.places_worth(0.1, 1) or range(len(other.texts))
                return other.texts[chance.choice(places)]

    def _ask(self, case: JudgedCase, chance: random.Random) -> str:
        asked = case.question
        if case.source == MEDQUAD and chance.random() < _PLAINLY:
            subject = case.texts[0].heading.partition(" > ")[0]
            if forms := _OF_MEDQUAD.get(case.kind.casefold()):
                asked = chance.choice(forms).format(subject)
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


def change_voice(question: str, chance: random.Random) -> str:
    """The question as somebody else might have typed it; often as it is."""
    text = _say_otherwise(question, chance) if chance.random() < 0.2 else question
    if chance.random() < 0.15:
        text = _misspell(text, chance)
    if chance.random() < 0.25:
        text = text.lower()
    if chance.random() < 0.2:
        text = text.rstrip(" ?")
    if chance.random() < 0.08:
        text = chance.choice(_SITUATIONS) + text
    if chance.random() < 0.08:
        text = chance.choice(_GREETINGS) + text + chance.choice(_THANKS)
    return text


def _misspell(text: str, chance: random.Random) -> str:
    """A letter of a long word is left out, doubled, swapped with the next, or another."""
    words = list(_LONG.finditer(text))
    if not words:
        return text
    word = chance.choice(words)
    at = chance.randrange(2, len(word[0]) - 1) + word.start()
    put = ("", text[at] * 2, text[at + 1] + text[at], chance.choice(_LETTERS))
    way = chance.randrange(4)
    return text[:at] + put[way] + text[at + 1 + (way == 2) :]


def _say_otherwise(text: str, chance: random.Random) -> str:
    """One name replaced by a word that means it: a brand, a lay word, an abbreviation."""
    said, low = _words_that_mean(), text.casefold()
    held = sorted(name for name in said if name in low)
    held = [name for name in held if re.search(rf"\b{re.escape(name)}\b", low)]
    if not held:
        return text
    name = chance.choice(held)
    word = chance.choice(said[name])
    return re.sub(rf"\b{re.escape(name)}\b", word, text, count=1, flags=re.IGNORECASE)


@cache
def _words_that_mean() -> dict[str, list[str]]:
    """Name in lower case → words of the lexicon that stand for it alone."""
    found: dict[str, list[str]] = {}
    for word, names in packaged_lexicon().means.items():
        if len(names) == 1:
            found.setdefault(names[0].casefold(), []).append(word)
    return found
