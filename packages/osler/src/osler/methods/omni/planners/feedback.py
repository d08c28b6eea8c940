"""Planners that search, are judged and plan better: Reflexion and SeRTS (Omni-RAG App. D.3, E.8).

A judge's feedback on the documents that a plan found (App. E.9):

<suggestion>…</suggestion>
<score> 3 </score>                     0 to 5

Reflexion goes one path; SeRTS searches a tree of plans for each source by Monte Carlo. The four
operations are those of SeRTS itself. Where the paper leaves it open the choice is ours
(docs/papers/omni-rag.md): UCB1 over scores divided by 5, three children per node, and prompts that
show a new child its ancestors and elder siblings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import log, sqrt
from typing import Protocol

from osler.errors import MalformedOutput
from osler.llm.core.ask import Speaker
from osler.llm.core.grammar import Grammar, alt, free_text, seq
from osler.methods.omni.plan import Query, SourcePlan
from osler.methods.omni.planners import Proposal, SourceDescription, plan_fallback, source_variables
from osler.methods.omni.planners.single import PlanAttempt, Proposer
from osler.methods.omni.retriever import Found, PlannedRetriever
from osler.prompts import render_question_prompt
from osler.retrieve import LookupResult
from osler.text import clean_text, one_line
from osler.trace import BudgetExceeded, Noted, PlanScored, Run
from osler.trace.ordered import gather_ordered
from osler.types import Question

BEST = 5
"""The score at which planning stops (App. D.3)."""
_SCORE = re.compile(
    r"<\s*score\s*>\s*([0-9]+)(?:\s*/\s*5)?\s*(?:[.。分][^<]*)?(?:<|$)", re.IGNORECASE
)
_NAMED = re.compile(
    r"(?:score|得分|评分)[\s*_]*(?:is|:|：|是|为)[\s*_]*([0-9]++)(?!\s*/\s*(?!5\b)[0-9])",
    re.IGNORECASE,
)
_SUGGESTION = re.compile(
    r"<\s*suggestion\s*>(.*?)(?:<\s*/?\s*(?:suggestion|score)\s*>|$)", re.IGNORECASE | re.DOTALL
)
# Characters of a suggestion in later prompts (about 100 words).
_LONGEST = 800


@dataclass(frozen=True, slots=True)
class Feedback:
    score: int
    suggestion: str = ""
    unread: str = ""
    """Why no verdict could be read: then further plans would not be led by anything."""

    def __post_init__(self) -> None:
        if not 0 <= self.score <= BEST:
            raise ValueError(f"the score must be 0 to {BEST}, not {self.score}")


class Evaluator(Protocol):
    async def evaluate_documents(
        self, question: Question, found: Found, offers: tuple[SourceDescription, ...], run: Run
    ) -> Feedback:
        """Scores the documents for the question. Raises only `BudgetExceeded`."""


@dataclass(frozen=True)
class DocumentJudge:
    """A model with prompt E.9. An unreadable verdict counts as score 0 and is noted in the run."""

    speaker: Speaker
    documents: int = 5
    """Documents of each query that it reads: the second half is left out while judging (§5.1.2)."""

    async def evaluate_documents(
        self, question: Question, found: Found, offers: tuple[SourceDescription, ...], run: Run
    ) -> Feedback:
        prompt = render_question_prompt(
            "omni/feedback",
            question,
            sources=source_variables(offers, question.language),
            documents=[
                {
                    "source": query.source,
                    "query": query.wire,
                    "texts": [hit.passage.text for hit in result.hits[: self.documents]],
                }
                for query, result in found.items()
            ],
        )
        try:
            return await self.speaker.ask(
                prompt,
                lambda reply: read_feedback(reply.text),
                run,
                grammar=feedback_grammar(),
                repairs=1,
            )
        except MalformedOutput as error:
            run.emit(Noted(f"a plan could not be judged: {error.message}"))
            return Feedback(0, unread=error.message)


def read_feedback(reply: str) -> Feedback:
    """Reads the last score, 0 to 5, and the last suggestion, which may be absent.

    Raises `MalformedOutput` without such a score.
    """
    text = clean_text(reply)
    scores = _SCORE.findall(text) or _NAMED.findall(text)
    said = [one_line(found)[:_LONGEST] for found in _SUGGESTION.findall(text)]
    # "10" and "45" are no scores of this scale, not even cut to their first digit.
    if not scores or len(scores[-1]) > 1 or int(scores[-1]) > BEST:
        raise MalformedOutput(reply, expected="<suggestion>…</suggestion> <score>0 to 5</score>")
    return Feedback(int(scores[-1]), next(filter(None, reversed(said)), ""))


def feedback_grammar(longest: int = 400) -> Grammar:
    score = seq("<score> ", alt(*map(str, range(BEST + 1))), " </score>")
    told_ = seq("<suggestion>", free_text(longest, without="<>"), "</suggestion>\n")
    return Grammar("feedback", seq(told_, score))


ROUNDS = 8
"""App. D.3."""


@dataclass(frozen=True)
class JudgedPlanner:
    """What plans with feedback are made of, searched and judged by."""

    proposer: Proposer
    retriever: PlannedRetriever
    evaluator: Evaluator
    rounds: int = ROUNDS

    async def try_plan(
        self,
        question: Question,
        tried: Sequence[PlanAttempt],
        found: dict[Query, LookupResult],
        run: Run,
        *,
        number: int,
        parent: int,
        source: str = "",
    ) -> PlanAttempt:
        """A plan in view of those `tried`, searched into `found` and judged; for one source alone
        where it is named."""
        proposer = self.proposer.for_source(source) if source else self.proposer
        reading = await proposer.propose(question, run, tried)
        results = await self.retriever.gather_results(reading.plan, run, known=found)
        found |= results
        said = await self.evaluator.evaluate_documents(question, results, proposer.offers, run)
        queries = reading.plan.planned_queries
        run.emit(PlanScored(source, number, parent, queries, said.score, said.suggestion))
        ends = said.score == BEST or bool(said.unread)
        return PlanAttempt(reading.plan, said.score, said.suggestion, reading.dropped, ends)


class Reflexion(JudgedPlanner):
    """One path of plans for all sources; the best one wins, of equals the later."""

    async def plan(self, question: Question, run: Run) -> Proposal:
        tried: list[PlanAttempt] = []
        found: dict[Query, LookupResult] = {}
        try:
            for number in range(1, self.rounds + 1):
                # All feedback so far is told.
                attempt = await self.try_plan(
                    question, tried, found, run, number=number, parent=number - 1
                )
                tried.append(attempt)
                if attempt.ends:
                    break
        except MalformedOutput as error:
            if not tried:
                return plan_fallback(question, self.proposer.offers, error.message, run)
            run.emit(Noted(f"no better plan could be read: {error.message}"))
        except BudgetExceeded as spent:
            if not tried:
                raise
            run.emit(Noted(f"planning was cut short: {spent}"))
        # Of equal scores the later plan: it has seen more feedback.
        best = max(reversed(tried), key=lambda attempt: attempt.score)
        return Proposal(best.plan, dropped=best.dropped, found=found)


WIDTH = 3
EXPLORATION = sqrt(2)


@dataclass
class PlanNode:
    """A plan in the tree; the root has none."""

    number: int = 0
    """In order of creation; the root is 0."""
    attempt: PlanAttempt | None = None
    parent: PlanNode | None = field(default=None, repr=False)
    children: list[PlanNode] = field(default_factory=list)
    visits: int = 0
    value: float = 0.0
    """Sum of the scores divided by 5, of this node and its descendants."""

    def uct(self, exploration: float) -> float:
        """UCB1 value. Raises `ValueError` for a root and for a node without visits."""
        if self.parent is None or not self.visits:
            raise ValueError("only a visited child is chosen among others")
        # UCB1: mean value plus the exploration term.
        return self.value / self.visits + exploration * sqrt(log(self.parent.visits) / self.visits)

    @property
    def path(self) -> Iterator[PlanNode]:
        """The nodes from here up to the root."""
        node: PlanNode | None = self
        while node is not None:
            yield node
            node = node.parent

    @property
    def known_attempts(self) -> list[PlanAttempt]:
        """The attempts shown to a new child: its ancestors and elder siblings in order of
        creation."""
        nodes = sorted([*self.path, *self.children], key=lambda node: node.number)
        return [node.attempt for node in nodes if node.attempt is not None]

    @property
    def walk_subtree(self) -> Iterator[PlanNode]:
        yield self
        for child in self.children:
            yield from child.walk_subtree


@dataclass
class PlanTree:
    """The tree of one source with the results of its searches."""

    root: PlanNode = field(default_factory=PlanNode)
    found: dict[Query, LookupResult] = field(default_factory=dict)

    @property
    def best_node(self) -> PlanNode | None:
        """The node with the highest score, the first of equals."""
        tried = sorted(self.root.walk_subtree, key=lambda node: node.number)[1:]
        return max(tried, key=_node_score, default=None)


@dataclass(frozen=True)
class SeRTS(JudgedPlanner):
    width: int = WIDTH

    async def plan(self, question: Question, run: Run) -> Proposal:
        names = self.proposer.source_names
        trees = await gather_ordered(
            run, [partial(self.grow_tree, name, question) for name in names]
        )
        nodes = [node for tree in trees if (node := tree.best_node)]
        best = [node.attempt for node in nodes if node.attempt]
        if not best:
            if run.spent:
                raise BudgetExceeded(run.spent)
            return plan_fallback(question, self.proposer.offers, "not for any source", run)
        return Proposal(
            SourcePlan.of(query for attempt in best for query in attempt.plan.queries),
            dropped=tuple(each for attempt in best for each in attempt.dropped),
            found={query: result for tree in trees for query, result in tree.found.items()},
        )

    async def grow_tree(self, source: str, question: Question, run: Run) -> PlanTree:
        """Grows the tree of one source: at most `rounds` plans, fewer after a plan of score 5."""
        tree = PlanTree()
        try:
            for number in range(1, self.rounds + 1):
                parent = self._select_node(tree.root)
                # Expansion and evaluation: a child's plan is searched and its results scored.
                attempt = await self.try_plan(
                    question,
                    parent.known_attempts,
                    tree.found,
                    run,
                    number=number,
                    parent=parent.number,
                    source=source,
                )
                parent.children.append(node := PlanNode(number, attempt, parent))
                back_propagate(node)
                if attempt.ends:
                    break
        except MalformedOutput as error:
            run.emit(Noted(f"no further plan for {source}: {error.message}"))
        except BudgetExceeded as spent:
            run.emit(Noted(f"planning for {source} was cut short: {spent}"))
        return tree

    def _select_node(self, node: PlanNode) -> PlanNode:
        """Selection: descends along the best children to the first node that may have more."""
        # Full nodes are passed through; the first with room gets the new child.
        while len(node.children) >= self.width:
            node = max(node.children, key=lambda child: child.uct(EXPLORATION))
        return node


def back_propagate(node: PlanNode) -> None:
    """Backpropagation: counts the score for the node and all its ancestors."""
    for above in node.path:
        above.visits += 1
        above.value += _node_score(node) / BEST


def _node_score(node: PlanNode) -> int:
    return node.attempt.score if node.attempt else -1
