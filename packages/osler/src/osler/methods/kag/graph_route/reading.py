"""What a question says of the graph: the concepts that it names, and the words around them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from osler.graph.link import ConceptMention, Dictionary
from osler.graph.store import Graph
from osler.methods.kag.graph_route.vocabulary import Vocabulary, read_vocabulary
from osler.retrieve import STOP_WORDS
from osler.retrieve.entity_names import packaged_names
from osler.text import has_cjk
from osler.types import Language

_ASKING = re.compile(
    r"\b(?:which|what|how many|number of|list|name)\b"
    r"|哪[些个种几类]?|什么|啥|多少[个种]?|几[个种类样]?",
    re.IGNORECASE,
)
_ABBREVIATION = re.compile(r"(?<![\w-])[A-Z]{2}(?![\w-])")
_BETWEEN = re.compile(r"\W{0,3}(?:(?:is|are|were|was|the|some|other|all)\W+){0,3}", re.IGNORECASE)
_PASSIVE = re.compile(r"\s+by\b|(?<=病因)", re.IGNORECASE)
_HAS = re.compile(r"ha(?:s|ve)", re.IGNORECASE)
_PLURAL = re.compile(r"(?<=[a-z]{3})s\b")
_THAT_ONE = re.compile(r"那[种个类]$")
_NOUN = re.compile(r"[症用应]$|病因$|禁忌$")
_CLAUSES = re.compile(r"(?<=[.;:!?。；：！？,，()（）])\s*|\s[-–—]\s")
_WORD = re.compile(r"[^\W\d_]+|\d+")


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


@dataclass(frozen=True, slots=True)
class RelationCue:
    """Words that may mean any of these relations."""

    start: int
    end: int
    relations: frozenset[str]
    passive: bool = False
    """Followed by "by": its subject comes after it."""


@dataclass(frozen=True, slots=True)
class KindCue:
    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class QuestionReading:
    """The concepts, relations, kinds and operators of a question, each in order of the text."""

    text: str
    language: Language
    starts: tuple[NamedStart, ...]
    relations: tuple[RelationCue, ...]
    kinds: tuple[KindCue, ...]
    operators: frozenset[str]
    """Of "count", "not", "more", "fewer", "or", "whether", "may"."""
    asks: int
    """Question words: "which", "how many"."""
    negations: tuple[int, ...]
    """Where "not" stands."""
    unexplained: tuple[str, ...]
    """Words of content that are none of these."""
    qualifiers: tuple[str, ...] = ()
    """Those that stand for a concept on the way: "the ulcer that …", "the thyroid condition"."""

    @cached_property
    def passed_kinds(self) -> int:
        """How many kinds the question names, without those that only say what a name is ("the
        drug warfarin"). In Chinese 的 parts the two: 引起甲亢的病 is another."""
        near = 1 if self.language == "zh" else 2
        return sum(
            not any(
                cue.kind in one.kinds
                and min(abs(cue.start - one.end), abs(one.start - cue.end)) < near
                for one in self.starts
            )
            for cue in self.kinds
        )

    def is_object(self, at: int, cue: RelationCue) -> bool:
        """Whether what ends at `at` is what a Chinese verb acts on: it stands after the verb, or a
        question word between the two is the subject ("X 是什么引起的", but "X 有哪些并发症")."""
        if at > cue.start or cue.passive:
            return True
        between = _ASKING.search(self.text, at, cue.start)
        return between is not None and not _NOUN.search(self.text[cue.start : cue.end])

    @cached_property
    def asked(self) -> KindCue | None:
        """The kind that is asked for: right after the question word; in Chinese else the last
        before it; in English else the first, where the question is no "what …"."""
        asking = list(_ASKING.finditer(self.text))
        for match in asking:
            for cue in self.kinds:
                if cue.start >= match.end() and _BETWEEN.fullmatch(
                    self.text, match.end(), cue.start
                ):
                    return cue
        if self.language == "zh":
            # 治疗哮喘的药物有哪些: the noun stands before the question word.
            # 那个病: the one on the way, which is not asked for.
            kinds = [one for one in self.kinds if not _THAT_ONE.search(self.text[: one.start])]
            before = [cue for cue in kinds if asking and cue.end <= asking[0].start()]
            return before[-1] if before else kinds[-1] if kinds else None
        is_open = any(match[0].casefold() == "what" for match in asking)
        return self.kinds[0] if self.kinds and not is_open else None


@dataclass(frozen=True)
class QuestionReader:
    """Reads questions over one graph. Blocks: an async caller puts it in a thread."""

    graph: Graph

    def read(self, text: str, language: Language) -> QuestionReading:
        vocabulary = read_vocabulary()
        named = self._find_starts(text, vocabulary)
        # "The infection that …" is a concept on the way, though "infection" is a name too.
        starts = tuple(one for one in named if len(named) == 1 or not _opens_clause(one, text))
        named, starts = starts, _drop_repeated(starts)
        left = _blank(text, [(one.start, one.end) for one in named])
        both: tuple[Language, ...] = ("en", "zh") if has_cjk(text) else ("en",)
        spans = [
            (group, name, *match.span())
            for each in both
            for (group, name), pattern in vocabulary.patterns[each].items()
            for match in pattern.finditer(left)
        ]
        spans = _drop_covered(spans)
        words = [
            (name, start, end)
            for group, name, start, end in spans
            # "Is", "does" ask for a yes or no only as the first word.
            if group == "word" and (name != "whether" or has_cjk(text[start:end]) or not start)
        ]
        negations = [start for name, start, _ in words if name == "not"]
        rest = _blank(left, [(start, end) for _, _, start, end in spans])
        unexplained = tuple(_unexplained(rest, vocabulary))
        kinds = tuple(KindCue(s, e, name) for group, name, s, e in spans if group == "kind")
        presents = "symptom" in {cue.kind for cue in kinds}.union(*(one.kinds for one in starts))
        relations = tuple(
            cue
            for cue in _group_relations(left, spans)
            # "Has more indications" says nothing of symptoms.
            if presents or not _HAS.fullmatch(text, cue.start, cue.end)
        )
        operators = frozenset(name for name, _, _ in words if name != "empty")
        if {"may", "whether"} <= operators and not relations:  # may it be given, or is it barred?
            start, end = next((s, e) for name, s, e in words if name == "may")
            relations = (RelationCue(start, end, frozenset({"contraindicates", "interacts"})),)
        elif "may" in operators:
            operators -= {"may"}
        qualifying = {at for word, at in unexplained if _qualifies(word, at, left, kinds)}
        return QuestionReading(
            text,
            language,
            starts,
            relations,
            kinds,
            operators,
            sum(not _is_relative(match, left, relations) for match in _ASKING.finditer(text)),
            tuple(negations),
            tuple(word for word, at in unexplained if at not in qualifying),
            tuple(word for word, at in unexplained if at in qualifying),
        )

    def read_without_asides(self, reading: QuestionReading) -> QuestionReading:
        """The reading without the clauses that name nothing, relate nothing and ask nothing."""
        kept = []
        for clause in _CLAUSES.split(reading.text):
            one = self.read(clause, reading.language)
            told = one.starts or one.relations or one.kinds or one.operators or one.asks
            if told or not one.unexplained:
                kept.append(clause)
        return self.read(" ".join(kept), reading.language)

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
            found = next(filter(None, map(self.graph.find_exact, (*group.names, *lay))), [])
            concepts = tuple(dict.fromkeys(one.concept for one in found))
            for name in written if concepts else ():
                for match in re.finditer(re.escape(name), text):
                    yield ConceptMention(*match.span(), concepts)

    def _find_latin(self, text: str) -> Iterator[ConceptMention]:
        """Brand and other names that the graph lacks: Zocor, epinephrine, T2DM."""
        for entity in packaged_names().find_entities(text):
            own = [name for name in entity.names if name not in entity.also]
            if has_cjk(entity.written) or self.graph.find_exact(entity.written):
                continue
            found = next(filter(None, map(self.graph.find_exact, own)), [])
            concepts = tuple(dict.fromkeys(one.concept for one in found))
            words = r"\W+".join(map(re.escape, entity.written.split()))
            for match in re.finditer(rf"(?<![\w-]){words}(?![\w-])", text) if concepts else ():
                yield ConceptMention(*match.span(), concepts)

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


def _qualifies(word: str, start: int, text: str, kinds: Sequence[KindCue]) -> bool:
    """Whether the word that stands there says of a clause or a kind what its concept is called."""
    end = text.find(word, start) + len(word)
    clause = re.match(r"s? (?:that|which) ", text[end:])
    if has_cjk(word):
        clause = clause or _THAT_ONE.search(text[: text.find(word, start)])
    return clause is not None or any(cue.start - end in (0, 1) for cue in kinds)


def _is_relative(match: re.Match[str], text: str, relations: Sequence[RelationCue]) -> bool:
    """Whether a question word opens a clause: "for which X is given", "prevents what X causes"."""
    before = text[: match.start()].rstrip()
    word = match[0].casefold()
    if word == "what":
        return any(cue.end == len(before) for cue in relations)
    return word == "which" and re.search(r"\w \w*\b(?:for|in|of|by|with|from)$", before) is not None


def _is_vocabulary(name: str, vocabulary: Vocabulary) -> bool:
    """Whether a name is a word of the vocabulary: "disease", "药物"."""
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


Span = tuple[str, str, int, int]


def _drop_covered(spans: Sequence[Span]) -> list[Span]:
    """Spans in order, without those inside a longer one of any group; of equal ones all stay,
    but a word of the vocabulary comes before an empty one."""
    kept: list[Span] = []
    for one in sorted(spans, key=lambda span: (span[2], -span[3])):
        _, name, start, end = one
        covered = any(
            other[2] <= start and end <= other[3] and other[3] - other[2] > end - start
            for other in spans
        )
        doubled = name == "empty" and any(
            other[2:] == (start, end) and other[1] != "empty" for other in spans
        )
        # 禁用于 is 禁用 and no 用于: of two relations that overlap the first counts.
        cut = kept and one[0] == kept[-1][0] == "relation" and kept[-1][2] < start < kept[-1][3]
        if not covered and not doubled and not cut:
            kept.append(one)
    return kept


def _group_relations(text: str, spans: Sequence[Span]) -> Iterator[RelationCue]:
    """One cue for each place, with all relations that its words may mean."""
    places: dict[tuple[int, int], set[str]] = {}
    for group, name, start, end in spans:
        if group == "relation":
            places.setdefault((start, end), set()).add(name)
    for (start, end), names in sorted(places.items()):
        passive = _PASSIVE.match(text, end) is not None
        yield RelationCue(start, end, frozenset(names), passive)


def _unexplained(rest: str, vocabulary: Vocabulary) -> Iterator[tuple[str, int]]:
    """Words of content, each with where it stands."""
    for match in _WORD.finditer(rest):
        word = match[0]
        if has_cjk(word):
            left = [char for char in word if char not in vocabulary.empty_zh]
            if left:
                yield "".join(left), match.start()
        elif word.casefold() not in STOP_WORDS and (len(word) > 1 or word.isdigit()):
            yield word, match.start()
