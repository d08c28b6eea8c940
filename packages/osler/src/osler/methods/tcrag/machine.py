"""TC-RAG's reasoning loop: Algorithm 1, its line numbers in the margin.

Departures from the paper, with their reasons, stand in docs/papers/tc-rag.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, assert_never

from osler.answer import Decision, plain_text, spoken_text, who_decided
from osler.answer.abstention import explain_abstention, read_draft
from osler.answer.option_reading import written_option
from osler.errors import CapabilityMissing, MalformedOutput
from osler.llm.core.ask import ask, complete, note_decline
from osler.llm.core.base import Completion, Message
from osler.llm.core.grammar import Grammar
from osler.llm.reading.actions import read_actions
from osler.methods.tcrag import actions
from osler.methods.tcrag.actions import (
    Backtrack,
    Conclusion,
    Move,
    Summary,
    Thought,
    ToolUse,
)
from osler.methods.tcrag.moves import OfferedMoves, TriedMoves
from osler.methods.tcrag.parts import (
    MachineParts,
    MachineStep,
    Wording,
    read_steps,
    render_act_prompt,
    stack_messages,
)
from osler.methods.tcrag.stack import LARGE, Draft, FrameKind, MemoryStack, explain_halt
from osler.methods.tcrag.tools import ToolCall, number_passages, try_tool
from osler.prompts import render_prompt
from osler.trace import BudgetExceeded, Noted, Popped, Pushed, Run, StateValued
from osler.types import Answer, Halt, Hit, Language, Question, Solution

ROLE = "planner"
COMPOSED = "of the composed answer"
"""Note on a state value that is not of the model's own text."""


class TuringMachine(MachineParts):
    """TC-RAG, Algorithm 1; `from_model` makes one with the paper's values."""

    async def solve(self, question: Question, run: Run) -> Solution:
        if self.note:
            run.emit(Noted(self.note))
        return await self.solve_over(MemoryStack(question), run)  # 1

    async def solve_over(self, memory: MemoryStack, run: Run) -> Solution:
        """Runs the algorithm over the caller's memory, which may already hold earlier steps and is
        left in its final state."""
        try:
            return await self._algorithm_1(memory, run)
        except BudgetExceeded as spent:
            return await self._best_effort(memory, run, f"spent: {spent}")

    async def _algorithm_1(self, memory: MemoryStack, run: Run) -> Solution:
        tried, number = TriedMoves(), 0  # 2
        # The memory may hold earlier results besides the query: the trace shows them all.
        for depth, frame in enumerate(memory.frames, 1):
            run.emit(Pushed(0, frame.kind, frame.text, depth))
        if self.search_first:
            number, asked = 1, ToolUse(self.tools[0].name, memory.question.text)
            await self._observe_tool(asked, memory, tried, run, number)
        for i in range(1, self.max_loop + 1):  # 3-4, 29
            # Algorithm 1 loops "while i < max_loop"; the policy may end the run before.
            offer = await self.moves.offer_moves(memory, tried, last=i == self.max_loop)
            if not offer.moves:
                return await self._best_effort(memory, run, "no sensible move is left")
            steps = await self._decide_actions(memory, offer, number + 1, run)  # 5
            number += max(1, len(steps))
            for step in steps:
                if (solution := await self._take_action(step, memory, tried, run)) is not None:
                    return solution  # 10, 31
            # Who was cut while thinking, or declines, will be so again.
            if run.unsaid:
                return await self._best_effort(memory, run, run.unsaid)
        return await self._best_effort(memory, run, f"max_loop {self.max_loop} is spent")  # 31

    async def _take_action(
        self, step: MachineStep, memory: MemoryStack, tried: TriedMoves, run: Run
    ) -> Solution | None:
        """One action of Algorithm 1; the solution where it ends the run."""
        question, i = memory.question, step.i
        match step.parsed.action:
            case Conclusion(text):  # 6
                try:
                    answer, value = await self._conclude_step(step, text, memory, run)  # 7
                except BudgetExceeded:  # said, and not valued: a draft
                    unsure = max(memory.state, self.sigma)
                    self._push(memory, run, i, FrameKind.THOUGHT, text, unsure)
                    raise
                if value < self.sigma:  # 8
                    conclusion = spoken_text(answer, question)
                    self._push(memory, run, i, FrameKind.CONCLUSION, conclusion, value, text)  # 9
                    decided = who_decided(self.composer, Decision(written_option(text, question)))
                    why = explain_halt(self.monitor.metric, value, self.sigma, self.basis)
                    return Solution(answer, Halt.CONVERGED, why, run.usage, decided)  # 10, 31
                again = tried.was_refused(memory)
                tried.refuse_evidence(memory)
                if again and self.closes and answer.is_silent:
                    why = "the same evidence did not answer twice"
                    return await self._best_effort(memory, run, why, asks=False)
                own = await self._refused_value(step, answer, value, memory, run)
                self._push(memory, run, i, FrameKind.THOUGHT, text, own)  # 12-13
            case Thought(text):  # 15
                if self.closes and not read_draft(text, run) and run.unsaid:
                    return None
                value = memory.state  # no Thought ends the loop: one that is acted on needs none
                if not step.acted_on:
                    value = await self._state_value(step, step.monitored_draft(), memory, run)  # 16
                # Only a Conclusion may end the loop, however sure a Thought is.
                clamped = max(value, self.sigma)  # 17
                self._push(memory, run, i, FrameKind.THOUGHT, text, clamped)  # 18
            case ToolUse() as call:  # 19
                await self._observe_tool(call, memory, tried, run, i)  # 20-21
            case Backtrack(reason):  # 22
                self._pop(memory, run, i, "Backtrack", reason)  # 23-24
            case Summary(text):  # 25
                await self._summarise_memory(memory, run, i, text)  # 26-27
            case _ as never:
                assert_never(never)
        return None

    async def first_value(
        self, question: Question, hits: tuple[Hit, ...], run: Run
    ) -> float | None:
        """State value of the conclusion that `hits` give; `None` when it abstains.

        `osler calibrate` fits sigma to these values, which are computed as in a run.
        """
        memory = MemoryStack(question)
        text = number_passages(hits, (), question.language)
        call = actions.render_action(ToolUse(self.tools[0].name, ""))
        memory.push(FrameKind.OBSERVATION, text, call=call, hits=hits)
        offer = OfferedMoves(frozenset({Move.CONCLUSION}), frozenset())
        for step in await self._decide_actions(memory, offer, 1, run):
            if isinstance(conclusion := step.parsed.action, Conclusion):
                answer, value = await self._conclude_step(step, conclusion.text, memory, run)
                return None if answer.is_silent else value
        return None

    async def _decide_actions(
        self, memory: MemoryStack, offer: OfferedMoves, i: int, run: Run
    ) -> tuple[MachineStep, ...]:
        """Asks for the next actions, the first of which is step `i`; none for an unreadable reply,
        which still costs a step."""
        prompt = render_act_prompt(memory.question, self.tools, self.moves, self._wording)
        context = stack_messages(prompt, memory)
        # The tag of an observation is a stop text: the model must never write one itself. Each
        # step draws its own seed from the run, so that a replay repeats it.
        sampling = replace(
            self.sampling,
            stop=(f"{actions.OBSERVATION}:",),
            seed=run.rng.getrandbits(31),
            grammar=self._action_grammar(offer, memory.question.language),
        )

        def parse(completion: Completion) -> tuple[MachineStep, ...]:
            return read_steps(self.read, completion, context, offer, i)

        try:
            return await ask(
                self.model, context, parse, sampling, run, role=ROLE, prompt=prompt.identity
            )
        except MalformedOutput as error:
            # A note quotes no model that may not word medicine; the calls have the reply.
            run.emit(Noted(f"step {i}: no reply could be read as {error.expected}"))
            return ()

    def _action_grammar(self, offer: OfferedMoves, language: Language) -> Grammar | None:
        if not self.constrained:
            return None
        longest = self.longest if language == "en" else self.longest // 3
        return actions.action_grammar(
            offer.moves, offer.tools, argument=self.argument, longest=longest
        )

    async def _conclude_step(
        self, step: MachineStep, text: str, memory: MemoryStack, run: Run
    ) -> tuple[Answer, float]:
        """The answer of a Conclusion and its state value; an abstention gets at least sigma."""
        decision = Decision(written_option(text, memory.question))
        # The paper's own dialect is taken at its word.
        reply = read_draft(text, run) if self.closes else text
        answer = await self.composer.conclude(
            memory.question, memory.hits, reply, run, decision=decision
        )
        if answer.is_silent:
            run.emit(Noted("the evidence in memory does not answer the question"))
            return answer, max(memory.state, self.sigma)
        if not self.composer.writes_answer:
            return answer, await self._state_value(step, step.monitored_draft(), memory, run)
        # The planner did not generate it: it has no tokens of its own.
        draft = Draft(plain_text(answer, memory.question), (), step.context, answer)
        return answer, await self._state_value(step, draft, memory, run, note=COMPOSED)

    async def _refused_value(
        self, step: MachineStep, answer: Answer, value: float, memory: MemoryStack, run: Run
    ) -> float:
        """The value, at least sigma (line 17), of the refused Conclusion's own text, which stays as
        a Thought: not that of the answer where it was composed in place of the text."""
        if not answer.is_silent and not self.composer.writes_answer:
            return value
        own = await self._state_value(step, step.monitored_draft(), memory, run, halts=False)
        return max(own, self.sigma)

    async def _state_value(
        self,
        step: MachineStep,
        draft: Draft,
        memory: MemoryStack,
        run: Run,
        *,
        halts: bool = True,
        note: str = "",
    ) -> float:
        """The state value of `draft`; at least sigma for a text that cannot be valued."""
        try:
            value = await self.monitor.state_value(draft, memory, run)
        except CapabilityMissing as missing:
            # A model without any log-probabilities is a matter of the settings, and is refused; a
            # single text without them is not sure.
            if not step.completion.tokens and step.completion.text:
                raise
            run.emit(Noted(f"step {step.i}: no state value: {missing.message}"))
            return max(memory.state, self.sigma)
        concludes = halts and isinstance(step.parsed.action, Conclusion)
        run.emit(
            StateValued(
                step.i,
                self.monitor.metric,
                value,
                self.sigma,
                halted=concludes and value < self.sigma,
                note=note,
            )
        )
        return value

    async def _observe_tool(
        self, call: ToolUse, memory: MemoryStack, tried: TriedMoves, run: Run, i: int
    ) -> None:
        tool = next(tool for tool in self.tools if tool.name == call.tool)
        question = memory.question
        query, frames = call.query or question.text, (*memory.frames,)
        asked = ToolCall(query, question, memory.hits, frames, fresh=self.fresh)
        seen = await try_tool(tool, asked, run)
        tried.tools.add(call.tool)
        for _ in range(min(seen.pops, len(memory) - 1)):
            self._pop(memory, run, i, "Backtrack", call.tool)
        if seen.pops and not seen.text:
            return
        written, observation = actions.render_action(call), f"{call.tool}: {seen.text}"
        memory.push(FrameKind.OBSERVATION, seen.text, call=written, hits=seen.hits)
        run.emit(Pushed(i, FrameKind.OBSERVATION, observation, len(memory), seen.writer))

    def _push(
        self,
        memory: MemoryStack,
        run: Run,
        i: int,
        kind: FrameKind,
        text: str,
        value: float,
        draft: str = "",
    ) -> None:
        memory.push(kind, text, state=value)
        # Where the answer was composed, the planner's own words stand beside it.
        writer, draft = ("", draft) if draft and self.composer.writes_answer else (ROLE, "")
        run.emit(Pushed(i, kind, text, len(memory), writer, draft))

    def _pop(
        self,
        memory: MemoryStack,
        run: Run,
        i: int,
        by: Literal["Backtrack", "Summary"],
        reason: str,
    ) -> None:
        # Line 26 of Algorithm 1 says nothing of s.
        popped = memory.pop(restore=by == "Backtrack")
        kind = popped.kind if popped else ""
        # JSON has no infinity: the initial state value is written as null.
        restored = None if memory.state == LARGE else memory.state
        run.emit(Popped(i, kind, by, len(memory), restored, reason))

    async def _summarise_memory(self, memory: MemoryStack, run: Run, i: int, text: str) -> None:
        # A summary keeps the passages of the observation it replaces, so that they stay citable.
        hits = memory.top.hits
        writer = ROLE
        if self.summariser is not None and memory.can_pop:
            writer, question = "summariser", memory.question
            prompt = render_prompt(
                "tcrag/summarise", question.language, question=question.text, text=memory.top.text
            )
            asked, identity = [Message("user", prompt.text)], prompt.identity
            reply = await complete(
                self.summariser, asked, self.sampling, run, role=writer, prompt=identity
            )
            if reply.text.strip() and not note_decline(reply, run):
                text = " ".join(reply.text.split())
            else:
                writer, run.unsaid = ROLE, ""  # the planner is not silent
                run.emit(Noted(f"step {i}: the summariser said nothing; the planner's words stand"))
        self._pop(memory, run, i, "Summary", "")
        memory.push(FrameKind.SUMMARY, text, hits=hits)
        run.emit(Pushed(i, FrameKind.SUMMARY, text, len(memory), writer))

    async def _best_effort(
        self, memory: MemoryStack, run: Run, reason: str, *, asks: bool = True
    ) -> Solution:
        """Answers without convergence, from what line 31 returns or from the last draft; `asks`:
        the model may be asked for a Conclusion."""
        draft = memory.last_words
        if self.exhausted == "top":
            draft = memory.top.text if memory.can_pop else ""  # the query alone is no conclusion
        if self.closes:
            closing = await self._closing_draft(memory, run) if asks else ""
            draft = read_draft(draft, run) if closing is None else closing
        decision = Decision(written_option(draft, memory.question))
        answer = await self.composer.conclude(
            memory.question, memory.hits, draft, run, decision=decision
        )
        silent = answer.is_silent and not run.spent
        halt = Halt.NO_EVIDENCE if silent else Halt.BUDGET
        decided = who_decided(self.composer, decision)
        solution = Solution(answer, halt, f"not converged: {reason}", run.usage, decided)
        return explain_abstention(solution, run)

    async def _closing_draft(self, memory: MemoryStack, run: Run) -> str | None:
        """What the model concludes when no step is left, empty where it abstains; `None` where it
        is not asked or says nothing."""
        if run.unsaid or not self.composer.uses_draft:
            return None
        prompt = render_act_prompt(memory.question, self.tools, self.moves, self._wording)
        closing = render_prompt("tcrag/close", memory.question.language)
        turns = [*stack_messages(prompt, memory), Message("user", closing.text)]
        sampling = replace(self.sampling, seed=run.rng.getrandbits(31), top=0)
        try:
            reply = await complete(
                self.model, turns, sampling, run, role=ROLE, prompt=closing.identity
            )
        except BudgetExceeded:  # searches alone may be spent
            return None
        found = read_actions(reply.text, ())
        said = [one.text for one in found if one.kind in ("conclusion", "untagged")]
        return read_draft(said[-1], run) if said else None

    @property
    def _wording(self) -> Wording:
        return Wording(self.argument, self.template)
