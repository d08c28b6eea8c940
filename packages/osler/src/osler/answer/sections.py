"""Questions for a topic of one subject and nothing more, as "treatment of gout" is.

They are answered from passages that are headed by the subject: of hypertension's first drug the
sentence that is nearest may be anaphylaxis'. Nor does nearness tell much among sentences under one
heading: of a migraine's treatment the nearest is its definition. So, in English, the section that
is headed by what is asked is quoted in its order, from where sentences of the kind begin
(`osler.retrieve.experts.kinds`): under "Treatment" the first may still say what the disease is,
under "Features and treatment" many do.

Of other questions that are nearer to a heading than to any sentence ("medicines for crohn's"), in
Chinese as well, the sentences of the kind that is asked for go first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from osler.answer.checks import AskedFacts, is_headed_by_another
from osler.answer.named import find_asked_drugs, other_names
from osler.answer.sentences import QuoteCandidate, quotable_spans
from osler.retrieve.entity_names import fold_words
from osler.retrieve.experts.kinds import Kind
from osler.sources.catalogue import DRUG_LABEL, UNTRUSTED, trust_of
from osler.text import has_cjk, language_of, read_packaged_table
from osler.types import Hit, Language, Relevance

SURE = 0.5
"""Least probability of a section that is headed by the subject and by what is asked."""
FAVOUR = 1.0
"""What a sentence that is wholly of the kind asked for gains in the order."""
_ELSEWHERE = frozenset({"another disease", "another subject"})
LABEL_SECTION = 0.4
"""What the section of a label gains that is surely asked for, where relevance lies about 1."""
_NEARER: Mapping[Language, float] = {"en": 0.11, "zh": 0.03}
"""By how much a question must be nearer to a heading than to any sentence."""
_LONGEST = 160
"""Characters of a question that asks for a section and nothing else."""
_GIVES = re.compile(r"\b(?:give|take|start|do|use)\b", re.IGNORECASE)
_TELLING = 0.5
"""Mean share of its best sentences from which a section is of what is asked by itself."""
_TELLS = 5
"""Letters of a word that a question and a heading may share by more than chance."""
_BEST = 3
"""Sentences by which sections are compared."""
_BEGINS = 0.15
"""Share from which a sentence may be the first of the kind that is asked for, if it is a quarter of
the best: of hypercalcaemia's treatment a formula was the first."""
_NOTHING = 0.03
"""Share below which a further sentence at the beginning says nothing of the kind: under
"Hyperkalaemia > Emergency treatment" what the ECG shows."""
_MIXED = re.compile(r" and |\b(?:attack|crisis|hours?)\b", re.IGNORECASE)
_ELSE = re.compile(
    r"\b(?:avoid|interact\w+|adverse|side effects|history|society|conversion|drugs that)\b",
    re.IGNORECASE,
)
"""Of headings that name drugs and no treatment."""
_BRACKETS = re.compile(r"\s*\([^)]*\)")


@dataclass(frozen=True)
class SectionWords:
    """The patterns of `sections.toml`."""

    asked: Mapping[Kind, re.Pattern[str]]
    headed: Mapping[Kind, re.Pattern[str]]
    light: frozenset[str]
    """Folded English words that are said in any question."""
    light_zh: re.Pattern[str]
    """Chinese words that are, and those for what is asked."""


@cache
def read_words() -> SectionWords:
    """The patterns, compiled once."""
    table = read_packaged_table(__package__, "sections.toml")
    asked, headed = (
        {kind: re.compile(words, re.IGNORECASE) for kind, words in table[name].items()}
        for name in ("asked", "headed")
    )
    light = table["light"]
    longest_first = sorted(light["zh"].split(), key=len, reverse=True)
    zh = re.compile(rf"\W|{'|'.join(longest_first)}")
    return SectionWords(asked, headed, frozenset(fold_words(light["en"])), zh)


def find_asked_kind(text: str) -> Kind | None:
    """What a question asks for by its words; `None` where these are of no kind, or of several.

    "What to give first in …" asks for a treatment by its verb alone.
    """
    kinds = [kind for kind, words in read_words().asked.items() if words.search(text)]
    if not kinds and _GIVES.search(text):
        return "treatment"
    return kinds[0] if len(kinds) == 1 else None


def choose_subject(asked: str, hits: Sequence[Hit]) -> list[Hit]:
    """The hits that are headed by the subject of which alone a question asks; empty where it asks
    of another, or of more. What nobody vouches for is chosen where nothing else was found."""
    trusted = [hit for hit in hits if trust_of(hit.passage.source) > UNTRUSTED]
    language, kind = language_of(asked), find_asked_kind(asked)
    if len(asked) > _LONGEST or (kind is None and language == "en"):
        return []
    named = [
        (
            max(find_subject(asked, kind, _names_of(one), _parts(hit)[-1]) for one in _parts(hit)),
            hit,
        )
        for hit in trusted or hits
        if hit.passage.language == language
    ]
    longest = max((length for length, _ in named), default=0)
    own = [hit for length, hit in named if longest and length == longest]
    if language == "en" or kind is None:  # English sections are chosen by what stands in them
        return own
    return [hit for hit in own if _is_headed(kind, _parts(hit)[-1])] or own


def _parts(hit: Hit) -> list[str]:
    return hit.passage.heading.split(" > ")


def find_subject(text: str, kind: Kind | None, names: Sequence[str], last: str = "") -> int:
    """Length of the name, of a subject's names, that a question has where it says nothing else
    beside the kind but what is said in any question; 0 = it asks of something else, or of more.
    In Chinese it may say what the `last` part of the heading says, and this counts with it."""
    words = read_words()
    if has_cjk(text):
        name = max((name for name in names if name in text), key=len, default="")
        more = words.light_zh.sub("", text.replace(name, " ")) if name else ""
        return len(name + more) if more in last else 0
    said = fold_words(words.asked[kind].sub(" ", text) if kind else text)
    folded = [fold_words(name) for name in names if not has_cjk(name)]
    fitting = (name for name in folded if name and _all_else_is_light(said, name, words.light))
    return max((len(" ".join(name)) for name in fitting), default=0)


def _all_else_is_light(said: Sequence[str], name: Sequence[str], light: frozenset[str]) -> bool:
    width = len(name)
    return any(
        said[at : at + width] == name and light.issuperset((*said[:at], *said[at + width :]))
        for at in range(len(said) - width + 1)
    )


async def quote_section(
    asked: str, own: Sequence[Hit], kinds: Relevance | None
) -> list[QuoteCandidate]:
    """The sentences of the section that is asked for, of hits that are headed by the subject, in
    their order; `relevance` is `SURE` where its heading says so, else 0. Empty where none is, in
    Chinese, and without `kinds`."""
    kind = find_asked_kind(asked)
    if kinds is None or kind is None or has_cjk(asked):
        return []
    read = [await _read_section(kind, asked, hit, kinds) for hit in own]
    found = [one for one in read if one.is_headed or (one.is_open and one.worth >= _TELLING)]
    return max(found, key=lambda one: one.rank).quotes if found else []


async def favour_kind(
    facts: AskedFacts, found: Sequence[QuoteCandidate], kinds: Relevance, scorer: Relevance
) -> list[QuoteCandidate]:
    """The sentences, those of the kind that is asked for favoured, where the question says nothing
    beside a disease and the kind, or is nearer to a heading than to what stands under any: it asks
    for a topic, and nearness to the question does not tell them apart. What then stands under
    another's name only mentions the disease. A label's headings are those of any drug."""
    asked = facts.asked.written
    kind = find_asked_kind(asked)
    of_label = any(one.hit.passage.locator.kind == DRUG_LABEL for one in found)
    if kind is None or not found or of_label:
        return list(found)
    texts = [one.text for one in found]
    heads = [" ".join(_parts(one.hit)[-2:]) for one in found]
    if not any(find_subject(asked, kind, names) for names in facts.diseases):
        near = await scorer.relevance(asked, [*texts, *heads])
        if max(near[len(texts) :]) - max(near[: len(texts)]) < _NEARER[language_of(asked)]:
            return list(found)
    shares = await kinds.relevance(kind, texts)
    return [
        replace(
            one,
            favour=FAVOUR * share,
            failed=_ELSEWHERE if is_headed_by_another(facts, one) else frozenset(),
        )
        for one, share in zip(found, shares, strict=True)
    ]


async def weigh_label_sections(
    asked: str, hits: Sequence[Hit], sections: Relevance | None
) -> Sequence[float]:
    """What each hit gains as a section of a drug's label that is likely asked for, else 0."""
    of_labels = [hit.passage.locator.kind == DRUG_LABEL for hit in hits]
    if sections is None or not any(of_labels) or has_cjk(asked):
        return [0.0] * len(hits)
    shares = await sections.relevance(asked, [_parts(hit)[-1] for hit in hits])
    return [LABEL_SECTION * one * of for one, of in zip(shares, of_labels, strict=True)]


@lru_cache(maxsize=4096)
def _names_of(part: str) -> tuple[str, ...]:
    """A part of a heading, without what stands in brackets, and its other names."""
    bare = _BRACKETS.sub("", part)
    return (bare, *other_names(bare))


@dataclass(frozen=True, slots=True)
class _ReadSection:
    """A passage under the subject's name."""

    hit: Hit
    shares: Mapping[tuple[int, int], float]
    """Of each sentence, by its place: how much it is of what is asked (`SentenceKinds`)."""
    is_headed: bool
    is_near: bool
    """Whether its heading has a further word of the question: "Acute attack"."""
    is_open: bool
    """Whether its heading names no kind at all."""
    is_mixed: bool
    """Whether its heading names more than one thing."""

    @property
    def worth(self) -> float:
        best = sorted(self.shares.values(), reverse=True)[:_BEST]
        return sum(best) / len(best) if best else 0.0

    @property
    def rank(self) -> float:
        return self.is_headed + self.worth + self.is_near / 2 - self.hit.rank / 50

    @property
    def quotes(self) -> list[QuoteCandidate]:
        sure = SURE if self.is_headed else 0.0
        spans, shares = list(self.shares), list(self.shares.values())
        begun = [n for n, share in enumerate(shares) if share >= max(_BEGINS, max(shares) / 4)]
        first = begun[0] if begun else 0
        if not self.is_mixed:
            first = min(first, self._first_told)
        return [QuoteCandidate(self.hit, *span, sure) for span in spans[first:]]

    @property
    def _first_told(self) -> int:
        """Place of the first sentence after the beginning that may be of the kind: a drug's name
        tells of a treatment, whatever its share."""
        text = self.hit.passage.text
        further = list(self.shares.items())[1:]
        told = (
            at
            for at, ((start, end), share) in enumerate(further, 1)
            if share >= _NOTHING or find_asked_drugs(text[start:end])
        )
        return next(told, 1)


async def _read_section(kind: Kind, asked: str, hit: Hit, kinds: Relevance) -> _ReadSection:
    spans = quotable_spans(hit)
    texts = [hit.passage.text[start:end] for start, end in spans]
    shares = await kinds.relevance(kind, texts)
    last = _parts(hit)[-1]
    rest = read_words().asked[kind].sub(" ", asked)
    return _ReadSection(
        hit,
        dict(zip(spans, shares, strict=True)),
        _is_headed(kind, last),
        any(len(word) >= _TELLS and word in fold_words(last) for word in fold_words(rest)),
        not (_ELSE.search(last) or any(one.search(last) for one in read_words().headed.values())),
        _MIXED.search(last) is not None,
    )


def _is_headed(kind: Kind, heading: str) -> bool:
    return bool(read_words().headed[kind].search(heading)) and not _ELSE.search(heading)


def lead_with_section(
    section: Sequence[QuoteCandidate], found: Sequence[QuoteCandidate]
) -> list[QuoteCandidate]:
    """The section's sentences, then what else was found; as sure as the best of both."""
    if not section or not found:
        return list(found)
    sure = max(found[0].relevance, section[0].relevance)
    quoted = {(one.hit.passage.id, one.start) for one in section}
    rest = [one for one in found if (one.hit.passage.id, one.start) not in quoted]
    return [*(replace(one, relevance=sure) for one in section), *rest]
