"""Extraction without a model: names of the concept graph and of the texts, and which of them stand
in one sentence.

Cheap enough to be the default, so that every knowledge base has a graph layer. A name is the
graph's (`osler.graph.link`) or one that a text introduces (`names`). What is stated of two names is
for a model to read.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Final, Self

from osler.extract import ExtractionCost, ExtractionOutcome, hash_texts, names
from osler.extract.items import Entity, EntityRelation, ExtractedItems, ItemCollector
from osler.graph.derive import normalize_name
from osler.graph.items import Name
from osler.graph.link import ConceptMention, Dictionary
from osler.graph.store import Graph
from osler.text import read_packaged_table, split_sentences
from osler.types import Language, Passage

TOGETHER: dict[Language, str] = {"en": "is mentioned with", "zh": "一同提及"}
"""The predicate of two names that share a sentence."""


VERSION: Final = 3
"""Raised when the same chunk would give other items."""
NAME: Final = "dictionary"
# Concepts of one sentence that are paired; a longer list says little of each pair.
_MOST_IN_SENTENCE = 6


@dataclass
class DictionaryExtractor:
    """An extractor over `graph`, or over the texts' own names alone; a context manager.

    `ignored`: normal forms that are not names ("all", "was").
    """

    graph: Graph | None = None
    ignored: frozenset[str] = frozenset()
    forms: bool = True
    """Whether words with the form of a medical name count as one, with the form's type."""
    name: str = NAME
    batch: int = 128
    _vocabulary: str = field(default="", init=False)
    _learnt: Graph | None = field(default=None, init=False)
    _folder: tempfile.TemporaryDirectory[str] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._vocabulary = hash_texts(str(VERSION), str(self.forms), _graph_state(self.graph))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._learnt is not None:
            self._learnt.close()
        if self._folder is not None:
            self._folder.cleanup()

    def result_key(self, passage: Passage) -> str:
        """The hash covers the graph's vocabularies: with another one every chunk is extracted
        again."""
        return hash_texts(self._vocabulary, passage.title, passage.text)

    def estimate_cost(self, passage: Passage) -> ExtractionCost:
        return ExtractionCost()

    def learn_names(self, passages: Iterator[Passage]) -> None:
        """Collects the names that these chunks introduce, so that each is found in all chunks."""
        self._folder = tempfile.TemporaryDirectory(prefix="osler-names-")
        self._learnt = Graph.create(Path(self._folder.name))
        said = dict.fromkeys(
            one
            for passage in passages
            for one in names.introduced_names(passage, by_form=self.forms)
        )
        self._learnt.add(self._name_entries(said))

    def _name_entries(self, learnt: Collection[names.IntroducedName]) -> Iterator[Name]:
        others = {normalize_name(one.other) for one in learnt if one.other}
        for one in learnt:
            # A title "COPD" is not a concept of its own when a text gives its long form.
            if not one.other and normalize_name(one.name) in others:
                continue
            concept = self._graph_concept(one.name)
            if concept is None:
                continue
            for text in filter(None, (one.name, one.other)):
                if normalize_name(text) not in self.ignored:
                    yield Name(concept, text)

    def _graph_concept(self, name: str) -> str | None:
        """The concept of a name: the graph's, else one of the texts; `None` when the graph has
        several."""
        found = {match.concept for match in self.graph.find_exact(name)} if self.graph else set()
        if len(found) > 1:
            return None
        return found.pop() if found else names.text_concept_id(name)

    async def extract(self, passages: Sequence[Passage]) -> list[ExtractionOutcome]:
        return await asyncio.to_thread(
            lambda: [ExtractionOutcome(self.read_passage(p)) for p in passages]
        )

    def read_passage(self, passage: Passage) -> ExtractedItems:
        """Extracts the entities and relations of one chunk. Blocks."""
        sieve, text = ItemCollector(), passage.text
        mentions = self._find_mentions(text)
        ids = sorted({id for mention in mentions for id in mention.concepts})
        types = self.graph.types_of(ids) if self.graph and ids else {}
        seen: set[str] = set()
        for mention in mentions:
            name = text[mention.start : mention.end]
            if (norm := normalize_name(name)) in seen:
                continue
            seen.add(norm)
            said = (kind for id in mention.concepts for kind in types.get(id, ()))
            span = mention.start, mention.end
            kind = paper_type(said) or (names.type_of(name) if self.forms else "")
            sieve.add(Entity(name, kind, *span, concepts=mention.concepts))
        for item in _named_together(passage, mentions):
            sieve.add(item)
        return sieve.collected_items()

    def _find_mentions(self, text: str) -> list[ConceptMention]:
        """Mentions of graph and text names; of two that overlap the longer, of equals the
        graph's."""
        graphs = [graph for graph in (self.graph, self._learnt) if graph is not None]
        found = [
            (mention.start - mention.end, place, mention)
            for place, graph in enumerate(graphs)
            for mention in Dictionary(graph, self.ignored).find_mentions(text)
        ]
        # Greedy by length, then by graph: the user's vocabulary wins over learned names.
        chosen: list[ConceptMention] = []
        for _, _, mention in sorted(found, key=lambda one: (*one[:2], one[2].start)):
            if all(mention.end <= other.start or other.end <= mention.start for other in chosen):
                chosen.append(mention)
        return sorted(chosen, key=lambda mention: mention.start)


def _named_together(
    passage: Passage, mentions: Sequence[ConceptMention]
) -> Iterator[EntityRelation]:
    """Each pair of names of two concepts in one sentence, once in a chunk."""
    text, related = passage.text, set[frozenset[str]]()
    for begin, finish in split_sentences(text):
        inside = [m for m in mentions if begin <= m.start and m.end <= finish]
        # An enumeration of many names says little about each pair.
        for one, other in combinations(inside, 2) if len(inside) <= _MOST_IN_SENTENCE else ():
            subject, object_ = text[one.start : one.end], text[other.start : other.end]
            pair = frozenset((normalize_name(subject), normalize_name(object_)))
            if set(one.concepts) & set(other.concepts) or len(pair) < 2 or pair in related:
                continue
            related.add(pair)
            yield EntityRelation(subject, TOGETHER[passage.language], object_, one.start, other.end)


def _graph_state(graph: Graph | None) -> str:
    """A fingerprint of the graph's vocabularies, independent of the names that texts add."""
    if graph is None:
        return ""
    info = graph.get_info()
    names_ = [(source, n) for source, n in info.sources if not source.startswith("text/")]
    return repr((sorted(names_), info.merges)) if names_ or info.merges else ""


@cache
def _table_15() -> dict[str, str]:
    """The paper's type (Table 15) of each semantic type of a vocabulary, by normal form."""
    types = read_packaged_table(__package__, "semantic.toml")
    return {normalize_name(name): ours for ours, names in types.items() for name in names}


def paper_type(types: Iterable[str]) -> str:
    """The first of these types that maps to Table 15; else the first of them, "" without any."""
    every = sorted(types)
    known = (_table_15()[norm] for said in every if (norm := normalize_name(said)) in _table_15())
    return next(known, every[0] if every else "")
