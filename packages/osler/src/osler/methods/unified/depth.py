"""A step of KAG-Thinker's plan, solved by TC-RAG's machine; its state value as a boundary signal.

The boundary first checks whether the model knows the answer. If not, the machine runs on the
sub-question with a memory of its own: its conclusion is the step's answer, and the passages in
that memory are the answer's evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from osler.answer import plain_text
from osler.llm.core.base import Message, TokenScore
from osler.methods.kag.boundary import Boundary, SignalValue
from osler.methods.kag.depth import DepthSolver
from osler.methods.kag.logical_forms import PlanStep, Retrieval, SubAnswer
from osler.methods.tcrag.machine import TuringMachine
from osler.methods.tcrag.monitor import Draft, Monitor, mean_token_probability
from osler.methods.tcrag.stack import FrameKind, MemoryStack
from osler.methods.unified.search import FormTool
from osler.trace import FormBegun, Noted, Run
from osler.types import Halt, Hit, Language, Question, Solution

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
        hits = _cited_hits(solution) or memory.hits[: self.k]
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


def _cited_hits(solution: Solution) -> tuple[Hit, ...]:
    """The passages cited by the conclusion, each once."""
    return tuple({each.passage.id: each.hit for each in solution.answer.evidence}.values())


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
