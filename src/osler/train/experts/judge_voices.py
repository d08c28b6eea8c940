"""One question in other voices: misspelt, in lower case, with a greeting, by a lay word.

The rules are Osler's own, and change how something is asked, not what.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from functools import cache

from osler.retrieve.lexicon import packaged_lexicon

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
_LONG = 7
"""Letters from which a word is misspelt."""


def change_voice(question: str, chance: random.Random) -> str:
    """The question as somebody else might have typed it; often as it is."""
    text = _lay_words(question, chance) if chance.random() < 0.2 else question
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


def ask_plainly(kind: str, subject: str, chance: random.Random) -> str:
    """What a kind of MedQuAD's questions asks of a subject, in plain words; "" for other kinds."""
    forms = _OF_MEDQUAD.get(kind.casefold(), ())
    return chance.choice(forms).format(subject) if forms else ""


def _misspell(text: str, chance: random.Random) -> str:
    words = [match for match in re.finditer(r"[A-Za-z]+", text) if len(match[0]) >= _LONG]
    if not words:
        return text
    word = chance.choice(words)
    at = chance.randrange(2, len(word[0]) - 1) + word.start()
    match chance.randrange(4):
        case 0:
            return text[:at] + text[at + 1 :]
        case 1:
            return text[:at] + text[at] + text[at:]
        case 2:
            return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
        case _:
            return text[:at] + chance.choice(_LETTERS) + text[at + 1 :]


def _lay_words(text: str, chance: random.Random) -> str:
    """One name replaced by a word that means it: a brand, a lay word, an abbreviation."""
    said, low = _words_that_mean(), text.casefold()
    held = [name for name in said if name in low]
    found = [name for name in held if re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)]
    if not found:
        return text
    name = chance.choice(sorted(found))
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
