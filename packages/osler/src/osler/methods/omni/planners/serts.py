"""SeRTS: a tree of plans for each source, searched by Monte Carlo (Omni-RAG App. D.3).

The four operations are those of SeRTS itself. Where the paper leaves it open the choice is ours
(docs/papers/omni-rag.md): UCB1 over scores divided by 5, three children per node, and prompts that
show a new child its ancestors and elder siblings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from math import log, sqrt

from osler.errors import MalformedOutput
from osler.methods.omni.feedback import BEST, Evaluator
from osler.methods.omni.plan import DroppedQuery, Query, SourcePlan
from osler.methods.omni.planners import Proposal, plan_fallback
from osler.methods.omni.planners.prompting import PlanAttempt, Proposer
from osler.methods.omni.planners.reflexion import ROUNDS
from osler.methods.omni.retriever import PlannedRetriever
from osler.retrieve import LookupResult
from osler.trace import BudgetExceeded, Noted, PlanScored, Run
from osler.trace.ordered import gather_ordered
from osler.types import Question

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
    unread: bool = False
    """Whether the judge of its plan could not be read."""

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
    dropped: dict[SourcePlan, tuple[DroppedQuery, ...]] = field(default_factory=dict)

    @property
    def best_node(self) -> PlanNode | None:
        """The node with the highest score, the first of equals."""
        tried = sorted(self.root.walk_subtree, key=lambda node: node.number)[1:]
        return max(tried, key=_node_score, default=None)


@dataclass(frozen=True)
class SeRTS:
    proposer: Proposer
    retriever: PlannedRetriever
    evaluator: Evaluator
    rounds: int = ROUNDS
    width: int = WIDTH
    exploration: float = EXPLORATION

    async def plan(self, question: Question, run: Run) -> Proposal:
        names = self.proposer.source_names
        trees = await gather_ordered(
            run, [partial(self.grow_tree, name, question) for name in names]
        )
        best = [
            (tree, node.attempt.plan) for tree in trees if (node := tree.best_node) and node.attempt
        ]
        if not best:
            if run.spent:
                raise BudgetExceeded(run.spent)
            return plan_fallback(question, self.proposer.offers, "not for any source", run)
        return Proposal(
            SourcePlan.of(query for _, plan in best for query in plan.queries),
            dropped=tuple(each for tree, plan in best for each in tree.dropped[plan]),
            found={query: result for tree in trees for query, result in tree.found.items()},
        )

    async def grow_tree(self, source: str, question: Question, run: Run) -> PlanTree:
        """Grows the tree of one source: at most `rounds` plans, fewer after a plan of score 5."""
        tree, proposer = PlanTree(), self.proposer.for_source(source)
        try:
            for number in range(1, self.rounds + 1):
                parent = self._select_node(tree.root)
                node = await self._expand_node(tree, parent, number, proposer, question, run)
                back_propagate(node)
                if _node_score(node) == BEST or node.unread:
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
            node = max(node.children, key=lambda child: child.uct(self.exploration))
        return node

    async def _expand_node(
        self,
        tree: PlanTree,
        parent: PlanNode,
        number: int,
        proposer: Proposer,
        question: Question,
        run: Run,
    ) -> PlanNode:
        """Expansion and evaluation: adds a child, searches its plan and scores the results."""
        reading = await proposer.propose(question, run, parent.known_attempts)
        results = await self.retriever.gather_results(reading.plan, run, known=tree.found)
        tree.found |= results
        said = await self.evaluator.evaluate_documents(question, results, proposer.offers, run)
        tree.dropped[reading.plan] = reading.dropped
        attempt = PlanAttempt(reading.plan, said.score, said.suggestion)
        node = PlanNode(number, attempt, parent, unread=bool(said.unread))
        parent.children.append(node)
        # One tree per source: the proposer has exactly one.
        (source,) = proposer.source_names
        run.emit(
            PlanScored(
                source,
                number,
                parent.number,
                reading.plan.planned_queries,
                said.score,
                said.suggestion,
            )
        )
        return node


def back_propagate(node: PlanNode) -> None:
    """Backpropagation: counts the score for the node and all its ancestors."""
    for above in node.path:
        above.visits += 1
        above.value += _node_score(node) / BEST


def _node_score(node: PlanNode) -> int:
    return node.attempt.score if node.attempt else -1
