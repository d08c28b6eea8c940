"""KAG-Thinker's protocol as its models are trained: one growing dialogue (§4.3, Fig. 4; App. 12).

A trained model plans, answers or searches, reads and concludes in one chat, whose turns are those
of its training (`transcript`). Nothing is repaired and nothing is held to a grammar: that would put
turns into the chat that no training sample has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from osler.answer import Composer, Decision, who_decided
from osler.answer.silence import read_draft
from osler.errors import BadCalculation, MalformedOutput
from osler.llm.core.ask import complete
from osler.llm.core.base import Completion, LanguageModel, Message, Sampling
from osler.llm.core.spans import answer_span, tagged_span
from osler.llm.reading.refusals import is_refusal
from osler.methods.kag.boxed import answer_or_text, reply_answer
from osler.methods.kag.dependencies import Dependencies, find_dependencies
from osler.methods.kag.depth import SubAnswer
from osler.methods.kag.executors import (
    calculation_prompt,
    deduction_prompt,
    extract_program,
)
from osler.methods.kag.focus import Focuser
from osler.methods.kag.logical_forms import (
    Deduce,
    LogicalPlan,
    Math,
    Output,
    PlanStep,
    Retrieval,
)
from osler.methods.kag.output import nearest_option
from osler.methods.kag.parse import read_plan_tolerantly, read_search
from osler.methods.kag.planner import plan_event
from osler.methods.kag.pool import merge_hits
from osler.methods.kag.sandbox import run_calculation
from osler.methods.kag.transcript import (
    DialogueTurns,
    assistant_turn,
    references_turn,
    result_turn,
    system_turn,
)
from osler.methods.kag.variables import Variables
from osler.prompts import RenderedPrompt
from osler.retrieve import look_up
from osler.trace import BudgetExceeded, Calculated, FormSolved, Noted, Run
from osler.types import Halt, Hit, Language, Question, Retriever, Solution


@dataclass(frozen=True)
class DialogueThinker:
    """A trained KAG-Thinker behind a server, spoken to as it was trained."""

    model: LanguageModel
    turns: DialogueTurns
    retriever: Retriever
    composer: Composer
    focuser: Focuser
    """Shortens references; its verdict is the model's own, in the dialogue."""
    sampling: Sampling = field(default_factory=Sampling)
    sources: tuple[str, ...] = ()
    k: int = 3
    searches: int = 10
    """Turns for one sub-question, at most (the released code's value)."""
    note: str = ""

    async def solve(self, question: Question, run: Run) -> Solution:
        if self.note:
            run.emit(Noted(self.note))
        chat = [system_turn(question.language)]
        answers: dict[int, SubAnswer] = {}
        plan = LogicalPlan.single_retrieval(question.text)
        draft, cut = "", ""
        try:
            plan = await self._plan(question, chat, run)
            await self._solve_steps(question, plan, answers, chat, run)
            draft = await self._conclude_chat(question, plan, answers, chat, run)
        except BudgetExceeded as spent:
            cut = str(spent)
        return await self._compose(question, plan, list(answers.values()), draft, cut, run)

    async def _plan(self, question: Question, chat: list[Message], run: Run) -> LogicalPlan:
        reply = await self._ask(chat, self.turns.plan_turn(question), run)
        try:
            reading = read_plan_tolerantly(reply.text)
        except MalformedOutput as error:
            plan = LogicalPlan.single_retrieval(question.text)
            run.emit(plan_event(plan, "fallback", (f"no plan could be read: {error.message}",)))
            return plan
        run.emit(plan_event(reading.plan, "planner", reading.mended))
        return reading.plan

    async def _solve_steps(
        self,
        question: Question,
        plan: LogicalPlan,
        answers: dict[int, SubAnswer],
        chat: list[Message],
        run: Run,
    ) -> None:
        """Solves the steps one after the other, for each builds on the chat before it."""
        graph = find_dependencies(plan)
        steps = [plan.step_numbered(n) for n in graph.solving_order()]
        for step in steps:
            if isinstance(step.action, Output) or self._is_left_to_the_end(step, steps):
                continue
            answer = await self._solve_step(question, step, graph, answers, chat, run)
            answers[step.n] = answer
            ids = tuple(hit.passage.id for hit in answer.hits)
            run.emit(
                FormSolved(
                    step.n,
                    "done" if answer.text else "failed",
                    answer.text,
                    answer.own,
                    passages=ids,
                )
            )

    def _is_left_to_the_end(self, step: PlanStep, steps: Sequence[PlanStep]) -> bool:
        """The checkpoint answers the last of several steps in the final turn."""
        return self.turns.solves_every_step and len(steps) > 1 and step is steps[-1]

    async def _solve_step(
        self,
        question: Question,
        step: PlanStep,
        graph: Dependencies,
        answers: dict[int, SubAnswer],
        chat: list[Message],
        run: Run,
    ) -> SubAnswer:
        known = Variables(graph, answers, step.n)
        words = known.fill_text(step.question)
        if known.missing and isinstance(step.action, Retrieval):
            run.emit(Noted(f"step {step.n} waits for {', '.join(known.missing)}: no answer"))
            return SubAnswer(step.n, words, "", lacking=known.missing)
        rests = merge_hits(*(answers[m].hits for m in graph.waits[step.n] if m in answers))
        if not self.turns.solves_every_step:
            match step.action:
                case Math() as form:
                    return await self._calculate(question, step, form, known, rests, chat, run)
                case Deduce() as form:
                    return await self._deduce(question, step, form, known, rests, chat, run)
                case _:
                    pass
        return await self._search_and_answer(step, words, answers, question.language, chat, run)

    async def _search_and_answer(
        self,
        step: PlanStep,
        words: str,
        answers: dict[int, SubAnswer],
        language: Language,
        chat: list[Message],
        run: Run,
    ) -> SubAnswer:
        said = {n: answer.text for n, answer in answers.items() if answer.text}
        reply = await self._ask(chat, self.turns.step_turn(step, said, language), run)
        hits: tuple[Hit, ...] = ()
        for _ in range(self.searches):
            query = _search_words(reply)
            if query is None:
                text = _answer_of(reply)
                if text or hits or not is_refusal(reply.text):
                    return SubAnswer(step.n, words, text, hits, own=bool(text) and not hits)
                query = words  # Table 2's refusal: "I need to retrieve external knowledge"
            found = await look_up(self.retriever, query, run, k=self.k, sources=self.sources)
            hits = merge_hits(hits, found.hits)
            listed = self.focuser.list_references(words, found.hits)
            turn = RenderedPrompt(references_turn(listed), "kag/references")
            reply = await self._ask(chat, turn, run)
        return SubAnswer(step.n, words, "" if _search_words(reply) else _answer_of(reply), hits)

    async def _calculate(
        self,
        question: Question,
        step: PlanStep,
        form: Math,
        known: Variables,
        rests: tuple[Hit, ...],
        chat: list[Message],
        run: Run,
    ) -> SubAnswer:
        """A program in one turn, its value in the next, then the answer (App. 12)."""
        words = known.fill_text(step.question)
        form = replace(form, target=known.fill_text(form.target))
        content = [*map(known.fill_item, form.content), question.text]
        prompt = calculation_prompt(form, content, question.language)
        reply = await self._ask(chat, prompt, run)
        try:
            code = extract_program(reply)
            value = str((await run_calculation(code)).value)
        except MalformedOutput:  # answered without a program
            return SubAnswer(step.n, words, _answer_of(reply), rests)
        except BadCalculation as error:
            run.emit(Calculated(step.n, "python", reply.text, "", error.message))
            return SubAnswer(step.n, words, "")
        run.emit(Calculated(step.n, "python", code, value))
        reply = await self._ask(chat, RenderedPrompt(result_turn(value), "kag/result"), run)
        return SubAnswer(step.n, words, _answer_of(reply) or value, rests)

    async def _deduce(
        self,
        question: Question,
        step: PlanStep,
        form: Deduce,
        known: Variables,
        rests: tuple[Hit, ...],
        chat: list[Message],
        run: Run,
    ) -> SubAnswer:
        form = replace(form, target=known.fill_text(form.target))
        content = [*map(known.fill_item, form.content), question.text]
        prompt = deduction_prompt(form, content, question.language)
        reply = await self._ask(chat, prompt, run)
        return SubAnswer(step.n, known.fill_text(step.question), _answer_of(reply), rests)

    async def _conclude_chat(
        self,
        question: Question,
        plan: LogicalPlan,
        answers: dict[int, SubAnswer],
        chat: list[Message],
        run: Run,
    ) -> str:
        done = list(answers.values())
        hits = merge_hits(*(answer.hits for answer in done))
        turn = self.turns.final_turn(question, plan, done, hits)
        return (await self._ask(chat, turn, run)).text

    async def _compose(
        self,
        question: Question,
        plan: LogicalPlan,
        done: list[SubAnswer],
        draft: str,
        cut: str,
        run: Run,
    ) -> Solution:
        hits = merge_hits(*(answer.hits for answer in done))
        boxed = _final_answer(draft, run)
        worded = f"<answer>{boxed}</answer>" if question.options else boxed
        decision = Decision(words=boxed)
        answer = await self.composer.conclude(question, hits, worded, run, decision=decision)
        decided = who_decided(self.composer, decision)
        answer = nearest_option(answer, question, done)
        solved = sum(bool(each.text) for each in done)
        why = f"{solved} of {len(plan.steps)} steps answered in one dialogue"
        if cut:
            return Solution(answer, Halt.BUDGET, f"{why}; spent: {cut}", run.usage, decided)
        if answer.is_silent:
            return Solution(answer, Halt.NO_EVIDENCE, why, run.usage, decided)
        # The draft answers the question, from steps that are answered; without one, nothing does.
        finished = solved or not done if boxed else plan.steps and solved == len(plan.steps)
        halt = Halt.CONVERGED if finished else Halt.BUDGET
        return Solution(answer, halt, why, run.usage, decided)

    async def _ask(self, chat: list[Message], turn: RenderedPrompt, run: Run) -> Completion:
        """The next turn of the chat, which grows by both sides of it."""
        chat.append(Message("user", turn.text))
        reply = await complete(
            self.model, tuple(chat), self.sampling, run, role="reader", prompt=turn.identity
        )
        chat.append(assistant_turn(reply))
        return reply


def _search_words(reply: Completion) -> str | None:
    """The words of a reply's search; `None` where it asks for none, or answers."""
    text = reply.text
    if answer_span(text) or tagged_span(text, "answer") or "<search" not in text.casefold():
        return None
    try:
        return read_search(text).question
    except MalformedOutput:
        # A search in words alone: the checkpoint's action is not looked up here.
        inside = text.partition("<search>")[2].partition("</search>")[0]
        return " ".join(inside.split()) or None


def _final_answer(draft: str, run: Run) -> str:
    """The answer of the last turn; of one without a box its words, unless it declines."""
    try:
        return reply_answer(Completion(draft)) if draft else ""
    except MalformedOutput:
        return " ".join(read_draft(draft, run).split())


def _answer_of(reply: Completion) -> str:
    """The reply's answer; a reply with neither tag is the answer itself."""
    try:
        return answer_or_text(reply)
    except MalformedOutput:
        return ""
