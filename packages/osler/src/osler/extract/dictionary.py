"""Extraction without a model: names of the concept graph and of the texts, and the relations
stated between them.

Cheap enough to be the default, so that every knowledge base has a graph layer. A name is
the graph's (`osler.graph.link`) or one that a text introduces (`names`). Two names in one
sentence are related by what stands between them, or as mentioned together.

The cue must fill the gap, apart from a few function words around it, so that the relation is stated
and not guessed; a gap with a negation states none. The predicates are ours, directional and of
several words (KAG-Thinker Table 16, rule 2).
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from typing import Final, Self

from osler.extract import ExtractionCost, ExtractionOutcome, hash_texts, names
from osler.extract import names as forms
from osler.extract.items import Entity, EntityRelation, ExtractedItems, ItemCollector
from osler.graph.derive import normalize_name
from osler.graph.items import Name
from osler.graph.link import ConceptMention, Dictionary
from osler.graph.store import Graph
from osler.text import read_packaged_table, split_sentences
from osler.types import Language, Passage

LONGEST_GAP = 60
"""Characters of a gap that is examined."""

_NEGATED = re.compile(
    r"\b(?:not|no|never|neither|nor|without|rarely|unlikely)\b|n't|[不未无非]|没有|缺乏",
    re.IGNORECASE,
)
_BEFORE = (
    r"^\s*(?:\([^()]*\)\s*)?,?\s*(?:(?:which|that|can|could|may|might|often|usually|commonly|mainly"
    r"|typically|frequently|generally|also|sometimes|is|are|was|were|be|been|has|have|and)\s+)*"
)
_AFTER = (
    r"(?:\s+(?:the|a|an|some|many|most|severe|mild|acute|chronic|patients with|people with"
    r"|adults with|symptoms such as|drugs such as|oral|as|like))*\s*$"
)
_CUES: tuple[tuple[str, str], ...] = (
    (r"caused by|due to|(?:result|resulting|results) from|secondary to", "is caused by"),
    (
        r"causes?|caused|causing|leads? to|leading to|results? in|resulting in|induces?|triggers?",
        "leads to",
    ),
    (
        r"(?:first-line |standard |preferred )?(?:treated|managed|relieved) (?:with|by|using)",
        "is treated with",
    ),
    (
        r"treats|(?:used|given|prescribed|recommended) (?:to treat|for treating"
        r"|for the treatment of|in the treatment of|for|in)"
        r"|indicated (?:for|in)|effective (?:against|for|in)"
        r"|(?:the )?(?:drug|treatment) of choice (?:for|in)|(?:a |the )?treatment (?:for|of)"
        r"|first-line (?:treatment|therapy) (?:for|in)",
        "is used to treat",
    ),
    (
        r"prevents?|(?:used|given) (?:to prevent|for prevention of)|protects? against",
        "helps prevent",
    ),
    (
        r"(?:presents?|presenting|manifests?) (?:with|as)|characteri[sz]ed by|(?:symptoms|signs)"
        r" (?:of which )?(?:include|are)|symptoms include",
        "presents with",
    ),
    (
        r"(?:diagnosed|confirmed|detected|identified) (?:by|with|using|on|through)",
        "is diagnosed by",
    ),
    (r"contraindicated (?:in|for|during)", "is contraindicated in"),
    (
        r"(?:increases?|raises?) the risk of|(?:an? )?(?:\w+ )?risk factors? for|predisposes? to",
        "raises the risk of",
    ),
    (r"(?:reduces?|lowers?|decreases?) the risk of", "lowers the risk of"),
    (r"interacts? with", "interacts with"),
    (r"(?:associated|linked) with", "is associated with"),
    (r"(?:an? )?(?:type|kind|form|subtype|class) of", "is a kind of"),
    (r"(?:is|are) an?(?: \w+)?", "is a kind of"),
)
_ENGLISH = tuple(
    (re.compile(_BEFORE + f"(?:{cue})" + _AFTER, re.IGNORECASE), predicate)
    for cue, predicate in _CUES
)
_BEFORE_ZH = (
    r"^\s*(?:[（(][^（）()]*[)）])?[，,]?"
    r"(?:可|能|会|常|多|主要|一般|通常|最常|也|还|均|可以|能够|患者|病人|的)*"
)
_AFTER_ZH = r"(?:的|急性|慢性|重度|轻度|各种|患者|等)*\s*$"
_CUES_ZH: tuple[tuple[str, str], ...] = (
    ("引起|导致|造成|诱发|引发", "可以导致"),
    ("(?:可|适)?用于(?:治疗)?|(?:可)?治疗|适用于|的首选(?:药物?|治疗)(?:是|为)?治疗", "用于治疗"),
    (
        "(?:的)?(?:首选|一线)(?:治疗|药物?)?(?:是|为|用)?|的治疗(?:包括|用|以)|应用|给予|选用",
        "治疗选用",
    ),
    ("(?:用于)?预防|防止", "用于预防"),
    (
        "(?:的)?(?:临床|主要|典型|常见)*(?:表现|症状|体征)(?:有|为|是|包括)|表现(?:为|有)|以",
        "临床表现为",
    ),
    ("(?:的)?(?:诊断|确诊)(?:依靠|依赖|需要?|首选|主要靠)|通过", "诊断依靠"),
    ("(?:禁用于|忌用于)", "禁止用于"),
    ("(?:增加|升高)(?:了)?(?:患)?", "增加风险"),
    ("是一种|是一类|属于|是", "属于一种"),
)
_CHINESE = tuple(
    (re.compile(_BEFORE_ZH + f"(?:{cue})" + _AFTER_ZH), predicate) for cue, predicate in _CUES_ZH
)
_LIST = re.compile(
    r"^\s*(?:,|and|or|,\s*and|,\s*or|and/or|as well as|[、，和及与或]|以及)\s*$", re.IGNORECASE
)

PREDICATES: dict[Language, tuple[str, ...]] = {
    "en": tuple(dict.fromkeys(predicate for _, predicate in _CUES)),
    "zh": tuple(dict.fromkeys(predicate for _, predicate in _CUES_ZH)),
}
"""All predicates that a cue can state."""
TOGETHER: dict[Language, str] = {"en": "is mentioned with", "zh": "一同提及"}
"""The predicate of two names that merely share a sentence."""


def predicate_between(gap: str, language: Language) -> str | None:
    """The predicate stated by the words between two names; `None` without one."""
    # A negation anywhere in the gap cancels the cue.
    if not 0 < len(gap) <= LONGEST_GAP or _NEGATED.search(gap):
        return None
    for pattern, predicate in _CHINESE if language == "zh" else _ENGLISH:
        if pattern.match(gap):
            return predicate
    return None


def goes_on(gap: str) -> bool:
    """Whether the words between two names merely enumerate them."""
    return _LIST.match(gap) is not None


VERSION: Final = 2
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
    pairs: bool = True
    """Whether names that merely share a sentence are related, as mentioned together."""
    forms: bool = True
    """Whether words with the form of a medical name count as one, with the form's type."""
    name: str = NAME
    batch: int = 128
    _vocabulary: str = field(default="", init=False)
    _learnt: Graph | None = field(default=None, init=False)
    _folder: tempfile.TemporaryDirectory[str] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._vocabulary = hash_texts(
            str(VERSION), str(self.pairs), str(self.forms), _graph_state(self.graph)
        )

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
        types = self._concept_types(mentions)
        seen: set[str] = set()
        for mention in mentions:
            name = text[mention.start : mention.end]
            if (norm := normalize_name(name)) in seen:
                continue
            seen.add(norm)
            said = (kind for id in mention.concepts for kind in types.get(id, ()))
            span = mention.start, mention.end
            kind = paper_type(said) or (forms.type_of(name) if self.forms else "")
            sieve.add(Entity(name, kind, *span, concepts=mention.concepts))
        inside = [
            [m for m in mentions if start <= m.start and m.end <= end]
            for start, end in split_sentences(text)
        ]
        self._relate_mentions(passage, inside, sieve)
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

    def _concept_types(self, mentions: Sequence[ConceptMention]) -> dict[str, frozenset[str]]:
        ids = {id for mention in mentions for id in mention.concepts}
        return self.graph.types_of(sorted(ids)) if self.graph and ids else {}

    def _relate_mentions(
        self, passage: Passage, each: Sequence[list[ConceptMention]], sieve: ItemCollector
    ) -> None:
        """Adds the relations that sentences state between neighbours, and co-mentions of the
        rest."""
        text, related = passage.text, set[frozenset[str]]()

        def add_relation(one: ConceptMention, other: ConceptMention, predicate: str) -> None:
            subject, object_ = text[one.start : one.end], text[other.start : other.end]
            pair = frozenset((normalize_name(subject), normalize_name(object_)))
            if set(one.concepts) & set(other.concepts) or len(pair) < 2 or pair in related:
                return
            related.add(pair)
            start, end = min(one.start, other.start), max(one.end, other.end)
            sieve.add(EntityRelation(subject, predicate, object_, start, end))

        for mentions in each:
            for one, other, predicate in _stated_relations(passage, mentions):
                add_relation(one, other, predicate)
        for mentions in each if self.pairs else ():
            # An enumeration of many names says little about each pair.
            if len(mentions) <= _MOST_IN_SENTENCE:
                for one, other in combinations(mentions, 2):
                    add_relation(one, other, TOGETHER[passage.language])


def _stated_relations(
    passage: Passage, mentions: Sequence[ConceptMention]
) -> Iterator[tuple[ConceptMention, ConceptMention, str]]:
    """Neighbours with a cue between them, and the names listed after the second."""
    text = passage.text
    for place, one in enumerate(mentions[:-1]):
        other = mentions[place + 1]
        predicate = predicate_between(text[one.end : other.start], passage.language)
        if predicate is None:
            continue
        yield one, other, predicate
        for last, further in pairwise(mentions[place + 1 :]):
            if not goes_on(text[last.end : further.start]):
                break
            yield one, further, predicate


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
