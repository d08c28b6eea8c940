"""The one system: KAG-Thinker takes a question apart, TC-RAG's machine solves each lookup, and
Omni-RAG's planner chooses the sources of each search.

It is KAG-Thinker's solver (`osler.methods.kag.solver.Thinker`) with other parts in its places:

| Place | Part here | Without it |
|---|---|---|
| what answers a Retrieval | `MachineDepth` | `osler.methods.kag.depth.DepthSolver` |
| a search | `PlannedSearch` | an ordinary retriever |
| a signal of the knowledge boundary | `StateSignal` | the paper's two |

So there is one run, with one trace and one budget, and one list of evidence. The boundary first
checks whether the model knows the answer. If not, the machine runs on the sub-question with a
memory of its own: its conclusion is the step's answer, and the passages in that memory are the
answer's evidence. A search of its tools is planned anew for each call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from osler.answer import plain_text
from osler.llm.core.base import Message, TokenScore
from osler.methods.kag.boundary import Boundary, SignalValue
from osler.methods.kag.depth import BoundFormRetriever, DepthSolver, FormRetriever
from osler.methods.kag.logical_forms import PlanStep, Retrieval, SubAnswer, render_form
from osler.methods.omni.planners import SourcePlanner
from osler.methods.omni.retriever import PlannedRetriever, missing_sources, order_results
from osler.methods.omni.solver import request_plan
from osler.methods.tcrag.machine import TuringMachine
from osler.methods.tcrag.stack import Draft, FrameKind, MemoryStack, Monitor, mean_token_probability
from osler.methods.tcrag.tools import (
    KG_FORM,
    PLANNED_RAG,
    Observation,
    ToolCall,
    number_passages,
    observe_failure,
)
from osler.retrieve import LookupResult, look_up, tell_order
from osler.retrieve.pooled import PooledOrder
from osler.sources.catalogue import GRAPH
from osler.trace import FormBegun, Noted, Run
from osler.types import Halt, Language, Question, Solution


@dataclass(frozen=True)
class PlannedSearch:
    """A `kag.depth.PassageFinder` that makes one source plan per query (Omni-RAG §4.1)."""

    planner: SourcePlanner
    retriever: PlannedRetriever
    order: PooledOrder | None = None
    """The single fused ranking of all results; `None`: the first of each query in turn."""
    per_source: int = 5
    """Passages that are read, for each source that found any."""

    async def find_passages(
        self, words: str, language: Language, run: Run, *, k: int
    ) -> LookupResult:
        """The best `k` passages of all planned sources.

        `failed` says why there are none when sources were down. Raises `BudgetExceeded`.
        """
        asked = Question("search", words, language=language)
        # Omni-RAG §4.1 plans each search anew: sub-questions differ in their best sources.
        proposal = await request_plan(self.planner, asked, run)
        results = await self.retriever.gather_results(proposal.plan, run, known=proposal.found)
        found = await order_results(words, results, self.per_source, self.order)
        hits = found[:k]
        return LookupResult(hits, "" if hits else "; ".join(missing_sources(results)))


@dataclass(frozen=True)
class PlannedTool:
    """A search tool whose sources and queries are planned anew for each call."""

    search: PlannedSearch
    k: int = 5
    """Passages shown in an observation."""
    name: str = PLANNED_RAG

    async def call_tool(self, call: ToolCall, run: Run) -> Observation:
        k, language = call.wanted_hits(self.k), call.question.language
        result = await self.search.find_passages(call.query, language, run, k=k)
        if result.failed:
            return observe_failure(result.failed, language)
        hits = call.choose_hits(result.hits, self.k)
        tell_order(hits, run)
        return Observation(number_passages(hits, call.known, language), hits)


@dataclass(frozen=True)
class FormTool:
    """A tool that looks up the current step by its logical form (KAG-Thinker §3.4).

    The model's input is ignored: the form determines the lookup.
    """

    graph: FormRetriever
    k: int = 5
    form: Retrieval | None = None
    """Logical form of the current step; `None` between steps."""
    name: str = KG_FORM

    async def call_tool(self, call: ToolCall, run: Run) -> Observation:
        if self.form is None:
            return Observation(number_passages((), call.known, call.question.language))
        search, words = BoundFormRetriever(self.graph, self.form), render_form(self.form)
        result = await look_up(search, words, run, k=self.k, sources=(GRAPH,))
        if result.failed:
            return observe_failure(result.failed, call.question.language)
        return Observation(
            number_passages(result.hits, call.known, call.question.language), result.hits
        )


KNOWN: dict[Language, str] = {
    "en": "What earlier steps have found: ",
    "zh": "前面步骤已得到：",
}
"""Prefix of the Thought above the query in a step's memory, which quotes earlier results."""
BRIEFLY: dict[Language, str] = {
    "en": "My conclusion will be the answer alone, in a few words, with its citations.",
    "zh": "我的结论只写答案本身，几个字即可，并附引用编号。",
}
"""The Thought in the memory of a step whose answer other steps are asked with."""
# Characters of an answer that goes into another question as it is.
_FEW: dict[Language, int] = {"en": 40, "zh": 16}


@dataclass(frozen=True)
class MachineDepth:
    """A `kag.depth.Depth` by TC-RAG's machine, which may pop earlier results, never the
    sub-question."""

    machine: TuringMachine
    boundary: Boundary
    short: DepthSolver | None = None
    """Shortens a long conclusion for the later steps that are asked with it; `None` = not
    shortened."""
    k: int = 5
    """Evidence passages of an answer whose conclusion cites none."""

    async def solve(
        self, step: PlanStep, question: str, known: Sequence[str], language: Language, run: Run
    ) -> SubAnswer:
        run.emit(FormBegun(step.n, question))
        # Stage 1 (KAG-Thinker §3.2): the model's own knowledge.
        verdict = await self.boundary.assess(step.n, question, language, run)
        if verdict and verdict.known:
            return SubAnswer(
                step.n, question, verdict.answer, own=True, confidence=verdict.probability
            )
        memory = MemoryStack(Question(f"step-{step.n}", question, language=language))
        if known:
            memory.push(FrameKind.THOUGHT, KNOWN[language] + "; ".join(known))
        if step.awaited and self.short is not None:
            memory.push(FrameKind.THOUGHT, BRIEFLY[language])
        # Stage 2 (TC-RAG, Algorithm 1): the machine on the sub-question.
        solution = await self._machine_for(step).solve_over(memory, run)
        return await self._build_answer(step, solution, memory, known, run)

    def _machine_for(self, step: PlanStep) -> TuringMachine:
        """The machine with the step's logical form set in its form tool."""
        if not isinstance(step.action, Retrieval):
            return self.machine
        tools = [
            replace(tool, form=step.action) if isinstance(tool, FormTool) else tool
            for tool in self.machine.tools
        ]
        return replace(self.machine, tools=tuple(tools))

    async def _build_answer(
        self,
        step: PlanStep,
        solution: Solution,
        memory: MemoryStack,
        known: Sequence[str],
        run: Run,
    ) -> SubAnswer:
        answer, question = solution.answer, memory.question.text
        stands = solution.halt is Halt.CONVERGED
        if not stands:
            run.emit(Noted(f"step {step.n} {solution.why}"))
        if answer.is_silent:
            return SubAnswer(step.n, question, "")
        # The passages that the conclusion cites, each once.
        cited = {each.passage.id: each.hit for each in answer.evidence}
        hits = tuple(cited.values()) or memory.hits[: self.k]
        text = plain_text(answer, memory.question)
        language = memory.question.language
        is_long = step.awaited and len(text) > _FEW[language]
        if self.short is not None and is_long and hits and not run.exhausted_bound:
            text = await self.short.reason_answer(question, hits, known, language, run) or text
        return SubAnswer(
            step.n,
            question,
            text,
            hits,
            confidence=mean_token_probability(self.machine.monitor.metric, memory.state)
            if stands
            else None,
            unsure="" if stands else solution.why,
        )


@dataclass(frozen=True)
class StateSignal:
    """The state value of the model's own answer, over a memory that contains only the question.

    So an own answer is accepted on the same terms as a Conclusion (Alg. 1, line 8).
    """

    monitor: Monitor
    sigma: float

    async def weigh_answer(
        self, question: str, answer: str, tokens: Sequence[TokenScore], language: Language, run: Run
    ) -> SignalValue:
        """Values the boxed answer alone, without the reasoning before it. Raises
        `BudgetExceeded`."""
        memory = MemoryStack(Question("boundary", question, language=language))
        draft = Draft(answer, tuple(tokens), (Message("user", question),))
        value = await self.monitor.state_value(draft, memory, run)
        return SignalValue(self.monitor.metric, value, self.sigma)
