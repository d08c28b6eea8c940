"""A step of KAG-Thinker's plan, solved by TC-RAG's machine.

The boundary asks first whether the model knows by itself. Where it does not, the machine runs
on the sub-question with a memory of its own: what it concludes is the step's answer, and the
passages that stand in that memory are what the answer rests on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from osler.answer.base import plain_text
from osler.methods.kag.boundary import Boundary
from osler.methods.kag.depth import DepthSolver, SubAnswer
from osler.methods.kag.logical_forms import PlanStep, Retrieval
from osler.methods.tcrag.machine import TuringMachine
from osler.methods.tcrag.monitor import mean_token_probability
from osler.methods.tcrag.stack import FrameKind, MemoryStack
from osler.methods.unified.search import FormTool
from osler.trace import FormBegun, Noted, Run
from osler.types import Grounding, Halt, Hit, Language, Question, Solution

KNOWN: dict[Language, str] = {
    "en": "What earlier steps have found: ",
    "zh": "前面步骤已得到：",
}
"""What stands in a step's memory above the query: the lines before it, as a Thought."""


@dataclass(frozen=True)
class MachineDepth:
    """A `kag.depth.Depth`. It may forget what earlier steps found, never the sub-question."""

    machine: TuringMachine
    boundary: Boundary
    short: DepthSolver | None = None
    """Says the conclusion in a few words, for later steps to be asked with; `None` = nobody."""
    k: int = 5
    """Passages that an answer rests on where the conclusion cites none."""

    async def solve(
        self, step: PlanStep, question: str, known: Sequence[str], language: Language, run: Run
    ) -> SubAnswer:
        run.emit(FormBegun(step.n, question))
        verdict = await self.boundary.assess(step.n, question, language, run)
        if verdict and verdict.known:
            return SubAnswer(
                step.n, question, verdict.answer, own=True, confidence=verdict.probability
            )
        memory = MemoryStack(Question(f"step-{step.n}", question, language=language))
        if known:
            memory.push(FrameKind.THOUGHT, KNOWN[language] + "; ".join(known))
        solution = await self._machine_for(step).solve_over(memory, run)
        return await self._build_answer(step, solution, memory, known, run)

    def _machine_for(self, step: PlanStep) -> TuringMachine:
        """The machine, whose tool for logical forms knows the step's."""
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
        if answer.grounding is Grounding.ABSTAINED:
            return SubAnswer(step.n, question, "")
        hits = _cited_hits(solution) or memory.hits[: self.k]
        text = plain_text(answer, memory.question)
        if self.short is not None and hits and not run.exhausted_bound:
            language = memory.question.language
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
    """The passages that the conclusion cites, each once."""
    return tuple({each.passage.id: each.hit for each in solution.answer.evidence}.values())
