"""KAG-Thinker: decompose in breadth, solve in depth, answer (§3).

Departures from the paper, with their reasons, are rows of PAPERS.md#kag-thinker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import assert_never

from osler.answer import Composer
from osler.methods.kag.computed import QuestionCalculator
from osler.methods.kag.dependencies import Dependencies, fill_references, find_dependencies
from osler.methods.kag.depth import Depth, SubAnswer
from osler.methods.kag.executors import Calculator, Deducer
from osler.methods.kag.logical_forms import Deduce, LogicalPlan, Math, Output, PlanStep, Retrieval
from osler.methods.kag.output import AnswerFinisher, nearest_option
from osler.methods.kag.planner import FormPlanner
from osler.trace import BudgetExceeded, FormSolved, Noted, Run
from osler.trace.ordered import OrderedEvents, gather
from osler.types import Grounding, Halt, Hit, Question, Solution


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
    arithmetic: QuestionCalculator | None = None
    """Answers a question that one verified formula answers, without a plan; the paper has none."""

    async def solve(self, question: Question, run: Run) -> Solution:
        if self.arithmetic is not None:
            computed = await self.arithmetic.solve(question, run)
            if computed is not None:
                return computed
        if self.note:
            run.emit(Noted(self.note))
        try:
            plan = await self.planner.decompose(question, run)  # §3.1.1, breadth
        except BudgetExceeded as spent:
            answer = await self.composer.conclude(question, (), "", run)
            return Solution(answer, Halt.BUDGET, f"spent: {spent}", run.usage)
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
        bound = _bind_aliases(graph, answers)
        said = {n: answer.text for n, answer in answers.items() if answer.text}
        asked = fill_references(step.question, said)
        language = question.language
        match step.action:
            case Retrieval() as form:
                step = replace(step, action=_name_subject(form, bound))
                known = [
                    answers[n].prompt_line for n in sorted(graph.waits[step.n]) if n in answers
                ]
                answer = await self.depth.solve(step, asked, known, language, run)
            case Math(content=content):
                filled = _fill_content(content, bound, said, question)
                text = await self.calculator.solve(step.n, step.action, filled, language, run)
                answer = SubAnswer(step.n, asked, text, _rests_on(graph, answers, step.n))
            case Deduce(content=content):
                filled = _fill_content(content, bound, said, question)
                text = await self.deducer.solve(step.n, step.action, filled, language, run)
                answer = SubAnswer(step.n, asked, text, _rests_on(graph, answers, step.n))
            case Output(variables=variables):
                filled = _fill_content(variables, bound, said, None)
                known_ones = [line for line in filled if line]
                answer = SubAnswer(
                    step.n, asked, "; ".join(known_ones), _rests_on(graph, answers, step.n)
                )
            case _ as never:
                assert_never(never)
        run.emit(
            FormSolved(
                step.n,
                "done" if answer.text else "failed",
                answer.text,
                answer.own,
                answer.confidence,
                tuple(hit.passage.id for hit in answer.hits),
            )
        )
        return answer

    async def _conclude_answer(
        self, question: Question, plan: LogicalPlan, answers: Mapping[int, SubAnswer], run: Run
    ) -> Solution:
        """Answers the question from the sub-questions and their answers (§3.4, Output)."""
        done = [answers[step.n] for step in plan.steps if step.n in answers]
        hits = _collect_evidence(done)
        draft = ""
        if self.composer.uses_draft and not run.exhausted_bound:
            with suppress(BudgetExceeded):  # what was found is answered from, all the same
                draft = await self.finisher.write_draft(question, done, hits, run)
        answer = await self.composer.conclude(question, hits, draft, run)
        answer = nearest_option(answer, question, done)
        unsolved = [str(each.n) for each in done if not each.text]
        own = [str(each.n) for each in done if each.own]
        why = f"{len(done) - len(unsolved)} of {len(plan.steps)} steps answered"
        if own:
            why += f", step {', '.join(own)} out of the model's own knowledge"
        why += "".join(f"; step {each.n} {each.unsure}" for each in done if each.unsure)
        # A budget may refuse something (spent) or simply be used up (exhausted).
        cut = run.spent or (run.exhausted_bound or "" if len(done) < len(plan.steps) else "")
        if cut:
            why += f"; spent: {cut}"
        if answer.grounding is Grounding.ABSTAINED and not cut:
            return Solution(answer, Halt.NO_EVIDENCE, why, run.usage)
        finished = len(done) == len(plan.steps) and not run.exhausted_bound and not run.spent
        finished = finished and not any(each.unsure for each in done)
        return Solution(answer, Halt.CONVERGED if finished else Halt.BUDGET, why, run.usage)


def _bind_aliases(graph: Dependencies, answers: Mapping[int, SubAnswer]) -> dict[str, str]:
    """Every alias with its value: given names and results so far."""
    results = {alias: answers[n].text for alias, n in graph.bound.items() if n in answers}
    return {**graph.given, **results}


def _name_subject(form: Retrieval, bound: Mapping[str, str]) -> Retrieval:
    """The form with its subject's name, where an earlier step has found it."""
    if form.s.name or not bound.get(form.s.alias):
        return form
    return replace(form, s=replace(form.s, name=bound[form.s.alias]))


def _fill_content(
    content: tuple[str, ...],
    bound: Mapping[str, str],
    said: Mapping[int, str],
    question: Question | None,
) -> list[str]:
    """Content with aliases and references replaced; the question itself is last."""
    lines = []
    for item in content:
        if item in bound:
            lines.append(f"{item} = {bound[item] or 'unknown'}" if question else bound[item])
        else:
            filled = fill_references(item, said)
            lines.append("" if question is None and filled == item and item[:1] == "#" else filled)
    if question is not None:
        lines.append(question.text)
    return lines


def _rests_on(graph: Dependencies, answers: Mapping[int, SubAnswer], n: int) -> tuple[Hit, ...]:
    """The evidence of a computed step: that of the steps it was computed from."""
    return _collect_evidence([answers[m] for m in sorted(graph.waits[n]) if m in answers])


def _collect_evidence(answers: list[SubAnswer]) -> tuple[Hit, ...]:
    """The passages behind the answers, each once, in step order."""
    seen: dict[str, Hit] = {}
    for answer in answers:
        for hit in answer.hits:
            seen.setdefault(hit.passage.id, hit)
    return tuple(seen.values())
