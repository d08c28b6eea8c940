"""Planning judging (Omni-RAG §4.2.2): which queries found what supports the gold answer.

The judge reads the better half of what a query found (§5.1.2). A model may judge each query's
documents together, as the paper does, or each document alone: then documents that several
queries found are judged once, those first that decide most, and a query is positive as soon as
one of its documents is. Queries that found the same documents are judged once in either way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp
from typing import Literal, Protocol

from osler.errors import CapabilityMissing, MalformedOutput, OslerError
from osler.llm.ask import score_all
from osler.llm.base import Likelihood, Message
from osler.llm.speaker import Speaker
from osler.llm.verdict import parse_verdict, verdict_grammar
from osler.omni.planners.base import lettered
from osler.prompts import Rendered, render
from osler.trace import Run
from osler.train.spo.case import Case
from osler.train.spo.explore import Explored, Searched
from osler.types import Usage

Unit = Literal["set", "document"]
"""What is judged at once: a query's documents together, or each document."""


class NoGold(OslerError):
    """A case without what this judge compares with."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge says of one query."""

    source: str
    wire: str
    positive: bool | None
    """`None` where the judge could not be read: then the query stands in no plan."""
    score: float | None = None
    """How good, where the judge says it; comparable within one judge, higher is better."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdicts of one judge on one case."""

    case: Case
    verdicts: tuple[Verdict, ...]
    """One a query, in the order of the exploration."""
    usage: Usage = field(default_factory=Usage)
    asked: int = 0
    """Times that the judge was asked, whoever it is."""

    @property
    def key(self) -> str:
        return self.case.key


class Signal(Protocol):
    """Who judges."""

    @property
    def name(self) -> str:
        """Method and model: verdicts of two names do not mix."""
        ...

    async def judge(self, explored: Explored, run: Run) -> tuple[list[Verdict], int]:
        """A verdict a query, in order, and how often it was asked.

        Raises `NoGold` for a case without what it compares with.
        """
        ...


async def judged(signal: Signal, explored: Explored, seed: int = 0) -> Judged:
    """The verdicts, with what they cost."""
    run = Run(f"judge.{explored.key}", seed)
    verdicts, asked = await signal.judge(explored, run)
    return Judged(explored.case, tuple(verdicts), run.usage, asked)


def half(found: Sequence[str]) -> tuple[str, ...]:
    """The better half, rounded up: the latter is left out while judging (§5.1.2)."""
    return tuple(found[: (len(found) + 1) // 2])


Decide = Callable[[tuple[str, ...]], Awaitable[bool | None]]
"""Whether these passages, together, support the gold answer; `None` = it cannot be told."""


async def by_set(queries: Sequence[Searched], decide: Decide) -> tuple[list[bool | None], int]:
    """Each query by all it found; queries that found the same are judged once."""
    known: dict[frozenset[str], bool | None] = {}
    for query in queries:
        read = half(query.found)
        if frozenset(read) not in known:
            known[frozenset(read)] = await decide(read) if read else False
    asked = len(known) - (frozenset() in known)
    return [known[frozenset(half(query.found))] for query in queries], asked


async def by_document(queries: Sequence[Searched], decide: Decide) -> tuple[list[bool | None], int]:
    """Each document once, and only while it may still decide a query.

    A query is positive when one of its documents is, negative when none is, and undecided
    (`None`) when none is and one of them could not be read.
    """
    read = [half(query.found) for query in queries]
    open_ = {n for n, found in enumerate(read) if found}
    known: dict[str, bool | None] = {}
    while open_:
        passage = _most_telling((read[n] for n in sorted(open_)), known)
        if passage is None:
            break
        known[passage] = await decide((passage,))
        if known[passage]:
            open_ -= {n for n in open_ if passage in read[n]}
    return [_any([known.get(id, False) for id in found]) for found in read], len(known)


def _most_telling(read: Iterable[Sequence[str]], known: Mapping[str, bool | None]) -> str | None:
    """The document that most undecided queries found; of equals the one that stands highest."""
    held = list(read)
    counts = Counter(id for found in held for id in found if id not in known)
    if not counts:
        return None
    place = {id: min(f.index(id) for f in held if id in f) for id in counts}
    return min(counts, key=lambda id: (-counts[id], place[id], id))


def _any(said: Sequence[bool | None]) -> bool | None:
    if any(said):
        return True
    return None if None in said else False


async def decided(
    unit: Unit, queries: Sequence[Searched], decide: Decide
) -> tuple[list[Verdict], int]:
    """The verdicts of either way."""
    said, asked = await (by_set if unit == "set" else by_document)(queries, decide)
    pairs = zip(queries, said, strict=True)
    return [Verdict(query.source, query.wire, found) for query, found in pairs], asked


@dataclass(frozen=True)
class SaysSo:
    """A model with the prompt E.4; the paper's is Qwen2.5-72B-Instruct-AWQ."""

    speaker: Speaker
    unit: Unit = "document"

    @property
    def name(self) -> str:
        return f"model {self.speaker.model.name} by {self.unit}"

    async def judge(self, explored: Explored, run: Run) -> tuple[list[Verdict], int]:
        async def decide(read: tuple[str, ...]) -> bool | None:
            prompt = judging_prompt(explored, read)
            grammar = verdict_grammar(reason=self.speaker.reasoning)
            try:
                return await self.speaker.ask(
                    prompt, lambda reply: parse_verdict(reply.text), run, grammar=grammar
                )
            except MalformedOutput:
                return None

        return await decided(self.unit, explored.queries, decide)


@dataclass(frozen=True)
class Likely:
    """The probability of one word, "yes" or "no", right after the prompt: no word is written.

    Cheaper than `SaysSo` by the whole reply; ours (PAPERS.md).
    """

    speaker: Speaker
    unit: Unit = "document"
    least: float = 0.5
    """Share of "yes" from which on the documents support the answer."""

    @property
    def name(self) -> str:
        return f"likelihood {self.speaker.model.name} by {self.unit} from {self.least:g}"

    async def judge(self, explored: Explored, run: Run) -> tuple[list[Verdict], int]:
        model = self.speaker.model
        if not isinstance(model, Likelihood):
            raise CapabilityMissing(
                f"{model.name} gives no log-probabilities", fix="use --judge model"
            )
        shares: dict[tuple[str, ...], float] = {}

        async def decide(read: tuple[str, ...]) -> bool:
            prompt = judging_prompt(explored, read)
            begun = [Message("user", prompt.text), Message("assistant", "<answer>")]
            scored = await score_all(
                model, begun, ("yes", "no"), run, role="judge", prompt=prompt.identity
            )
            yes, no = (exp(sum(token.logprob for token in one.tokens)) for one in scored)
            shares[read] = yes / (yes + no) if yes + no else 0.5
            return shares[read] >= self.least

        verdicts, asked = await decided(self.unit, explored.queries, decide)
        told = [
            replace(verdict, score=_best(shares, query.found))
            for verdict, query in zip(verdicts, explored.queries, strict=True)
        ]
        return told, asked


def _best(shares: Mapping[tuple[str, ...], float], found: Sequence[str]) -> float:
    """The highest share of what was read out of what was found; 0 where nothing was."""
    return max((share for read, share in shares.items() if {*read} <= {*found}), default=0.0)


def judging_prompt(explored: Explored, read: Sequence[str]) -> Rendered:
    """E.4 over these passages. Raises `NoGold`.

    The documents stand last but for one line, so all prompts of a case begin alike, and an
    engine with a prefix cache reads instruction, question and gold answer once.
    """
    case = explored.case
    if not case.gold:
        raise NoGold(f"{case.key} has no gold answer", fix="judge by documents, or leave it out")
    return render(
        "spo/judge",
        case.question.language,
        question=case.question.text,
        options=lettered(case.question),
        gold=case.gold,
        documents=[explored.passages[id] for id in read],
    )
