"""A teacher solves a question as KAG-Thinker does, and the run becomes a trajectory (App. 9).

Labels of the knowledge boundary for medical data are of another kind (§5.1): sub-answers are long
there, and the least probable token of a long answer tells little. So the student answers, and
another model is called twice: is it correct, is it complete?
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from osler.answer.written import WrittenComposer
from osler.errors import BadConfig, MalformedOutput
from osler.llm.core.ask import Speaker
from osler.llm.core.base import Completion
from osler.llm.reading.verdicts import read_verdict, verdict_grammar
from osler.methods.kag.boundary import TAU, Boundary, GenerateThenAssess, NoBoundary
from osler.methods.kag.depth import DepthSolver, FormRetriever
from osler.methods.kag.executors import Calculator, Deducer
from osler.methods.kag.logical_forms import LogicalPlan
from osler.methods.kag.output import AnswerFinisher
from osler.methods.kag.planner import Decomposer
from osler.methods.kag.solver import Thinker
from osler.prompts import render_prompt
from osler.trace import BoundaryChecked, Budget, Run
from osler.types import Language, Question, Retriever
from osler_lab.train.thinker.dialogue import Stage, find_fault, find_plan_fault
from osler_lab.train.thinker.trajectory import (
    RecordedFocuser,
    Script,
    SearchTurn,
    SolvedStep,
    Trajectory,
    record_speaker,
    trajectory_of,
)


@dataclass(frozen=True)
class ConfirmedBoundary:
    """A sub-problem is known where the student's answer is confirmed twice."""

    student: GenerateThenAssess
    confirmer: Speaker

    async def assess(
        self, n: int, question: str, language: Language, run: Run
    ) -> BoundaryChecked | None:
        """Assesses like `Boundary.assess`; the second call is made only if the first confirms."""
        answer, confidence = await self.student.attempt_answer(question, language, run)
        surely: bool | None = None
        if answer:
            # Without likelihood: the least probable token of a long answer tells nothing (§5.1).
            asked = GenerateThenAssess(self.confirmer, likelihood=False)
            surely = await asked.stands_by(question, answer, language, run)
            surely = surely and await self._is_complete(question, answer, language, run)
        verdict = BoundaryChecked(
            n,
            question,
            answer,
            known=bool(surely),
            self_check=surely,
            probability=confidence.value if confidence else None,
            tau=self.student.tau,
            exact=confidence.exact if confidence else True,
        )
        run.emit(verdict)
        return verdict

    async def _is_complete(self, question: str, answer: str, language: Language, run: Run) -> bool:
        prompt = render_prompt("train/complete", language, question=question, answer=answer)
        try:
            return await self.confirmer.ask(
                prompt,
                lambda reply: read_verdict(reply.text),
                run,
                grammar=verdict_grammar(boxed=True, reason=self.confirmer.reasoning),
            )
        except MalformedOutput:  # who cannot say that it is complete does not confirm it
            return False


Knows = Literal["both", "twice", "none"]
"""The boundary of §3.2; of §5.1, confirmed twice; everything is looked up."""
MOST_CALLS = 200
"""Model calls for one question."""

_TAG = re.compile(r"</?(?:think|answer|search|reason|references?)>", re.IGNORECASE)


@dataclass(frozen=True)
class Teacher:
    """Models in their roles: plans, searches and answers are the teacher's, attempts the student's.

    With a student of its own the boundary is that of the model that is to be trained (App. 9).
    """

    planner: Speaker
    solver: Speaker
    """Focuses, searches, reasons, and restructures its reasons."""
    student: Speaker
    """Its knowledge boundary is determined."""
    retriever: Retriever | None = None
    """`None` = only plans are taught."""
    graph: FormRetriever | None = None
    sources: tuple[str, ...] = ()
    knows: Knows = "both"
    tau: float = TAU
    k: int = 3
    turns: int = 4
    """Searches for one sub-problem, at most. A longer way is no example to follow."""
    restructure: bool = True
    """Whether reasons are restructured by the model (§3.3), a call for each search."""
    most_calls: int = MOST_CALLS

    @property
    def name(self) -> str:
        """Identity of the models whose words are in the data."""
        return "+".join(dict.fromkeys(s.model.name for s in (self.planner, self.solver)))

    async def teach_question(
        self, question: Question, stage: Stage, seed: int
    ) -> tuple[Trajectory, Run]:
        """The trajectory, and the run with what it cost.

        Raises `MalformedOutput` where not even a plan was told, `BadConfig` where there is
        nothing to search, and what the models raise.
        """
        script = Script()
        # Under a budget the steps follow each other, so that lines belong to one step.
        run = Run(
            id=f"{stage}.{question.id}",
            seed=seed,
            budget=Budget(calls=self.most_calls),
            sink=script.note_event,
        )
        if stage == "logical-form":
            await self._make_planner(script).decompose(question, run)
            return trajectory_of(script), run
        try:
            await self._make_thinker(script, stage).solve(question, run)
        except _FaultyPlan:
            return trajectory_of(script), run
        trajectory = trajectory_of(script)
        # What will be dropped is not restructured: it costs a call for each search.
        if self.restructure and not find_fault(trajectory, stage):
            steps = [
                await self._restructure_step(step, question.language, run)
                for step in trajectory.steps
            ]
            trajectory = replace(trajectory, steps=tuple(steps))
        return trajectory, run

    def _make_planner(self, script: Script) -> Decomposer:
        return Decomposer(record_speaker(self.planner, script))

    def _make_thinker(self, script: Script, stage: Stage) -> Thinker:
        if self.retriever is None:
            raise BadConfig(f"nothing can be searched for the stage {stage}", fix="add texts")
        solver = record_speaker(self.solver, script)
        depth = DepthSolver(
            solver,
            self.retriever,
            # A deep-search sample must search, so nothing counts as known there.
            NoBoundary() if stage == "deep-search" else self._make_boundary(script),
            RecordedFocuser(solver, script=script),
            self.graph,
            sources=self.sources,
            k=self.k,
            turns=self.turns,
        )
        # Programs only, as the paper's <Python> turns are.
        calculator = Calculator(solver, {})
        planner = _CheckedPlanner(self._make_planner(script), script, stage)
        return Thinker(
            planner, depth, calculator, Deducer(solver), AnswerFinisher(solver), WrittenComposer()
        )

    def _make_boundary(self, script: Script) -> Boundary:
        if self.knows == "none":
            return NoBoundary()
        # The sample's analysis of an answer is the self-check's, whatever the likelihood says.
        student = GenerateThenAssess(
            record_speaker(self.student, script), self.tau, always_check=True
        )
        if self.knows == "both":
            return student
        return ConfirmedBoundary(student, record_speaker(self.solver, script))

    async def _restructure_step(self, step: SolvedStep, language: Language, run: Run) -> SolvedStep:
        """Rewrites each reason as a thought of its turn (§3.3), or keeps it where that fails."""
        turns: list[SearchTurn] = []
        for turn, following in zip(step.turns, _next_actions(step), strict=True):
            prompt = render_prompt(
                "train/restructure",
                language,
                question=step.words.partition("\n")[0].partition(": ")[2],
                enough=turn.enough,
                reason=turn.reason,
                following=following,
            )
            try:
                thought = await self.solver.ask(prompt, _thought_of, run)
            except MalformedOutput:  # the reason itself is a thought, too
                thought = ""
            turns.append(replace(turn, thought=thought))
        return replace(step, turns=tuple(turns))


class _FaultyPlan(Exception):
    """The plan can be no sample, so that solving it would be waste."""


@dataclass(frozen=True)
class _CheckedPlanner:
    """Stops before anything is solved by a plan that will be dropped."""

    planner: Decomposer
    script: Script
    stage: Stage

    async def decompose(self, question: Question, run: Run) -> LogicalPlan:
        plan = await self.planner.decompose(question, run)
        if find_plan_fault(trajectory_of(self.script), self.stage):
            raise _FaultyPlan
        return plan


def _next_actions(step: SolvedStep) -> Sequence[str]:
    """Actions that follow each turn: the next search, in the end the answer."""
    searches = [turn.search.partition("\n")[0].partition(": ")[2] for turn in step.turns[1:]]
    return [*searches, step.answer] if step.turns else []


def _thought_of(reply: Completion) -> str:
    text = " ".join(reply.text.split())
    if not text or _TAG.search(text):
        raise MalformedOutput(reply.text, expected="a thought without tags")
    return text
