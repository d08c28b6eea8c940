"""Core types: questions, passages, evidence, answers and solutions.

All types are frozen and independent of models, stores and settings. Two rules are built in so
that no later code can break them:

* a quote is always a substring of its passage (`Evidence` refuses anything else);
* `text`, `citations` and `grounding` of an answer are derived from its
  statements, never stored beside them, so they cannot contradict each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from string import ascii_lowercase, ascii_uppercase
from typing import Literal, Protocol

from osler.types.cost import Money as Money
from osler.types.cost import Usage as Usage
from osler.types.locator import Locator as Locator
from osler.types.marks import CITATION_MARK as CITATION_MARK
from osler.types.marks import citation_mark as citation_mark
from osler.types.marks import is_patients, mark_series

Language = Literal["en", "zh"]

LETTERS = ascii_uppercase + ascii_lowercase
"""Letters of options in order: A to Z, then a to x for DDXPlus's fifty (Omni-RAG's files)."""


_LIST_ITEM = re.compile(r"[-*•‣·]\s|\d{1,2}(?:[.)]\s|、)")


@dataclass(frozen=True, slots=True)
class Question:
    """A question, without its gold answer, which only `evaluate` and `train` know."""

    id: str
    text: str
    options: tuple[str, ...] = ()
    """Option texts in order, without their letters; empty for an open question."""
    language: Language = "en"

    @property
    def letters(self) -> tuple[str, ...]:
        """One letter per option; a question has at most as many options as there are letters."""
        return tuple(LETTERS[: len(self.options)])

    @property
    def lettered(self) -> list[tuple[str, str]]:
        """Letters with their options, in order; empty for an open question."""
        return list(zip(self.letters, self.options, strict=True))

    @property
    def with_options(self) -> str:
        """The question followed by its options, one per line, each after its letter."""
        return "\n".join([self.text, *(f"{letter}. {text}" for letter, text in self.lettered)])

    def option_text(self, letter: str) -> str:
        """The option's text. Raises `KeyError` for a letter that is not offered."""
        try:
            return self.options[self.letters.index(letter)]
        except ValueError:
            raise KeyError(letter) from None


@dataclass(frozen=True, slots=True)
class Passage:
    """A unit of text for retrieval and citation, at most 1,000 characters (Omni-RAG §3.1)."""

    id: str
    """Stable: `source:document#chunk`."""
    text: str
    source: str
    title: str
    locator: Locator = Locator()  # noqa: RUF009 - frozen
    licence: str = ""
    language: Language = "en"
    illustrative: bool = False
    """True for texts written as samples: correct in substance, but no clinical reference."""

    @property
    def heading(self) -> str:
        """Title and section path, which are indexed before the text."""
        return " > ".join(part for part in (self.title, self.locator.section) if part)


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage with the query and source that found it."""

    passage: Passage
    score: float
    """Higher is better; comparable within one search only."""
    rank: int
    """From 1."""
    query: str
    source: str
    """Source or index that found it; a fusion keeps the first one's name."""


def numbered(hits: Iterable[Hit]) -> list[str]:
    """The hits' passages as prompts show them: citation mark, heading and text."""
    return [
        f"{citation_mark(n)} {hit.passage.heading}: {hit.passage.text}"
        for n, hit in enumerate(hits, 1)
    ]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A quote `passage.text[start:end]` of a hit, with its use."""

    hit: Hit
    start: int
    end: int
    use: str = ""
    """The step it served: a tool, a sub-question, "answer"; "nearest": it does not answer."""

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end <= len(self.hit.passage.text):
            raise ValueError(
                f"span {self.start}:{self.end} lies outside passage {self.hit.passage.id}"
                f" ({len(self.hit.passage.text)} characters)"
            )

    @property
    def passage(self) -> Passage:
        return self.hit.passage

    @property
    def quote(self) -> str:
        return self.passage.text[self.start : self.end]


StatementKind = Literal["claim", "unconfirmed", "notice"]
NOT_CONFIRMED = {
    "en": "(the model's, not confirmed)",
    "zh": "（模型所言，未经证实）",
}
"""Stands behind a sentence that no passage read bears out."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence of an answer and the numbers of the evidence it rests on."""

    text: str
    cites: tuple[int, ...] = ()
    """1-based numbers into the answer's evidence; empty = explicitly not cited."""
    kind: StatementKind = "claim"
    """unconfirmed: the model's own, which no passage read bears out; notice: said about the answer,
    not in it."""

    def shown_in(self, language: Language) -> str:
        """The text, and that it is not confirmed where it is not."""
        if self.kind != "unconfirmed":
            return self.text
        return f"{self.text}{'' if language == 'zh' else ' '}{NOT_CONFIRMED[language]}"


@dataclass(frozen=True, slots=True)
class Citation:
    """`answer.text[start:end]` rests on evidence number `number`. Derived, never stored."""

    start: int
    end: int
    number: int


class Grounding(StrEnum):
    """The extent to which an answer rests on cited evidence."""

    GROUNDED = "grounded"
    PARTLY = "partly"
    UNGROUNDED = "ungrounded"
    ABSTAINED = "abstained"


class Authorship(StrEnum):
    """Authorship of an answer: sentences quoted from passages, or a model's words."""

    EXTRACTIVE = "extractive"
    WRITTEN = "written"


CautionRule = Literal[
    "retracted",
    "superseded",
    "shared",
    "instruction",
    "contradicted",
    "reference",
    # Of runs that were recorded before these rules went:
    "newer-guideline",
    "amounts",
    "directions",
]


@dataclass(frozen=True, slots=True)
class Caution:
    """A caution about the evidence itself, as that it is out of date.

    Found by a rule of `docs/guide/cautions.md`; it claims no more than the rule detects.
    """

    rule: CautionRule
    text: str
    """In the answer's language."""
    evidence: tuple[Evidence, ...]
    """The cited quote, followed by the one it is compared with, if any."""


@dataclass(frozen=True, slots=True)
class Sureness:
    """A calibrated probability that an answer is right, or that its evidence answers."""

    probability: float
    by: str
    """Name and weights of the expert that gives it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Statements with their evidence; without statements, an abstention."""

    statements: tuple[Statement, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    option: str | None = None
    """The chosen letter; `None` for open questions and abstentions."""
    authorship: Authorship = Authorship.EXTRACTIVE
    note: str = ""
    """A note for the reader: why it abstains, what is missing, who worded it."""
    language: Language = "en"
    cautions: tuple[Caution, ...] = ()
    """Cautions about the cited evidence; empty also when not checked."""
    sureness: Sureness | None = None
    """How likely the evidence answers the question; `None` where nothing can say."""

    def __post_init__(self) -> None:
        for statement in self.statements:
            for number in statement.cites:
                if not 1 <= number <= len(self.evidence):
                    mark, count = citation_mark(number), len(self.evidence)
                    raise ValueError(f"citation {mark} out of range: the answer has {count} quotes")

    @property
    def marks(self) -> tuple[str, ...]:
        """The mark of each piece of evidence, in two series: "[R1]" of a patient's record, "[1]" of
        what is known of all patients."""
        places = ((one.passage.source, one.passage.locator.kind) for one in self.evidence)
        return mark_series(is_patients(*place) for place in places)

    @property
    def superseded(self) -> frozenset[str]:
        """Ids of the cited passages of which a later issue was found."""
        found = (one for one in self.cautions if one.rule == "superseded" and one.evidence)
        return frozenset(one.evidence[0].passage.id for one in found)

    @property
    def text(self) -> str:
        return "".join(gap + self._mark(one) for gap, one in self._spaced_statements())

    @property
    def leading(self) -> tuple[Statement, ...]:
        """What is read first: of quotes the best, and what is said beside them; the others are
        read in their passages."""
        if self.authorship is Authorship.WRITTEN:
            return self.statements
        quotes = {one.quote for one in self.evidence}
        best = next((one for one in self.statements if one.text in quotes), None)
        return tuple(one for one in self.statements if one is best or one.text not in quotes)

    @property
    def claims(self) -> tuple[Statement, ...]:
        """What is answered, without what is said about the answer."""
        return tuple(one for one in self.statements if one.kind != "notice")

    @property
    def citations(self) -> tuple[Citation, ...]:
        # Positions follow from the rendering of `text`: keep both in step.
        citations, start = [], 0
        for gap, statement in self._spaced_statements():
            start += len(gap)
            citations += [Citation(start, start + len(statement.text), n) for n in statement.cites]
            start += len(self._mark(statement))
        return tuple(citations)

    @property
    def is_silent(self) -> bool:
        """Whether it does not say what was asked: an abstention, or what is nearest alone."""
        nearest = {one.use for one in self.evidence} == {"nearest"}
        return nearest or self.grounding is Grounding.ABSTAINED

    @property
    def grounding(self) -> Grounding:
        if not self.statements:
            return Grounding.ABSTAINED if self.option is None else Grounding.UNGROUNDED
        cited = sum(bool(statement.cites) for statement in self.statements)
        if cited == len(self.statements):
            return Grounding.GROUNDED
        return Grounding.PARTLY if cited else Grounding.UNGROUNDED

    def _spaced_statements(self) -> Iterator[tuple[str, Statement]]:
        """Each statement after what parts it from the one before; an item of a list has a line
        of its own, and in Chinese, which has no blanks, a mark has one behind it."""
        plain, before = "", None
        for statement in self.statements:
            item = _LIST_ITEM.match(statement.text) is not None
            yield "" if before is None else "\n" if item or before else plain, statement
            before, plain = item, " " if statement.cites or self.language != "zh" else ""

    def _mark(self, statement: Statement) -> str:
        own = self.marks
        marks = "".join(own[number - 1] for number in statement.cites)
        blank = " " if self.language != "zh" else ""
        return f"{statement.text}{blank}{marks}" if marks else statement.shown_in(self.language)


DangerKind = Literal["emergency", "self-harm"]


@dataclass(frozen=True, slots=True)
class DangerNotice:
    """The first statement of an answer about an emergency or self-harm: emergency contacts.

    Found by rules in the question alone (`osler.danger`); it is no triage and no diagnosis.
    """

    kinds: tuple[DangerKind, ...]
    """Both where somebody has hurt themself already."""
    text: str
    """In the question's language."""
    rules: tuple[str, ...] = ()
    """Names of the rules that apply."""
    language: Language = "en"


class Halt(StrEnum):
    """Reason why a run ended; a spent budget is a result, not an exception."""

    CONVERGED = "converged"
    BUDGET = "budget"
    NO_EVIDENCE = "no_evidence"
    REFUSED = "refused"


class DecidedBy(StrEnum):
    """Who decided what a solution answers."""

    METHOD = "method"
    """The method itself: its winner, its vote, its last draft."""
    READER = "reader"
    """A reader of what the method found, to whom the method leaves the answer."""
    FALLBACK = "fallback"
    """A reader in the method's stead: the method came to no decision that could be read."""


@dataclass(frozen=True, slots=True)
class Solution:
    """The result of a run: the answer, the reason for stopping, and the cost."""

    answer: Answer
    halt: Halt
    why: str
    """One line for a reader: "cppl 7.41 < sigma 10"."""
    usage: Usage = field(default_factory=Usage)
    decided: DecidedBy = DecidedBy.READER
    danger: DangerNotice | None = None
    """The notice shown first; `None` without danger."""


class Retriever(Protocol):
    """The interface of every retriever: of an index, a source, a fusion, reranked or planned."""

    async def search(self, query: str, *, k: int) -> list[Hit]:
        """The `k` best hits, best first. Raises `SourceUnavailable`, never returns [] for it."""


class Relevance(Protocol):
    """The interface of relevance scorers: cross-encoders, bi-encoders, word overlap."""

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        """One score per text, in order; higher is better, comparable within one call."""
