"""What a question says of the graph: the concepts that it names, and the words around them.

Kinds of concepts and the relations between them are those of `relations.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from osler.graph.link import ConceptMention, Dictionary
from osler.graph.store import Graph
from osler.retrieve import STOP_WORDS
from osler.text import has_cjk, read_packaged_table
from osler.types import Language


@dataclass(frozen=True, slots=True)
class ConceptKind:
    """What a concept is: a drug, a disease, a gene."""

    name: str
    types: frozenset[str]
    """Semantic types of graphs."""


@dataclass(frozen=True, slots=True)
class RelationKind:
    """A relation that questions ask for, and the predicates by which graphs state it."""

    name: str
    ends: frozenset[tuple[str, str]]
    """Kinds of the first and the second end."""
    out: frozenset[str]
    """Predicates stated from the first end."""
    inverse: frozenset[str]
    """Predicates stated from the second end."""
    symmetric: bool = False

    def steps_from(self, kind: str) -> Iterator[tuple[bool, str]]:
        """Whether one goes forward, and to which kind, from a concept of this kind."""
        for first, second in sorted(self.ends):
            if first == kind:
                yield True, second
            if second == kind and not (self.symmetric and first == kind):
                yield False, first


@dataclass(frozen=True)
class Vocabulary:
    """Kinds and relations, with a pattern for the words of each in both languages."""

    kinds: Mapping[str, ConceptKind]
    relations: Mapping[str, RelationKind]
    patterns: Mapping[Language, Mapping[tuple[str, str], re.Pattern[str]]]
    """By language; keyed by ("kind" | "relation" | "word", name)."""
    empty_zh: frozenset[str]
    """Chinese characters that carry no content."""

    def kinds_of(self, types: frozenset[str]) -> frozenset[str]:
        """The kinds of a concept with these semantic types."""
        return frozenset(name for name, kind in self.kinds.items() if kind.types & types)

    def default_relation(self, kind: str, wanted: str) -> tuple[RelationKind, bool] | None:
        """The first relation of the file between two kinds, and whether it goes forward."""
        for relation in self.relations.values():
            for forward, other in relation.steps_from(kind):
                if other == wanted:
                    return relation, forward
        return None


@cache
def read_vocabulary() -> Vocabulary:
    """The vocabulary that comes with Osler."""
    tables = read_packaged_table(__package__, "relations.toml")
    words = tables["words"]
    kinds = {
        name: ConceptKind(name, frozenset(row["types"])) for name, row in tables["kind"].items()
    }
    relations = {name: _make_relation(name, row) for name, row in tables["relation"].items()}
    rows = [
        ("kind", tables["kind"]),
        ("relation", tables["relation"]),
        ("word", _word_rows(words)),
    ]
    patterns: dict[Language, dict[tuple[str, str], re.Pattern[str]]] = {
        "en": {(g, n): _english(row["en"]) for g, named in rows for n, row in named.items()},
        "zh": {
            (g, n): _chinese(row["zh"])
            for g, named in rows
            for n, row in named.items()
            if "zh" in row
        },
    }
    return Vocabulary(kinds, relations, patterns, frozenset(words["zh_empty"]))


def _make_relation(name: str, row: Mapping[str, list[str]]) -> RelationKind:
    ends = frozenset((a, b) for a, _, b in (pair.partition(">") for pair in row["ends"]))
    inverse = frozenset(row.get("inverse", ()))
    return RelationKind(name, ends, frozenset(row["out"]), inverse, bool(row.get("symmetric")))


def _word_rows(words: Mapping[str, list[str]]) -> dict[str, dict[str, list[str]]]:
    names = [key.removeprefix("en_") for key in words if key.startswith("en_")]
    found: dict[str, dict[str, list[str]]] = {}
    for name in names:
        found[name] = {"en": words[f"en_{name}"]}
        found[name]["zh"] = words["zh_empty_words" if name == "empty" else f"zh_{name}"]
    return found


def _english(words: list[str]) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])(?:{'|'.join(words)})(?![\w-])", re.IGNORECASE)


def _chinese(words: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))))


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
_WORD = re.compile(r"[^\W\d_]+|\d+")


@dataclass(frozen=True, slots=True)
class NamedStart:
    """A concept that the question names."""

    start: int
    end: int
    name: str
    """As the question writes it."""
    kinds: frozenset[str]


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
    """Of "count", "not", "more", "fewer", "or", "whether"."""
    asks: int
    """Question words: "which", "how many"."""
    negation: int
    """Where "not" stands; -1 without one."""
    unexplained: tuple[str, ...]
    """Words of content that are none of these."""
    qualifiers: tuple[str, ...] = ()
    """Those that stand for a concept on the way: "the ulcer that …", "the thyroid condition"."""

    @cached_property
    def passed_kinds(self) -> int:
        """How many kinds the question names, without those that only say what a name is ("the
        drug warfarin")."""
        return sum(
            not any(
                cue.kind in one.kinds
                and min(abs(cue.start - one.end), abs(one.start - cue.end)) < 2
                for one in self.starts
            )
            for cue in self.kinds
        )

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
            before = [cue for cue in self.kinds if asking and cue.end <= asking[0].start()]
            return before[-1] if before else self.kinds[-1] if self.kinds else None
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
        left = _blank(text, [(one.start, one.end) for one in starts])
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
        qualifying = {at for word, at in unexplained if _qualifies(word, at, left, kinds)}
        return QuestionReading(
            text,
            language,
            starts,
            relations,
            kinds,
            frozenset(name for name, _, _ in words if name != "empty"),
            sum(not _is_relative(match, left, relations) for match in _ASKING.finditer(text)),
            negations[0] if negations else -1,
            tuple(word for word, at in unexplained if at not in qualifying),
            tuple(word for word, at in unexplained if at in qualifying),
        )

    def _find_starts(self, text: str, vocabulary: Vocabulary) -> tuple[NamedStart, ...]:
        mentions = self._find_mentions(text)
        ids = [id for mention in mentions for id in mention.concepts]
        typed = self.graph.types_of(ids) if ids else {}
        found = []
        for mention in mentions:
            name = text[mention.start : mention.end]
            every = [typed.get(id, frozenset()) for id in mention.concepts]
            kinds = frozenset(kind for types in every for kind in vocabulary.kinds_of(types))
            if kinds and not _is_vocabulary(name, vocabulary):
                found.append(NamedStart(mention.start, mention.end, name, kinds))
        rest = _blank(text, [(one.start, one.end) for one in found])
        found += self._find_abbreviations(rest, vocabulary)
        return tuple(sorted(found, key=lambda one: one.start))

    def _find_mentions(self, text: str) -> list[ConceptMention]:
        """Names as they stand, and those that stand there in the plural ("peptic ulcers")."""
        dictionary = Dictionary(self.graph, STOP_WORDS)
        found = dictionary.find_mentions(text)
        singular = dictionary.find_mentions(_PLURAL.sub(" ", text))
        chosen: list[ConceptMention] = []
        for one in sorted((*found, *singular), key=lambda each: each.start - each.end):
            if all(one.end <= other.start or other.end <= one.start for other in chosen):
                chosen.append(one)
        return chosen

    def _find_abbreviations(self, text: str, vocabulary: Vocabulary) -> Iterator[NamedStart]:
        """Names of two capitals ("AF"), which are too short to be looked for as words."""
        for match in _ABBREVIATION.finditer(text):
            ids = [named.concept for named in self.graph.find_exact(match[0])]
            typed = self.graph.types_of(ids) if ids else {}
            kinds = frozenset(kind for id in ids for kind in vocabulary.kinds_of(typed[id]))
            if kinds:
                yield NamedStart(*match.span(), match[0], kinds)


def _opens_clause(one: NamedStart, text: str) -> bool:
    clause = re.match(r"s? (?:that|which) ", text[one.end :])
    return one.name.islower() and clause is not None and not text[: one.start].endswith(" of ")


def _qualifies(word: str, start: int, text: str, kinds: Sequence[KindCue]) -> bool:
    """Whether the word that stands there says of a clause or a kind what its concept is called."""
    end = text.find(word, start) + len(word)
    clause = re.match(r"s? (?:that|which) ", text[end:])
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
