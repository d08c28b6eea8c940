"""KAG-Thinker: decompose in breadth, solve in depth, answer (§3).

Departures from the paper, with their reasons, stand in docs/papers/kag-thinker.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol, Self, assert_never

from osler.answer import UNDECIDED, Composer, Decision, who_decided
from osler.answer.written import WrittenComposer
from osler.llm.core.ask import Speaker
from osler.llm.core.base import LanguageModel, Sampling
from osler.methods.kag.boundary import GenerateThenAssess
from osler.methods.kag.depth import Depth, DepthSolver, RelationSelector
from osler.methods.kag.executors import Calculator, Deducer
from osler.methods.kag.focus import Focuser
from osler.methods.kag.logical_forms import (
    Deduce,
    Form,
    LogicalPlan,
    Math,
    Output,
    PlanStep,
    Retrieval,
    SubAnswer,
)
from osler.methods.kag.output import AnswerFinisher, QuestionSearch, merge_hits, nearest_option
from osler.methods.kag.planner import Decomposer, FormPlanner, answer_event
from osler.methods.kag.variables import Dependencies, Variables, find_dependencies
from osler.trace import BudgetExceeded, Noted, Run
from osler.trace.ordered import OrderedEvents, gather
from osler.types import Halt, Question, Retriever, Solution

DECODING = Sampling(temperature=0.0, max_tokens=8192, seed=42)
"""The released code's; its top_p of 0.95 changes nothing at temperature 0."""


class QuestionRoute(Protocol):
    """A way to answer that needs no plan by a model; the paper has none."""

    async def solve(self, question: Question, run: Run) -> Solution | None:
        """`None` where the question is not one of its kind."""


@dataclass(frozen=True)
class Thinker:
    """KAG-Thinker."""

    planner: FormPlanner
    depth: Depth
    calculator: Calculator
    deducer: Deducer
    finisher: AnswerFinisher
    composer: Composer
    note: str = ""
    """A note emitted before the plan, for readers of the trace."""
    pool: QuestionSearch | None = None
    """Adds what the question itself finds to what the steps have found; the paper has none."""
    routes: tuple[QuestionRoute, ...] = ()
    """Asked in order before any plan is made: verified formulas, the concept graph."""

    last_deduce: bool = True
    """Whether a Deduce that ends the plan is asked for by itself; false: the answer, which is asked
    with the same facts, concludes in its place."""

    @classmethod
    def from_model(cls, model: LanguageModel, retriever: Retriever) -> Self:
        """Makes the solver of the paper, with one model in every role and one search.

        The model plans (§3.1.1); a lookup is answered out of its own knowledge within its boundary
        (§3.2), else from three passages a search (§4.1); Math runs its programs (§3.4). The model
        words the answer, and its sentences are held against the passages. It must tell the
        log-probabilities of its replies: else nothing lies within its boundary. Other values:
        `dataclasses.replace`.

            >>> import asyncio, osler
            >>> from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever
            >>> text = "Warfarin is stopped five days before surgery."
            >>> found = osler.Passage("notes:warfarin#0", text, "notes", "Warfarin")
            >>> plan = '''Step1: How long before surgery is warfarin stopped?
            ... Action1: Retrieval(s=s1:drug['warfarin'], p=p1:stopped, o=o1)'''
            >>> unknown = "I can't answer this question, I need to retrieve external knowledge."
            >>> enough = "<answer>Yes</answer><reason>Reference 0 says it.</reason>"
            >>> boxed = r"<answer>\\boxed{five days}</answer>"
            >>> model = ScriptedModel([plan, unknown, enough, boxed, f"{text} [1]"])
            >>> retriever = ScriptedRetriever({"warfarin": [found]})
            >>> thinker = osler.Thinker.from_model(model, retriever)
            >>> question = osler.parse_question("When is warfarin stopped before surgery?")
            >>> solution = asyncio.run(thinker.solve(question, osler.Run()))
            >>> solution.answer.text, solution.why
            ('Warfarin is stopped five days before surgery. [1]', '1 of 1 steps answered')
        """
        asks = Speaker(model, "reader", DECODING)
        boundary, focuser = GenerateThenAssess(asks), Focuser(asks)
        return cls(
            Decomposer(replace(asks, role="planner"), example=True),
            DepthSolver(asks, retriever, boundary, focuser, selector=RelationSelector(asks)),
            Calculator(asks, {}),
            Deducer(asks),
            AnswerFinisher(asks),
            WrittenComposer(),
        )

    async def solve(self, question: Question, run: Run) -> Solution:
        try:
            for route in self.routes:
                if (routed := await route.solve(question, run)) is not None:
                    return routed
            if self.note:
                run.emit(Noted(self.note))
            plan = await self.planner.decompose(question, run)  # §3.1.1, breadth
        except BudgetExceeded as spent:
            answer = await self.composer.conclude(question, (), "", run)
            why, decided = f"spent: {spent}", who_decided(self.composer, UNDECIDED)
            return Solution(answer, Halt.BUDGET, why, run.usage, decided)
        if not self.last_deduce and len(plan.steps) > 1:
            *before, last = plan.steps
            if isinstance(last.action, Deduce):
                run.emit(Noted(f"step {last.n} is left to the answer"))
                plan = LogicalPlan(tuple(before))
        graph = find_dependencies(plan)
        answers = await self._solve_steps(question, plan, graph, run)  # §3.1.2, depth
        return await self._conclude_answer(question, plan, answers, run)  # §3.4, Output

    async def _solve_steps(
        self, question: Question, plan: LogicalPlan, graph: Dependencies, run: Run
    ) -> dict[int, SubAnswer]:
        """Every step's answer; independent steps run concurrently (§3.4).

        Under a budget they run one by one, so that the cut does not depend on which reply
        arrives first.
        """
        answers: dict[int, SubAnswer] = {}
        # Events are emitted in this order, whichever step finishes first.
        order = graph.solving_order()
        lanes = OrderedEvents(run, order)
        done = {n: asyncio.Event() for n in order}

        async def solve_step(n: int) -> None:
            # The graph has no cycles, so that waiting always ends.
            for needed in sorted(graph.waits[n]):
                await done[needed].wait()
            lane = lanes.begin_step(n)
            try:
                answers[n] = await self._solve_step(
                    question, plan.step_numbered(n), graph, answers, lane
                )
            finally:
                lanes.end_step(n, lane)
            done[n].set()

        # Sequential under a budget: what is cut must not depend on timing.
        if run.budget.is_bounded:
            for n in order:
                if reached := run.exhausted_bound:
                    run.emit(Noted(f"step {n} was not begun: {reached}"))
                    break
                try:
                    await solve_step(n)
                except BudgetExceeded as spent:
                    run.emit(Noted(f"step {n} was cut short: {spent}"))
                    break
            return answers
        await gather([solve_step(n) for n in order])
        return answers

    async def _solve_step(
        self,
        question: Question,
        step: PlanStep,
        graph: Dependencies,
        answers: Mapping[int, SubAnswer],
        run: Run,
    ) -> SubAnswer:
        known = Variables(graph, answers, step.n)
        asked = known.fill_text(step.question)
        if known.missing and _needs_all(step.action, known):
            said = ", ".join(known.missing)
            run.emit(Noted(f"step {step.n} waits for {said}, which has no answer"))
            answer = SubAnswer(step.n, asked, "", lacking=known.missing)
        else:
            answer = await self._act(question, step, asked, known, run)
        run.emit(answer_event(answer))
        return answer

    async def _act(
        self, question: Question, step: PlanStep, asked: str, known: Variables, run: Run
    ) -> SubAnswer:
        """Carries out a step's action with its references filled in."""
        n, language = step.n, question.language
        # The evidence of a computed step is that of the steps it was computed from.
        rests = merge_hits(*(each.hits for each in known.awaited))
        match step.action:
            case Retrieval() as form:
                first, *others = known.fill_form(form)
                lines = [each.prompt_line for each in known.awaited]
                awaited = any(n in needed for needed in known.graph.waits.values())
                step = replace(step, action=first, others=tuple(others), awaited=awaited)
                return await self.depth.solve(step, asked, lines, language, run)
            case Math() | Deduce() as form:
                if isinstance(form, Math) and (combined := known.compute_set(form)) is not None:
                    return SubAnswer(n, asked, combined, rests)
                form, content = known.fill_computed(form, question)
                if isinstance(form, Math):
                    text = await self.calculator.solve(n, form, content, language, run)
                else:
                    text = await self.deducer.solve(n, form, content, language, run)
                return SubAnswer(n, asked, text, rests)
            case Output(variables=variables):
                values = filter(None, map(known.value_of, variables))
                return SubAnswer(n, asked, "; ".join(values), rests)
            case _ as never:
                assert_never(never)

    async def _conclude_answer(
        self, question: Question, plan: LogicalPlan, answers: Mapping[int, SubAnswer], run: Run
    ) -> Solution:
        """Answers the question from the sub-questions and their answers (§3.4, Output)."""
        done = [answers[step.n] for step in plan.steps if step.n in answers]
        hits = merge_hits(*(answer.hits for answer in done))
        if self.pool is not None and not run.exhausted_bound:
            with suppress(BudgetExceeded):
                hits = merge_hits(hits, await self.pool.find_passages(question, run))
        draft = ""
        if self.composer.uses_draft and not run.exhausted_bound:
            with suppress(BudgetExceeded):  # what was found is answered from, all the same
                draft = await self.finisher.write_draft(question, done, hits, run)
        decision = Decision(words=_found_words(done))
        answer = await self.composer.conclude(question, hits, draft, run, decision=decision)
        decided = who_decided(self.composer, decision)
        answer = nearest_option(answer, question, done)
        unsolved = [str(each.n) for each in done if not each.text]
        own = [str(each.n) for each in done if each.own]
        why = f"{len(done) - len(unsolved)} of {len(plan.steps)} steps answered"
        if own:
            why += f", step {', '.join(own)} out of the model's own knowledge"
        why += "".join(f"; step {each.n} {each.unsure}" for each in done if each.unsure)
        why += "".join(
            f"; step {each.n} lacks {', '.join(each.lacking)}" for each in done if each.lacking
        )
        # A budget may refuse something (spent) or simply be used up (exhausted).
        cut = run.spent or (run.exhausted_bound or "" if len(done) < len(plan.steps) else "")
        if cut:
            why += f"; spent: {cut}"
        if answer.is_silent and not cut:
            return Solution(answer, Halt.NO_EVIDENCE, why, run.usage, decided)
        finished = len(done) == len(plan.steps) and not run.exhausted_bound and not run.spent
        finished = finished and not any(each.unsure for each in done)
        finished = finished and _is_concluded(plan, answers)
        halt = Halt.CONVERGED if finished else Halt.BUDGET
        return Solution(answer, halt, why, run.usage, decided)


def _is_concluded(plan: LogicalPlan, answers: Mapping[int, SubAnswer]) -> bool:
    """Whether every step has an answer for which no other step waits: those decide the question."""
    waits = find_dependencies(plan).waits
    waited_for = {needed for each in waits.values() for needed in each}
    last = [step.n for step in plan.steps if step.n not in waited_for]
    return all(n in answers and answers[n].text for n in last)


def _found_words(done: Sequence[SubAnswer]) -> str:
    """What reasoning over references found, for composers that quote; own knowledge is no find."""
    return "\n".join(
        f"{each.question} {each.text}" for each in done if each.text and not each.own and each.hits
    )


def _needs_all(form: Form, known: Variables) -> bool:
    """Whether a step makes no sense without all that it waits for: a search or a calculation; a
    conclusion needs one of them, an output none."""
    match form:
        case Retrieval() | Math():
            return True
        case Deduce():
            return len(known.missing) == len(known.graph.waits[known.n])
        case Output():
            return False
