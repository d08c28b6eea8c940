"""Omni-RAG at run time: plan, search, read (§4.1, §5.1.2).

The reader is a frozen model that answers from what a plan found (App. E.10, E.11). Departures from
the paper, with their reasons, stand in docs/papers/omni-rag.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from osler.answer import Composer
from osler.answer.abstention import read_draft
from osler.answer.option_reading import written_option
from osler.answer.written import WrittenComposer
from osler.errors import MalformedOutput
from osler.llm.core.ask import Speaker, ask_with_documents, complete, repair_messages
from osler.llm.core.base import Completion, LanguageModel, Message, Sampling
from osler.methods.omni.dossier import left_out
from osler.methods.omni.plan import MOST, PlanReading, Query, SourcePlan, expect_source_plan
from osler.methods.omni.planners import Proposal, SourceDescription, SourcePlanner, source_variables
from osler.methods.omni.planners.single import Prompting, Proposer
from osler.methods.omni.retriever import Found, PlannedRetriever, missing_sources, order_results
from osler.prompts import RenderedPrompt, render_question_prompt
from osler.retrieve import LookupResult, tell_order
from osler.retrieve.pooled import PooledOrder
from osler.trace import BudgetExceeded, Noted, Run, SourcesPlanned
from osler.types import (
    Answer,
    Halt,
    Hit,
    Language,
    Question,
    Retriever,
    Solution,
    citation_mark,
    numbered,
)


@dataclass(frozen=True)
class Reader:
    """A reader independent of planners: any model may read the results of any plan."""

    model: LanguageModel
    composer: Composer
    sampling: Sampling

    async def read(
        self,
        question: Question,
        hits: Sequence[Hit],
        run: Run,
        *,
        alone: bool = False,
        draft: str | None = None,
    ) -> Answer:
        """Answers from `hits`. `alone`: deliberately without documents, from the model's own
        knowledge; `draft`: what the model has written already.

        Without documents and not `alone`, no draft is asked for. Never raises `BudgetExceeded`.
        """
        if draft is None:
            asks = self.composer.uses_draft and (hits or alone)
            draft = await self._write_draft(question, hits, run) if asks else ""
        said = read_draft(draft, run, alone=alone and self.composer.uses_draft)
        return await self.composer.conclude(question, hits, said, run)

    async def _write_draft(self, question: Question, hits: Sequence[Hit], run: Run) -> str:
        found = [hit.passage for hit in hits]
        documents = [
            f"{citation_mark(n)} ({one.source}) {one.heading}: {one.text}"
            for n, one in enumerate(found, 1)
        ]
        try:
            return await ask_with_documents(
                documents, lambda shown: self._draft_from(question, shown, run), run
            )
        except BudgetExceeded:
            return ""

    async def _draft_from(self, question: Question, documents: Sequence[str], run: Run) -> str:
        if documents:
            prompt = render_question_prompt("omni/read", question, documents=documents)
        else:
            prompt = render_question_prompt("omni/alone", question)
        reply = await self._ask([Message("user", prompt.text)], prompt, run)
        return await self._with_option(question, prompt, reply, run)

    async def _with_option(
        self, question: Question, prompt: RenderedPrompt, drafted: Completion, run: Run
    ) -> str:
        """The draft with an option that can be read: it is asked for once more where it has none,
        as the released code does."""
        draft = drafted.text
        if not question.options or not draft.strip() or written_option(draft, question):
            return draft
        letters = ", ".join(question.letters)
        wrong = f"expected <answer>X</answer> with one of {letters}, at the end"
        asked = repair_messages([Message("user", prompt.text)], drafted, wrong, self.sampling)
        try:
            reply = await self._ask(asked, prompt, run, repaired=wrong)
        except BudgetExceeded:
            return draft
        option = written_option(reply.text, question)
        return f"{draft}\n<answer>{option}</answer>" if option else draft

    async def _ask(
        self, messages: list[Message], prompt: RenderedPrompt, run: Run, *, repaired: str = ""
    ) -> Completion:
        return await complete(
            self.model,
            messages,
            self.sampling,
            run,
            role="reader",
            prompt=prompt.identity,
            repaired=repaired,
        )


_MISSING: dict[Language, str] = {
    "en": "Not searched: {sources}.",
    "zh": "未能检索：{sources}。",
}


@dataclass(frozen=True)
class OmniRag:
    planner: SourcePlanner
    retriever: PlannedRetriever
    reader: Reader
    per_source: int = 5
    """Documents that are read, for each source that found any."""
    order: PooledOrder | None = None
    """The single fused ranking of all results; `None` = the queries take turns."""
    follow_up: FollowUp | None = None
    """Plans on where the documents do not answer; the paper has none."""

    @classmethod
    def from_model(
        cls, model: LanguageModel, retriever: Retriever | Mapping[str, Retriever]
    ) -> Self:
        """Makes Omni-RAG with one model that is asked for the plan and reads what was found.

        The planner is the paper's Prompting (App. D.3), with at most three queries for a source
        (§4.1) and ten documents a query (§5.1.2). `retriever`: by the name of its source, as plans
        say it, or one for the source "documents". The model words the answer, and its sentences
        are held against the passages. Other values: `dataclasses.replace`.

            >>> import asyncio, osler
            >>> from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever
            >>> text = "Warfarin is stopped five days before surgery."
            >>> found = osler.Passage("notes:warfarin#0", text, "notes", "Warfarin")
            >>> model = ScriptedModel(["<notes> stopping warfarin </notes>", f"{text} [1]"])
            >>> sources = {"notes": ScriptedRetriever({"warfarin": [found]})}
            >>> method = osler.OmniRag.from_model(model, sources)
            >>> question = osler.parse_question("When is warfarin stopped before surgery?")
            >>> solution = asyncio.run(method.solve(question, osler.Run()))
            >>> solution.answer.text, solution.why
            ('Warfarin is stopped five days before surgery. [1]', 'read 1 passages from notes')
        """
        sources = retriever if isinstance(retriever, Mapping) else {"documents": retriever}
        offers = tuple(map(SourceDescription, sources))
        planner = Prompting(Proposer(Speaker(model, "planner"), offers))
        reader = Reader(model, WrittenComposer(), Sampling())
        return cls(planner, PlannedRetriever(sources), reader)

    async def solve(self, question: Question, run: Run) -> Solution:
        try:
            proposal = await self.propose_plan(question, run)  # §4.1
        except BudgetExceeded as spent:
            answer = await self.reader.read(question, (), run)
            return Solution(answer, Halt.BUDGET, f"spent: {spent}", run.usage)
        found = await self.search_plan(proposal, run)  # §5.1.2
        # An empty plan is the planner's choice (E.11), not a failed retrieval.
        asked = bool(proposal.plan.queries)
        return await self.answer_from(question, found, run, alone=not asked)  # E.10, E.11

    async def propose_plan(self, question: Question, run: Run) -> Proposal:
        """Asks the planner and emits its plan. Raises `BudgetExceeded` without budget for one."""
        return await request_plan(self.planner, question, run)

    async def search_plan(self, proposal: Proposal, run: Run) -> dict[Query, LookupResult]:
        return await self.retriever.gather_results(proposal.plan, run, known=proposal.found)

    async def answer_from(
        self, question: Question, found: Found, run: Run, *, alone: bool = False
    ) -> Solution:
        """The reader's answer; `alone`: for a plan that deliberately queries nothing."""
        hits = await order_results(question.text, found, self.per_source, self.order)
        draft = None
        if self.follow_up is not None and hits:
            found, hits, draft = await self._follow_up(self.follow_up, question, found, hits, run)
        tell_order(hits, run)
        answer = await self.reader.read(question, hits, run, alone=alone, draft=draft)
        absent = missing_sources(found)
        answer = _with_note(answer, absent)
        if run.spent:
            return Solution(answer, Halt.BUDGET, f"spent: {run.spent}", run.usage)
        if answer.is_silent:
            nothing = (
                "passages were found, but none answers the question"
                if hits
                else "nothing was found"
            )
            why = f"a source was down: {'; '.join(absent)}" if absent else nothing
            return Solution(answer, Halt.NO_EVIDENCE, why, run.usage)
        return Solution(answer, Halt.CONVERGED, _explain_reading(hits, found), run.usage)

    async def _follow_up(
        self,
        follow_up: FollowUp,
        question: Question,
        found: Found,
        hits: tuple[Hit, ...],
        run: Run,
    ) -> tuple[Found, tuple[Hit, ...], str | None]:
        """What further plans found besides, and the reader's draft; `None` where none was written.

        New passages stand behind those before them, so that the prompt's beginning stays.
        """
        for _ in range(follow_up.rounds):
            said = await follow_up.read_or_plan(question, hits, found, run)
            if not isinstance(said, Proposal):
                return found, hits, said
            run.emit(_event_of(said))
            fresh = await self.search_plan(said, run)
            found = {**found, **fresh}
            asked = "; ".join(query.text for query in fresh)
            new = await order_results(asked, fresh, self.per_source, self.order)
            known = {hit.passage.id for hit in hits}
            hits = (*hits, *(hit for hit in new if hit.passage.id not in known))
        return found, hits, None


async def request_plan(planner: SourcePlanner, question: Question, run: Run) -> Proposal:
    """Asks `planner` and emits its plan. Raises `BudgetExceeded` without budget for one."""
    proposal = await planner.plan(question, run)
    run.emit(_event_of(proposal))
    return proposal


def _event_of(proposal: Proposal) -> SourcesPlanned:
    dropped = tuple(map(left_out, proposal.dropped))
    return SourcesPlanned(proposal.plan.planned_queries, proposal.origin, dropped)


def _explain_reading(hits: Sequence[Hit], found: Found) -> str:
    """What was read, from the sources that could be searched, and which could not."""
    if not found:
        return "no source needed"
    up = dict.fromkeys(query.source for query, each in found.items() if not each.failed)
    down = dict.fromkeys(query.source for query, each in found.items() if each.failed)
    why = f"read {len(hits)} passages from {', '.join(up) or 'no source'}"
    return f"{why}; down: {', '.join(down)}" if down else why


def _with_note(answer: Answer, absent: tuple[str, ...]) -> Answer:
    """Adds a note about sources that could not be searched."""
    if not absent:
        return answer
    told = _MISSING[answer.language].format(sources="; ".join(absent))
    return replace(answer, note=f"{answer.note} {told}".strip())


@dataclass(frozen=True)
class FollowUp:
    """Asks the reader for its answer, or for another plan: ours, the paper's planner asks once.

    A question of several steps cannot be planned whole: what its second step asks for is named by
    the documents of the first.
    """

    speaker: Speaker
    offers: tuple[SourceDescription, ...]
    rounds: int
    """Further plans, at most."""
    at_most: int = MOST
    """Queries for a source in one plan."""

    async def read_or_plan(
        self, question: Question, hits: Sequence[Hit], found: Found, run: Run
    ) -> str | Proposal | None:
        """The draft of an answer, or a plan that asks what was not asked; "" where neither can be
        had, `None` for a plan that asks nothing new. Never raises `BudgetExceeded`."""
        prompt = render_question_prompt(
            "omni/follow",
            question,
            sources=source_variables(self.offers, question.language),
            at_most=self.at_most,
            documents=numbered(hits),
            asked=[query.wire for query in found],
        )
        try:
            said = await self.speaker.ask(prompt, self._read_reply, run)
        except MalformedOutput as error:  # an empty reply
            run.emit(Noted(f"neither an answer nor a plan could be read: {error.message}"))
            return ""
        except BudgetExceeded:
            return ""
        if isinstance(said, str):
            return said
        # A plan tells its queries apart without case, and keeps the first of those alike.
        asked = SourcePlan.of((*found, *said.plan.queries)).queries
        fresh = [query for query in asked if query not in found]
        return Proposal(SourcePlan.of(fresh), dropped=said.dropped) if fresh else None

    def _read_reply(self, reply: Completion) -> str | PlanReading:
        """A reply with a query is a plan, any other an answer."""
        names = tuple(offer.name for offer in self.offers)
        try:
            reading = expect_source_plan(reply.text, sources=names, at_most=self.at_most)
        except MalformedOutput:
            return reply.text
        return reading if reading.plan.queries else reply.text
