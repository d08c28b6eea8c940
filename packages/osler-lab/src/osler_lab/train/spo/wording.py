"""Queries made of the question's own words, without a model.

A departure (docs/papers/omni-rag.md): the paper's explorer is a model of 72 billion parameters.
Where there is none, a question that is worded well enough to be searched by holds good queries in
itself: its rarest words, what it names, the sentence that asks. They are as diverse as the question
allows, and of the sources each gets its own kind of word once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from osler.methods.omni.describe import SourceDescription
from osler.methods.omni.plan import Query
from osler.methods.omni.planners import queries_of
from osler.retrieve.names import names_in
from osler.retrieve.words import STOP_CHARACTERS, content_terms
from osler.sources.catalogue import find_source
from osler.text import is_cjk, one_line, split_sentences
from osler.trace import Run
from osler.types import Question
from osler_lab.train.spo.explore import QUERIES

LONGEST = 120
"""Characters of a query: what a planner may write under its grammar."""
RAREST = (6, 3)
"""Words of the two queries that hold the most telling words."""

_ASKS = re.compile(r"[?？]\s*$")

Rarity = Callable[[Sequence[str]], Mapping[str, float]]


@dataclass(frozen=True)
class QuestionWords:
    """Explorer without a model: at most `count` queries a source, the most specific first."""

    rarity: Rarity
    """Weight of each word, from the knowledge base (rarer words weigh more)."""
    count: int = QUERIES

    @property
    def name(self) -> str:
        return f"wording x{self.count}"

    async def queries(
        self, question: Question, offers: tuple[SourceDescription, ...], run: Run
    ) -> list[Query]:
        made: list[Query] = []
        for offer in offers:
            texts = self._query_texts(question, offer.name)
            if offer.is_graph:
                named = names_in(question.text)[:2] or texts[-1:]
                asked = (texts[0] if texts else "",)
                found = [
                    q for name in named for q in queries_of(offer.name, asked, cut_words(name))
                ]
            else:
                found = queries_of(offer.name, texts)
            made += list({query.wire.casefold(): query for query in found}.values())[: self.count]
        return made

    def _query_texts(self, question: Question, source: str) -> list[str]:
        text = one_line(question.text)
        # Vignettes end in the sentence that asks; the rest is the case.
        asking = [text[a:b] for a, b in split_sentences(text) if _ASKS.search(text[a:b])] or [text]
        # A name at the very beginning is mostly just the sentence's capital letter.
        named = [name for name in names_in(question.text) if not text.startswith(name)]
        many, few = (self._rare_words(text, most) for most in RAREST)
        known = find_source(source)
        kind = known.topics.get(question.language, "") if known else ""
        proposed = [
            cut_words(asking[-1]),
            cut_words(" ".join(terms_in_words(asking[-1]))),
            many,
            few,
            cut_words(named[0]) if named else "",
            f"{few} {kind}" if few and kind else "",
            cut_words(text),
        ]
        return [text for text in dict.fromkeys(proposed) if text]

    def _rare_words(self, text: str, most: int) -> str:
        """The words that tell most, in the order of the text."""
        words = terms_in_words(text)
        keyed = {word: content_terms(word) for word in words}
        rare = self.rarity(list(dict.fromkeys(t for found in keyed.values() for t in found)))
        weight = {
            word: max((rare.get(term, 0.0) for term in found), default=0.0)
            for word, found in keyed.items()
        }
        best = set(sorted(words, key=lambda word: -weight[word])[:most])
        return cut_words(" ".join(word for word in words if word in best))


def terms_in_words(text: str) -> list[str]:
    """The text's words of content as they are written there, none twice."""
    terms: dict[str, str] = {}
    for word in re.findall(r"[^\W_]+(?:[-'’./][^\W_]+)*", text):
        for part in _split_han(word):
            if content_terms(part):
                terms.setdefault(part.casefold(), part)
    return list(terms.values())


def _split_han(word: str) -> list[str]:
    """A run of Han characters is cut where a function character stands."""
    if not any(map(is_cjk, word)):
        return [word]
    return [part for part in re.split(f"[{''.join(sorted(STOP_CHARACTERS))}]+", word) if part]


def cut_words(text: str, longest: int = LONGEST) -> str:
    """Cuts a text to the whole words of its first `longest` characters."""
    if len(text) <= longest:
        return text.strip()
    head = text[: longest + 1]
    return (head.rsplit(" ", 1)[0] if " " in head else text[:longest]).strip()
