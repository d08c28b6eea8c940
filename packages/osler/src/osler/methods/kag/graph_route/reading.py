"""What a question says of the graph by name: its concepts, and the kinds that it speaks of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from osler.graph.link import ConceptMention, Dictionary
from osler.graph.store import Graph
from osler.methods.kag.graph_route.vocabulary import Vocabulary, read_vocabulary
from osler.retrieve import STOP_WORDS
from osler.retrieve.entity_names import packaged_names
from osler.retrieve.lexicon import packaged_lexicon
from osler.text import has_cjk
from osler.types import Language

_ABBREVIATION = re.compile(r"(?<![\w-])[A-Z]{2}(?![\w-])")
_PLURAL = re.compile(r"(?<=[a-z]{3})s\b")
_ASKED = re.compile(
    r"\b(?:which|what|how many|any|other|list|name)\W+(?:\w+\W+){0,2}$"
    r"|(?:哪|什么|啥|几|多少)\S{0,3}$",
    re.IGNORECASE,
)
_ASKED_AFTER = re.compile(r"\S{0,4}(?:哪|什么|啥|几|多少)")
_NOT = re.compile(
    r"\b(?:not|without|except|never)\b|n['’]t\b|(?<![能会是有要])[不没]|除|[无非]", re.IGNORECASE
)
_QUALIFIED = re.compile(
    r"\b(?:in|for|with|during) (?:\w+ )?(?:child(?:ren|hood)?|infants?|adults?|pregnancy|elderly)\b"
    r"|\bpregnant\b|first[- ]line|\btype \d|儿童|小儿|婴儿|孕妇|孕期|怀孕|哺乳|老年|首选|一线|\d型",
    re.IGNORECASE,
)
_MAY = re.compile(r"(?:能不能|可不可以|该不该|(?<!不)(?:可以|能))[给再]?\S{0,4}[用吃服打开喝]")


@dataclass(frozen=True, slots=True)
class NamedStart:
    """A concept that the question names."""

    start: int
    end: int
    name: str
    """As the question writes it; a name of the graph's where the graph does not have that one."""
    kinds: frozenset[str]
    concepts: tuple[str, ...] = ()
    """Identifiers of those that it names."""


@dataclass(frozen=True)
class QuestionReading:
    """The concepts of a question, in order of the text."""

    text: str
    language: Language
    starts: tuple[NamedStart, ...]
    kinds: frozenset[str]
    """Those that it names beside the concepts."""
    asked: frozenset[str]
    """Those that a question word stands at."""
    denies: bool
    """Whether it has a "not", outside "is it or not"."""
    qualified: bool
    """Whether it asks of some patients or some forms alone, which no relation tells apart."""
    permits: bool
    """Whether it asks in the usual Chinese words if something may be taken."""


@dataclass(frozen=True)
class QuestionReader:
    """Reads questions over one graph. Blocks: an async caller puts it in a thread."""

    graph: Graph

    def read(self, text: str, language: Language) -> QuestionReading:
        vocabulary = read_vocabulary()
        named = self._find_starts(text, vocabulary)
        # "The infection that …" is a concept on the way, though "infection" is a name too.
        starts = tuple(one for one in named if len(named) == 1 or not _opens_clause(one, text))
        rest = _blank(text, [(one.start, one.end) for one in named])
        named_kinds = [
            (kind, *match.span())
            for patterns in vocabulary.patterns.values()
            for kind, pattern in patterns.items()
            for match in pattern.finditer(rest)
        ]
        asked = frozenset(
            kind
            for kind, start, end in named_kinds
            if _ASKED.search(rest[:start]) or _ASKED_AFTER.match(rest, end)
        )
        kinds = frozenset(kind for kind, _, _ in named_kinds)
        denies, qualified = (each.search(rest) is not None for each in (_NOT, _QUALIFIED))
        starts, permits = _drop_repeated(starts), _MAY.search(rest) is not None
        return QuestionReading(text, language, starts, kinds, asked, denies, qualified, permits)

    def _find_starts(self, text: str, vocabulary: Vocabulary) -> tuple[NamedStart, ...]:
        mentions = self._find_mentions(text)
        every_id = [id for mention in mentions for id in mention.concepts]
        typed = self.graph.types_of(every_id) if every_id else {}
        found = []
        for mention in mentions:
            name = text[mention.start : mention.end]
            every = [typed.get(id, frozenset()) for id in mention.concepts]
            kinds = frozenset(kind for types in every for kind in vocabulary.kinds_of(types))
            if kinds and not _is_vocabulary(name, vocabulary):
                known = name if self.graph.find_exact(name) else self._name_of(mention)
                ids = mention.concepts
                found.append(NamedStart(mention.start, mention.end, known, kinds, ids))
        rest = _blank(text, [(one.start, one.end) for one in found])
        found += self._find_abbreviations(rest, vocabulary)
        return tuple(sorted(found, key=lambda one: one.start))

    def _find_mentions(self, text: str) -> list[ConceptMention]:
        """Names as they stand, and those that stand there in the plural ("peptic ulcers")."""
        dictionary = Dictionary(self.graph, STOP_WORDS)
        found = dictionary.find_mentions(text)
        singular = dictionary.find_mentions(_PLURAL.sub(" ", text))
        chosen: list[ConceptMention] = []
        other = [*(self._find_other_names(text) if has_cjk(text) else ()), *self._find_latin(text)]
        other += self._find_lay(text)
        for one in sorted((*found, *singular, *other), key=lambda each: each.start - each.end):
            if all(one.end <= kept.start or kept.end <= one.start for kept in chosen):
                chosen.append(one)
        return chosen

    def _find_other_names(self, text: str) -> Iterator[ConceptMention]:
        """Chinese names that the graph lacks, of concepts of which it has another name."""
        for group in packaged_names().groups:
            written = [name for name in group.names if has_cjk(name) and name in text]
            if not written:
                continue
            # A group without a Latin name is of lay words; what they mean comes first.
            lay = group.also[:1] if all(map(has_cjk, group.names)) else ()
            concepts = self._concepts_named((*group.names, *lay))
            for name in written if concepts else ():
                for match in re.finditer(re.escape(name), text):
                    yield ConceptMention(*match.span(), concepts)

    def _find_latin(self, text: str) -> Iterator[ConceptMention]:
        """Brand and other names that the graph lacks: Zocor, epinephrine, T2DM."""
        for entity in packaged_names().find_entities(text):
            own = [name for name in entity.names if name not in entity.also]
            if has_cjk(entity.written) or self.graph.find_exact(entity.written):
                continue
            concepts = self._concepts_named(own)
            words = r"\W+".join(map(re.escape, entity.written.split()))
            for match in re.finditer(rf"(?<![\w-]){words}(?![\w-])", text) if concepts else ():
                yield ConceptMention(*match.span(), concepts)

    def _find_lay(self, text: str) -> Iterator[ConceptMention]:
        """Lay words for what the graph has by another name: a droopy eyelid, rhabdo."""
        for one in packaged_lexicon().find_names(text):
            if self.graph.find_exact(text[one.start : one.end]):
                continue
            if concepts := self._concepts_named(one.names):
                yield ConceptMention(one.start, one.end, concepts)

    def _concepts_named(self, names: Sequence[str]) -> tuple[str, ...]:
        """The concepts of the first of these names that the graph has."""
        found = next(filter(None, map(self.graph.find_exact, names)), [])
        return tuple(dict.fromkeys(one.concept for one in found))

    def _name_of(self, mention: ConceptMention) -> str:
        concept = self.graph.get_concept(mention.concepts[0])
        return concept.name if concept else ""

    def _find_abbreviations(self, text: str, vocabulary: Vocabulary) -> Iterator[NamedStart]:
        """Names of two capitals ("AF"), which are too short to be looked for as words."""
        for match in _ABBREVIATION.finditer(text):
            ids = [named.concept for named in self.graph.find_exact(match[0])]
            typed = self.graph.types_of(ids) if ids else {}
            kinds = frozenset(kind for id in ids for kind in vocabulary.kinds_of(typed[id]))
            if kinds:
                yield NamedStart(*match.span(), match[0], kinds, tuple(ids))


def _drop_repeated(starts: Sequence[NamedStart]) -> tuple[NamedStart, ...]:
    """Without concepts that are named again later: "gout, which drugs treat gout"."""
    later = [{id for other in starts[n + 1 :] for id in other.concepts} for n in range(len(starts))]
    return tuple(
        one
        for one, again in zip(starts, later, strict=True)
        if not one.concepts or not again.issuperset(one.concepts)
    )


def _opens_clause(one: NamedStart, text: str) -> bool:
    clause = re.match(r"s? (?:that|which) ", text[one.end :])
    return one.name.islower() and clause is not None and not text[: one.start].endswith(" of ")


def _is_vocabulary(name: str, vocabulary: Vocabulary) -> bool:
    """Whether a name is a word for a kind: "disease", "药物"."""
    return any(
        pattern.fullmatch(name)
        for each in vocabulary.patterns.values()
        for pattern in each.values()
    )


def _blank(text: str, spans: Sequence[tuple[int, int]]) -> str:
    marked = list(text)
    for start, end in spans:
        marked[start:end] = "\x00" * (end - start)
    return "".join(marked)
