"""Planning judging (Omni-RAG §4.2.2): verdicts on which queries support the gold answer.

The judge reads the better half of what a query found (§5.1.2), in units of `units`: a query's
documents together, as the paper does, or documents that several queries found once for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import exp
from typing import Literal, Protocol

from osler.errors import CapabilityMissing, OslerError
from osler.extract import estimate_tokens
from osler.llm.core.ask import score_all
from osler.llm.core.base import Likelihood, Message
from osler.llm.core.speaker import Speaker
from osler.llm.reading.verdicts import (
    numbers_grammar,
    read_numbers,
    read_verdict,
    verdict_grammar,
)
from osler.prompts import RenderedPrompt, render_question_prompt
from osler.trace import Run
from osler.types import Usage
from osler_lab.evaluate.judging import ask_judge, unread_verdicts
from osler_lab.train.spo.case import TrainingCase
from osler_lab.train.spo.explore import ExploredCase, SearchedQuery
from osler_lab.train.spo.units import (
    LIST,
    Said,
    Unit,
    better_half,
    by_document,
    by_list,
    by_set,
)


class GoldMissing(OslerError):
    """Raised for a case that lacks what this judge compares with."""


def require_gold(case: TrainingCase) -> str:
    """Returns the gold answer in words. Raises `GoldMissing` for a case without."""
    if not case.gold:
        raise GoldMissing(
            f"{case.key} has no gold answer", fix="judge by documents, or leave it out"
        )
    return case.gold


@dataclass(frozen=True, slots=True)
class QueryVerdict:
    """Verdict of a judge on one query."""

    source: str
    wire: str
    positive: bool | None
    """`None` where the judge could not be read: then the query stands in no plan."""
    score: float | None = None
    """Quality where the judge scores it; comparable within one judge, higher is better."""


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """The verdicts of one judge on one case."""

    case: TrainingCase
    verdicts: tuple[QueryVerdict, ...]
    """Verdicts, one per query, in the order of the exploration."""
    usage: Usage = field(default_factory=Usage)
    asked: int = 0
    """Times that the judge was asked, whoever it is."""
    unread: tuple[str, ...] = ()
    """Of each verdict that could not be read what was expected, and the reply."""

    @property
    def key(self) -> str:
        return self.case.key


class JudgingSignal(Protocol):
    """Source of verdicts: a model, gold documents, a reader's gain, a reranker."""

    @property
    def name(self) -> str:
        """Method and model: verdicts of two names do not mix."""

    async def judge(self, explored: ExploredCase, run: Run) -> tuple[list[QueryVerdict], int]:
        """A verdict a query, in order, and how often it was asked.

        Raises `GoldMissing` for a case without what it compares with.
        """


async def judge_case(signal: JudgingSignal, explored: ExploredCase, seed: int = 0) -> JudgedCase:
    """The verdicts, with what they cost."""
    run = Run(f"judge.{explored.key}", seed)
    verdicts, asked = await signal.judge(explored, run)
    return JudgedCase(explored.case, tuple(verdicts), run.usage, asked, unread_verdicts(run))


@dataclass(frozen=True)
class LLMJudge:
    """A model with the prompt E.4; the paper's is Qwen2.5-72B-Instruct-AWQ, by set."""

    speaker: Speaker
    unit: Unit = "list"

    @property
    def name(self) -> str:
        return f"model {self.speaker.model.name} by {self.unit}"

    async def judge(self, explored: ExploredCase, run: Run) -> tuple[list[QueryVerdict], int]:
        if self.unit == "list":
            judge_each = partial(self._judge_each, explored, run)
            verdicts, asked = await by_list(explored.queries, judge_each)
        else:
            walk = by_set if self.unit == "set" else by_document
            verdicts, asked = await walk(
                explored.queries, partial(self._judge_together, explored, run)
            )
        return verdicts_of(explored.queries, verdicts), asked

    async def _judge_together(
        self, explored: ExploredCase, run: Run, read: tuple[str, ...]
    ) -> Said:
        grammar = verdict_grammar(reason=self.speaker.reasoning)
        return await ask_judge(
            self.speaker,
            judging_prompt(explored, read),
            lambda reply: read_verdict(reply.text),
            run,
            grammar=grammar,
        )

    async def _judge_each(
        self, explored: ExploredCase, run: Run, read: tuple[str, ...]
    ) -> Sequence[Said]:
        said = await ask_judge(
            self.speaker,
            listing_prompt(explored, read),
            lambda reply: read_numbers(reply.text, len(read)),
            run,
            grammar=numbers_grammar(len(read), self.speaker.reasoning),
        )
        return [None] * len(read) if said is None else said


def verdicts_of(queries: Sequence[SearchedQuery], said: Sequence[Said]) -> list[QueryVerdict]:
    pairs = zip(queries, said, strict=True)
    return [QueryVerdict(query.source, query.wire, positive) for query, positive in pairs]


@dataclass(frozen=True)
class LikelihoodJudge:
    """The probability of one word, "yes" or "no", right after the prompt: no word is written.

    Cheaper than `LLMJudge` by the whole reply; ours (docs/papers/omni-rag.md).
    """

    speaker: Speaker
    unit: Literal["set", "document"] = "document"
    least: float = 0.5
    """Share of "yes" from which on the documents support the answer."""

    @property
    def name(self) -> str:
        return f"likelihood {self.speaker.model.name} by {self.unit} from {self.least:g}"

    async def judge(self, explored: ExploredCase, run: Run) -> tuple[list[QueryVerdict], int]:
        model = self.speaker.model
        if not isinstance(model, Likelihood):
            raise CapabilityMissing(
                f"{model.name} gives no log-probabilities", fix="use --judge model"
            )
        shares: dict[tuple[str, ...], float] = {}

        async def decide_set(read: tuple[str, ...]) -> bool:
            prompt = judging_prompt(explored, read)
            # The opened tag of the prompt's own form: the next word is then the verdict.
            begun = [Message("user", prompt.text), Message("assistant", "<answer>")]
            scored = await score_all(
                model, begun, ("yes", "no"), run, role="judge", prompt=prompt.identity
            )
            yes, no = (exp(sum(token.logprob for token in one.tokens)) for one in scored)
            # Normalised over the two words: mass on any other word says nothing either way.
            shares[read] = yes / (yes + no) if yes + no else 0.5
            return shares[read] >= self.least

        walk = by_set if self.unit == "set" else by_document
        said, asked = await walk(explored.queries, decide_set)
        verdicts = [
            replace(verdict, score=_best_share(shares, query.found))
            for verdict, query in zip(
                verdicts_of(explored.queries, said), explored.queries, strict=True
            )
        ]
        return verdicts, asked


def _best_share(shares: Mapping[tuple[str, ...], float], found: Sequence[str]) -> float:
    """The highest share of what was read out of what was found; 0 where nothing was."""
    return max((share for read, share in shares.items() if {*read} <= {*found}), default=0.0)


def judging_prompt(explored: ExploredCase, read: Sequence[str]) -> RenderedPrompt:
    """Renders prompt E.4 over these passages. Raises `GoldMissing`.

    The documents stand last but for one line, so all prompts of a case begin alike, and an
    engine with a prefix cache reads instruction, question and gold answer once.
    """
    return _render_judging("spo/judge", explored, read)


def listing_prompt(explored: ExploredCase, read: Sequence[str]) -> RenderedPrompt:
    """Renders the question which of the passages support the answer. Raises `GoldMissing`."""
    return _render_judging("spo/judge_list", explored, read)


def _render_judging(name: str, explored: ExploredCase, read: Sequence[str]) -> RenderedPrompt:
    gold, documents = require_gold(explored.case), [explored.passages[id] for id in read]
    return render_question_prompt(name, explored.case.question, gold=gold, documents=documents)


# The plain recipe calls once a query, with the better half of what it found; tokens are estimated.
Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class JudgeLoad:
    """Prompts of a judge."""

    calls: int = 0
    tokens: int = 0
    """Tokens of whole prompts; an engine with a prefix cache reads fewer."""

    def __add__(self, other: JudgeLoad) -> JudgeLoad:
        return JudgeLoad(self.calls + other.calls, self.tokens + other.tokens)


def plain_load(explored: ExploredCase, count: Count = estimate_tokens) -> JudgeLoad:
    """Load of the plain recipe: every query that found something, in a call of its own."""
    return _sum_load(explored, [better_half(query.found) for query in explored.queries], count)


def at_most(explored: ExploredCase, unit: Unit, count: Count = estimate_tokens) -> JudgeLoad:
    """Load of a judge by `unit` in the worst case: no query is decided early."""
    read = [better_half(query.found) for query in explored.queries]
    if unit == "set":
        # Queries that found the same documents, in whatever order, are judged once.
        return _sum_load(explored, {frozenset(found): found for found in read}.values(), count)
    every = list(dict.fromkeys(id for found in read for id in found))
    if unit == "document":
        return _sum_load(explored, [(id,) for id in every], count)
    lists = [every[start : start + LIST] for start in range(0, len(every), LIST)]
    return _sum_load(explored, lists, count, listing_prompt)


def _sum_load(
    explored: ExploredCase,
    groups: Iterable[Sequence[str]],
    count: Count,
    prompt: Callable[[ExploredCase, Sequence[str]], RenderedPrompt] = judging_prompt,
) -> JudgeLoad:
    prompts = [prompt(explored, read).text for read in groups if read]
    return JudgeLoad(len(prompts), sum(map(count, prompts)))
