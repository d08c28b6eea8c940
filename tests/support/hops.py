"""The steps that a question is taken apart into, and what a competent model asks for each.

A step says what is asked, with `#1` for the answer of the first step, as data sets of questions of
several steps publish it. Nothing here looks at a document to form a query: the words come from the
question, from its steps, and from answers that have been shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from osler.retrieve import content_terms
from osler.retrieve.naming import names_in

_REFERENCE = re.compile(r"#(\d)")
# How often one thing is asked for in other words before it is given up.
_MOST_WORDINGS = 4


@dataclass(frozen=True)
class Hop:
    """One step of a question."""

    asked: str
    """Its question; `#1` stands for the answer of the first step."""
    answer: str
    borne_out: Sequence[str]
    """Sentences any one of which bears its answer out."""

    @property
    def waits(self) -> tuple[int, ...]:
        """The steps whose answers it needs, from 0."""
        return tuple(int(n) - 1 for n in _REFERENCE.findall(self.asked))

    def is_shown_in(self, text: str) -> bool:
        return any(sentence in text for sentence in self.borne_out)

    def sentence_in(self, text: str) -> str:
        """The sentence of a text that bears it out; the first of all where none does."""
        return next((one for one in self.borne_out if one in text), self.borne_out[0])

    def said_from(self, text: str) -> str:
        """The answer as a model words it: the sentence that has it, else its words alone."""
        sentence = self.sentence_in(text)
        has_it = self.answer.casefold() in sentence.casefold()
        return sentence if has_it else f"{self.answer.rstrip('.')}."


@dataclass(frozen=True)
class Hops:
    """The steps of one question, in order."""

    steps: Sequence[Hop]

    def question_of(self, n: int) -> str:
        """A step's question with the answers that it needs."""
        return _REFERENCE.sub(lambda m: self.steps[int(m[1]) - 1].answer, self.steps[n].asked)

    def asked_in(self, prompt: str) -> tuple[int, ...]:
        """The steps whose questions stand in a prompt, however their references are filled in."""
        exact = tuple(n for n in range(len(self.steps)) if self.question_of(n) in prompt)
        if exact:
            return exact
        forms = (_REFERENCE.split(step.asked)[::2] for step in self.steps)
        patterns = [".{1,300}?".join(map(re.escape, form)) for form in forms]
        return tuple(n for n, each in enumerate(patterns) if re.search(each, prompt))

    def known_in(self, text: str) -> set[int]:
        """The steps that a text bears out."""
        return {n for n, step in enumerate(self.steps) if step.is_shown_in(text)}

    def named_in(self, text: str) -> set[int]:
        """The steps whose answers a text names."""
        said = text.casefold()
        return {n for n, step in enumerate(self.steps) if step.answer.casefold() in said}

    def askable(self, known: set[int], wanted: Sequence[int]) -> Iterator[int]:
        """The steps that are not known and whose references are."""
        for n in wanted:
            if n not in known and known.issuperset(self.steps[n].waits):
                yield n

    def next_query(self, text: str, known: set[int], wanted: Sequence[int]) -> str:
        """What to look up next, in words that the text does not have yet; "" where nothing is
        left to try."""
        for n in self.askable(known, wanted):
            tried = [query.strip().casefold() for query in _asked_already(text)]
            for words in wordings_of(self.question_of(n)):
                if words.casefold() not in tried:
                    return words
        return ""


def wordings_of(question: str) -> tuple[str, ...]:
    """A question, and other words to look it up with: its names and what is asked of them, its
    telling words, its names alone, each name."""
    names = names_in(question)
    terms = " ".join(content_terms(question))
    both = " ".join((*names[:1], terms))
    every = (question, both, *names, terms)
    return tuple(dict.fromkeys(filter(None, every)))[:_MOST_WORDINGS]


_TRIED = re.compile(r"^(?:Tool_Input: |- |Question: |User_Query: )(.*)$", re.MULTILINE)


def _asked_already(text: str) -> list[str]:
    """The queries that a prompt says were tried."""
    return [found[1] for found in _TRIED.finditer(text) if not found[0].startswith(("Q", "User"))]
