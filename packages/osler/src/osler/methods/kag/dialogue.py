r"""KAG-Thinker's protocol as its models are trained: one growing dialogue (§4.3, Fig. 4; App. 12).

    system     a thought process is to be given
    user       the decomposition prompt (Table 1)
    assistant  <think>…</think>, <answer>Step1: … Action1: …</answer>
    user       can you answer Step1 by yourself? (Table 2)
    assistant  <think>…</think>, then <answer>\boxed{…}</answer>, or <search>Step1: …</search>
    user       <references>…</references>
    …
    user       the question, the sub-questions and their answers
    assistant  <think>…</think>, <answer>\boxed{…}</answer>

The turns are those of training and of inference alike: `ReleasedTurns` of the authors' checkpoint,
`TrainedTurns` of Osler's training data. Nothing is repaired and nothing is held to a grammar: that
would put turns into the chat that no training sample has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from osler.answer import Composer, Decision, who_decided
from osler.answer.abstention import read_draft
from osler.errors import BadCalculation, MalformedOutput
from osler.llm.core.ask import complete
from osler.llm.core.base import Completion, LanguageModel, Message, Sampling
from osler.llm.core.spans import answer_span, tagged_span
from osler.llm.reading.answers import answer_words
from osler.llm.reading.refusals import is_refusal
from osler.methods.kag.boundary import attempt_prompt
from osler.methods.kag.executors import (
    calculation_prompt,
    deduction_prompt,
    extract_program,
    run_calculation,
)
from osler.methods.kag.focus import Focuser
from osler.methods.kag.logical_forms import (
    Deduce,
    LogicalPlan,
    Math,
    Output,
    PlanStep,
    Retrieval,
    SubAnswer,
    render_step,
)
from osler.methods.kag.output import answer_prompt, merge_hits, nearest_option
from osler.methods.kag.parse import answer_or_text, read_plan_tolerantly, read_search, reply_answer
from osler.methods.kag.planner import answer_event, plan_event, plan_prompt
from osler.methods.kag.variables import Dependencies, Variables, fill_references, find_dependencies
from osler.prompts import RenderedPrompt, render_prompt
from osler.retrieve import look_up
from osler.trace import BudgetExceeded, Calculated, Noted, Run
from osler.types import Halt, Hit, Language, Question, Retriever, Solution


def system_turn(language: Language) -> Message:
    return Message("system", render_prompt("train/system", language).text)


def references_turn(references: Sequence[str]) -> str:
    """The user's turn with what a search found; the blank line before the end is the paper's."""
    listed = "".join(f"{text}\n\n" for text in references)
    return f"<references>{listed}</references>"


def result_turn(value: str) -> str:
    """The user's turn with the value of a program."""
    return f"<result>{value}</result>"


def step_words(step: PlanStep, answers: Mapping[int, str]) -> str:
    """A step in wire form, with the answers that its words refer to filled in."""
    question, _, action = render_step(step).partition("\n")
    return f"{fill_references(question, answers)}\n{action}"


def assistant_turn(reply: Completion) -> Message:
    """The model's turn as it wrote it, its thought included: later turns build on both."""
    thought = f"<think>{reply.thinking}</think>\n\n" if reply.thinking else ""
    return Message("assistant", f"{thought}{reply.text.strip()}")


class ReleasedTurns:
    """The turns of the authors' checkpoint: its executors are the model itself."""

    solves_every_step = True
    """Whether Math and Deduce are sub-questions like any other (§4.3, plain text)."""

    def plan_turn(self, question: Question) -> RenderedPrompt:
        text = question.with_options
        return render_prompt("kag/released_plan", question.language, question=text)

    def step_turn(
        self, step: PlanStep, answers: Mapping[int, str], language: Language
    ) -> RenderedPrompt:
        # The checkpoint's actions have their references filled in too.
        words = fill_references(render_step(step), answers)
        return render_prompt("kag/released_step", language, step=words)

    def final_turn(
        self,
        question: Question,
        plan: LogicalPlan,
        answers: Sequence[SubAnswer],
        hits: Sequence[Hit],
    ) -> RenderedPrompt:
        said = {each.n: each.text for each in answers if each.text}
        last = fill_references(render_step(plan.steps[-1]), said)
        return render_prompt(
            "kag/released_answer",
            question.language,
            question=question.with_options,
            steps=[f"{each.question}\n#{each.n}: {each.text or 'unknown'}" for each in answers],
            last=last,
        )


class TrainedTurns:
    """The turns of Osler's own training data: the prompts of the solver's calls."""

    solves_every_step = False

    def plan_turn(self, question: Question) -> RenderedPrompt:
        return plan_prompt(question)

    def step_turn(
        self, step: PlanStep, answers: Mapping[int, str], language: Language
    ) -> RenderedPrompt:
        return attempt_prompt(f"\n{step_words(step, answers)}", language)

    def final_turn(
        self,
        question: Question,
        plan: LogicalPlan,
        answers: Sequence[SubAnswer],
        hits: Sequence[Hit],
    ) -> RenderedPrompt:
        return answer_prompt(question, answers, hits)


DialogueTurns = ReleasedTurns | TrainedTurns
"""The user's turns of one layout."""


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
        chat = _Chat(self, question, run)
        draft, cut = "", ""
        try:
            await chat.plan_steps()
            await chat.solve_steps()
            draft = await chat.conclude()
        except BudgetExceeded as spent:
            cut = str(spent)
        return await self._compose(chat, draft, cut)

    async def _compose(self, chat: _Chat, draft: str, cut: str) -> Solution:
        question, plan, run, done = chat.question, chat.plan, chat.run, chat.done
        boxed = _final_answer(draft, run)
        worded = f"<answer>{boxed}</answer>" if question.options else boxed
        decision = Decision(words=boxed)
        answer = await self.composer.conclude(question, chat.hits, worded, run, decision=decision)
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


class _Chat:
    """One question's chat, which grows by both sides of each turn, with its plan and answers."""

    def __init__(self, method: DialogueThinker, question: Question, run: Run) -> None:
        self.method, self.question, self.run = method, question, run
        self.messages = [system_turn(question.language)]
        self.plan = LogicalPlan.single_retrieval(question.text)
        self.answers: dict[int, SubAnswer] = {}

    @property
    def done(self) -> list[SubAnswer]:
        return list(self.answers.values())

    @property
    def hits(self) -> tuple[Hit, ...]:
        return merge_hits(*(answer.hits for answer in self.done))

    async def ask(self, turn: RenderedPrompt) -> Completion:
        """The next turn of the chat."""
        self.messages.append(Message("user", turn.text))
        reply = await complete(
            self.method.model,
            tuple(self.messages),
            self.method.sampling,
            self.run,
            role="reader",
            prompt=turn.identity,
        )
        self.messages.append(assistant_turn(reply))
        return reply

    async def plan_steps(self) -> None:
        reply = await self.ask(self.method.turns.plan_turn(self.question))
        try:
            reading = read_plan_tolerantly(reply.text)
        except MalformedOutput as error:
            why = f"no plan could be read: {error.message}"
            self.run.emit(plan_event(self.plan, "fallback", (why,)))
            return
        self.plan = reading.plan
        self.run.emit(plan_event(reading.plan, "planner", reading.mended))

    async def solve_steps(self) -> None:
        """Solves the steps one after the other, for each builds on the chat before it."""
        graph = find_dependencies(self.plan)
        steps = [self.plan.step_numbered(n) for n in graph.solving_order()]
        # The checkpoint answers the last of several steps in the final turn.
        left = steps[-1] if self.method.turns.solves_every_step and len(steps) > 1 else None
        for step in steps:
            if isinstance(step.action, Output) or step is left:
                continue
            answer = self.answers[step.n] = await self._solve_step(step, graph)
            self.run.emit(answer_event(answer))

    async def _solve_step(self, step: PlanStep, graph: Dependencies) -> SubAnswer:
        known = Variables(graph, self.answers, step.n)
        words = known.fill_text(step.question)
        if known.missing and isinstance(step.action, Retrieval):
            self.run.emit(Noted(f"step {step.n} waits for {', '.join(known.missing)}: no answer"))
            return SubAnswer(step.n, words, "", lacking=known.missing)
        if self.method.turns.solves_every_step or not isinstance(step.action, Math | Deduce):
            return await self._search_and_answer(step, words)
        rests = merge_hits(*(each.hits for each in known.awaited))
        form, content = known.fill_computed(step.action, self.question)
        if isinstance(form, Deduce):
            reply = await self.ask(deduction_prompt(form, content, self.question.language))
            return SubAnswer(step.n, words, _answer_of(reply), rests)
        return await self._calculate(step.n, words, form, content, rests)

    async def _search_and_answer(self, step: PlanStep, words: str) -> SubAnswer:
        method, run = self.method, self.run
        said = {n: answer.text for n, answer in self.answers.items() if answer.text}
        reply = await self.ask(method.turns.step_turn(step, said, self.question.language))
        hits: tuple[Hit, ...] = ()
        for _ in range(method.searches):
            query = _search_words(reply)
            if query is None:
                text = _answer_of(reply)
                if text or hits or not is_refusal(answer_words(reply.text)):
                    return SubAnswer(step.n, words, text, hits, own=bool(text) and not hits)
                query = words  # Table 2's refusal: "I need to retrieve external knowledge"
            found = await look_up(method.retriever, query, run, k=method.k, sources=method.sources)
            hits = merge_hits(hits, found.hits)
            listed = method.focuser.list_references(words, found.hits)
            reply = await self.ask(RenderedPrompt(references_turn(listed), "kag/references"))
        return SubAnswer(step.n, words, "" if _search_words(reply) else _answer_of(reply), hits)

    async def _calculate(
        self, n: int, words: str, form: Math, content: Sequence[str], rests: tuple[Hit, ...]
    ) -> SubAnswer:
        """A program in one turn, its value in the next, then the answer (App. 12)."""
        reply = await self.ask(calculation_prompt(form, content, self.question.language))
        try:
            code = extract_program(reply)
            value = str((await run_calculation(code)).value)
        except MalformedOutput:  # answered without a program
            return SubAnswer(n, words, _answer_of(reply), rests)
        except BadCalculation as error:
            self.run.emit(Calculated(n, "python", reply.text, "", error.message))
            return SubAnswer(n, words, "")
        self.run.emit(Calculated(n, "python", code, value))
        reply = await self.ask(RenderedPrompt(result_turn(value), "kag/result"))
        return SubAnswer(n, words, _answer_of(reply) or value, rests)

    async def conclude(self) -> str:
        """The text of the last turn."""
        turn = self.method.turns.final_turn(self.question, self.plan, self.done, self.hits)
        return (await self.ask(turn)).text


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
